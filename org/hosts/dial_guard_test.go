package hosts_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/rolecall/rolecall/org/hosts"
)

func ExampleNewDialGuard() {
	dialer := net.Dialer{Control: hosts.NewDialGuard([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}).Control}
	_, err := dialer.Dial("tcp", "10.0.0.1:80")
	fmt.Println(errors.Is(err, hosts.ErrNotPublic))
	// Output: true
}

func TestDialGuard_ZeroValueDenies(t *testing.T) {
	if (hosts.DialGuard{}).AllowsAddr(netip.MustParseAddr("8.8.8.8")) {
		t.Error("8.8.8.8 is allowed")
	}
}

func TestIsNonHTTPPort(t *testing.T) {
	for port, want := range map[uint16]bool{22: true, 25: true, 6379: false, 80: false, 443: false, 8080: false} {
		if got := hosts.IsNonHTTPPort(port); got != want {
			t.Errorf("%d: got %v, want %v", port, got, want)
		}
	}
}

func TestDialGuard_DeniesNonPublicAddresses(t *testing.T) {
	for _, text := range []string{
		"0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1", "127.255.255.254", "169.254.169.254", "169.254.170.2",
		"172.16.0.1", "172.31.255.255", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.0.1", "198.18.0.1", "198.19.255.255",
		"198.51.100.1", "203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "168.63.129.16",
		"::", "::1", "::127.0.0.1", "::10.0.0.1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "::ffff:0:127.0.0.1",
		"64:ff9b::127.0.0.1", "64:ff9b::10.0.0.1", "64:ff9b::8.8.8.8", "64:ff9b:1::127.0.0.1", "64:ff9b:1:ffff::1",
		"100::1", "100:0:0:1::1", "2001::1", "2001:0:7f00:1::", "2001:10::1", "2001:20::1", "2001:db8::1", "2002:7f00:1::", "2002:a9fe:a9fe::1",
		"2620:4f:8000::1", "3fff::1", "5f00::1", "fc00::1", "fd00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fe80::1%lo", "fec0::1", "ff02::1", "4000::1",
	} {
		if hosts.NewDialGuard(nil).AllowsAddr(netip.MustParseAddr(text)) {
			t.Errorf("%s is allowed", text)
		}
	}
	for _, text := range []string{"8.8.8.8", "1.1.1.1", "93.184.215.14", "172.32.0.1", "172.15.255.255", "100.128.0.1", "192.0.1.1", "223.255.255.255", "::ffff:8.8.8.8", "2606:4700::1111", "2a00:1450::1"} {
		if !hosts.NewDialGuard(nil).AllowsAddr(netip.MustParseAddr(text)) {
			t.Errorf("%s is not allowed", text)
		}
	}
}

func TestDialGuard_AllowsListedPrefixes(t *testing.T) {
	listed := hosts.NewDialGuard([]netip.Prefix{
		netip.MustParsePrefix("10.1.0.0/16"), netip.MustParsePrefix("fd00::/8"), netip.MustParsePrefix("64:ff9b::/96"), netip.MustParsePrefix("0.0.0.0/32"),
	})
	for text, want := range map[string]bool{
		"10.1.2.3": true, "10.2.2.3": false, "::ffff:10.1.2.3": true, "::ffff:10.2.2.3": false, "fd12::1": true, "fe80::1": false, "fd12::1%lo": false,
		"64:ff9b::8.8.8.8": true, "64:ff9b::10.1.0.1": true, "64:ff9b::10.2.0.1": false, "64:ff9b::127.0.0.1": false, "64:ff9b:1::8.8.8.8": false,
		"8.8.8.8": true, "127.0.0.1": false, "0.0.0.0": true,
	} {
		if got := listed.AllowsAddr(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %v, want %v", text, got, want)
		}
	}
}

func TestDialGuard_ControlRejectsMalformed(t *testing.T) {
	g := hosts.NewDialGuard([]netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")})
	for _, c := range [][2]string{{"tcp4", "1.1.1.1"}, {"tcp4", "a.test:80"}, {"tcp4", ""}, {"udp4", "1.1.1.1:80"}, {"unix", "/tmp/x"}, {"tcp", "1.1.1.1:80"}} {
		if err := g.Control(c[0], c[1], nil); !errors.Is(err, hosts.ErrNotPublic) {
			t.Errorf("%v: %v", c, err)
		}
	}
	if err := g.Control("tcp6", "[::1]:80", nil); err != nil {
		t.Error(err)
	}
}

// The addresses of this machine are not allowed.
func TestDialGuard_DeniesLocalAddresses(t *testing.T) {
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, addr := range list {
		p, err := netip.ParsePrefix(addr.String())
		if err != nil {
			t.Fatal(err)
		}
		if hosts.NewDialGuard(nil).AllowsAddr(p.Addr()) {
			t.Errorf("%s is an address of this machine and is allowed", p.Addr())
		}
	}
}
