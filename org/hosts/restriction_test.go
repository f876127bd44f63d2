package hosts_test

import (
	"fmt"
	"net/netip"
	"testing"

	"github.com/rolecall/rolecall/org/hosts"
)

func prefixes(list ...string) (all []netip.Prefix) {
	for _, text := range list {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func ExampleDialGuard_Restrict() {
	guard := hosts.NewDialGuard([]netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")})
	narrower := guard.Restrict(hosts.Restriction{PublicOnly: true})
	fmt.Println(guard.AllowsAddr(netip.MustParseAddr("10.0.0.1")), narrower.AllowsAddr(netip.MustParseAddr("10.0.0.1")))
	// Output: true false
}

// Whatever the Restriction says, it allows nothing that the guard does not.
func TestRestriction_OnlyNarrows(t *testing.T) {
	private := prefixes("10.1.0.0/16", "64:ff9b::/96")
	for _, r := range []hosts.Restriction{
		{}, {Allowed: prefixes("0.0.0.0/0", "::/0")}, {PublicOnly: true, Allowed: prefixes("10.0.0.0/8", "127.0.0.0/8", "169.254.0.0/16")},
		{Blocked: prefixes("0.0.0.0/0")}, {PublicOnly: true, Blocked: prefixes("8.0.0.0/8"), Allowed: prefixes("8.8.8.8/32")},
	} {
		for _, guard := range []hosts.DialGuard{{}, hosts.NewDialGuard(nil), hosts.NewDialGuard(private)} {
			for _, text := range []string{"10.1.0.1", "10.2.0.1", "127.0.0.1", "169.254.169.254", "8.8.8.8", "8.8.4.4", "::1", "fd00::1", "::ffff:10.1.0.1", "64:ff9b::10.2.0.1", "64:ff9b::10.1.0.1", "168.63.129.16"} {
				a := netip.MustParseAddr(text)
				if guard.Restrict(r).AllowsAddr(a) && !guard.AllowsAddr(a) {
					t.Errorf("%+v allows %s", r, a)
				}
			}
		}
	}
}

func TestRestriction_Narrows(t *testing.T) {
	guard := hosts.NewDialGuard(prefixes("10.0.0.0/8", "64:ff9b::/96"))
	for _, tt := range []struct {
		r    hosts.Restriction
		want map[string]bool
	}{
		{hosts.Restriction{}, map[string]bool{"10.1.0.1": true, "8.8.8.8": true, "64:ff9b::8.8.8.8": true}},
		{hosts.Restriction{PublicOnly: true}, map[string]bool{"10.1.0.1": false, "8.8.8.8": true, "64:ff9b::10.1.0.1": false}},
		{hosts.Restriction{PublicOnly: true, Allowed: prefixes("10.1.0.0/16")}, map[string]bool{"10.1.0.1": true, "10.2.0.1": false, "::ffff:10.2.0.1": false}},
		{hosts.Restriction{Blocked: prefixes("10.1.0.0/16", "8.8.8.0/24"), Allowed: prefixes("8.8.8.8/32")},
			map[string]bool{"10.1.0.1": false, "::ffff:10.1.0.1": false, "64:ff9b::10.1.0.1": false, "10.2.0.1": true, "8.8.8.8": true, "8.8.8.7": false}},
		{hosts.Restriction{Blocked: prefixes("0.0.0.0/0"), Allowed: prefixes("10.1.0.0/16")}, map[string]bool{"10.1.0.1": true, "10.2.0.1": false, "8.8.8.8": false}},
	} {
		for text, want := range tt.want {
			if got := guard.Restrict(tt.r).AllowsAddr(netip.MustParseAddr(text)); got != want {
				t.Errorf("%+v: %s: got %v", tt.r, text, got)
			}
		}
	}
	both := guard.Restrict(hosts.Restriction{Blocked: prefixes("10.1.0.0/16")}).Restrict(hosts.Restriction{Allowed: prefixes("10.0.0.0/8")})
	if both.AllowsAddr(netip.MustParseAddr("10.1.0.1")) {
		t.Error("a second Restriction undoes the first")
	}
}

func TestDialGuard_AllowsRange(t *testing.T) {
	guard := hosts.NewDialGuard(prefixes("10.1.0.0/16", "fd00::/8"))
	for text, want := range map[string]bool{
		"10.1.0.0/16": true, "10.1.2.0/24": true, "10.0.0.0/8": false, "0.0.0.0/0": false, "127.0.0.1/32": false, "8.8.8.0/24": true,
		"168.63.0.0/16": false, "fd12::/16": true, "fc00::/7": false, "2606:4700::/32": true, "2001:db8::/32": false, "::/0": false, "64:ff9b::/96": false,
	} {
		if got := guard.AllowsRange(netip.MustParsePrefix(text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
	if (hosts.DialGuard{}).AllowsRange(netip.MustParsePrefix("8.8.8.0/24")) || guard.AllowsRange(netip.Prefix{}) {
		t.Error("a zero value allows a range")
	}
}
