package toolbox_test

import (
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox"
)

// newNetworkFixture returns a fixture with a source on a local server, with more fields, and a
// tool. The operator allows private.
func newNetworkFixture(t *testing.T, more string, h http.HandlerFunc, private ...netip.Prefix) *fixture {
	t.Helper()
	c := parse(t, fmt.Sprintf(`{kind: network, name: n, privateAddresses: [127.0.0.0/8]}
---
{kind: source, name: api, type: http, baseUrl: %q%s}
---
{kind: tool, name: get, type: http, source: api, description: d, method: GET, path: /}`, serve(t, h), more))
	w := newFixture(t, c)
	w.change = func(c *toolbox.Config) {
		c.Network = func() toolbox.Network { return toolbox.Network{Private: private} }
	}
	w.load(c)
	return w
}

// The fields of a source narrow what the operator allows, and never widen it. The address that
// counts is the one that is dialed.
func TestRequest_SourceNarrowsNetwork(t *testing.T) {
	loopback := netip.MustParsePrefix("127.0.0.0/8")
	for more, want := range map[string]bool{
		"":                               true,
		", allowPrivateNetworks: true":   true,
		", allowPrivateNetworks: false":  false,
		", allowedIpRanges: [127.0.0.1]": true,
		", allowPrivateNetworks: false, allowedIpRanges: [127.0.0.1]":                          true,
		", customBlockedIpRanges: [127.0.0.1]":                                                 false,
		", allowPrivateNetworks: true, customBlockedIpRanges: [127.0.0.0/8]":                   false,
		", customBlockedIpRanges: [127.0.0.0/8], allowedIpRanges: [127.0.0.1/32]":              true,
		", allowPrivateNetworks: false, customBlockedIpRanges: [], allowedIpRanges: [8.8.8.8]": false,
	} {
		w := newNetworkFixture(t, more, echoRequest, loopback)
		if want {
			w.rows("get", `{}`)
		} else {
			wantCode(t, w.call(t.Context(), "get", `{}`), errcode.AddressBlocked)
		}
		// the operator has narrowed the addresses since the file was read
		wantCode(t, newNetworkFixture(t, more, echoRequest).call(t.Context(), "get", `{}`), errcode.AddressBlocked)
	}
}

func TestRequest_ReturnFullError(t *testing.T) {
	long := func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, strings.Repeat("x", 100<<10), http.StatusConflict)
	}
	for more, want := range map[string]int{"": 2 << 10, ", returnFullError: true": 64 << 10, ", returnFullError: false": 0} {
		w := newNetworkFixture(t, more, long, netip.MustParsePrefix("127.0.0.0/8"))
		message := wantCode(t, w.call(t.Context(), "get", `{}`), errcode.ToolExecutionFailed)
		if got := strings.Count(message, "x"); !strings.Contains(message, "409") || got < want-10 || got > want {
			t.Errorf("%q: %d bytes of the body", more, got)
		}
		if want == 0 && !strings.HasSuffix(message, "409 Conflict") {
			t.Errorf("got %q", message)
		}
	}
}
