package app

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/gateway"
)

// The limits of connections are those of the current configuration. A configuration
// that fails changes none.
func TestReconfigure_ChangesConnectionLimits(t *testing.T) {
	f := newFixture(t)
	if got := f.limits.connectionLimits(); !cmp.Equal(got, gateway.ConnectionLimits{}) {
		t.Errorf("without a configuration: %+v, want the defaults", got)
	}
	organization := func(limits string) string { return "{kind: organization, name: o, limits: {" + limits + "}}" }
	gatewayOf := "{kind: gateway, name: g, trustedProxies: [10.0.0.7, 10.1.0.0/16]}"
	first := gateway.ConnectionLimits{
		Total: 50, PerAddress: 5, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.7/32"), netip.MustParsePrefix("10.1.0.0/16")},
	}
	for _, c := range []struct {
		docs []string
		want gateway.ConnectionLimits
	}{
		{[]string{organization("connections: 50, connectionsPerAddress: 5"), gatewayOf}, first},
		{[]string{organization("connections: 70"), gatewayOf, "{kind: module, name: a, type: fake, settings: {bogus: 1}}"}, first},
		{[]string{organization("connections: 70")}, gateway.ConnectionLimits{Total: 70}},
		{nil, gateway.ConnectionLimits{}},
	} {
		err := f.ApplyConfig(t.Context(), f.read(c.docs...), nil)
		if diff := cmp.Diff(c.want, f.limits.connectionLimits(), cmp.Comparer(func(a, b netip.Prefix) bool { return a == b }), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%v (%v), (-want +got):\n%s", c.docs, err, diff)
		}
	}
	l, err := f.ListenHTTP("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}
