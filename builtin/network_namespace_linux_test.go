package builtin

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/org/hosts"
)

// emptyNetworkVariable is set for the test process that runs in the empty network.
const emptyNetworkVariable = "ROLECALL_TEST_EMPTY_NETWORK"

// The URLs of ssrf_urls.jsonl (testdata/README.md) reach no listener on
// loopback or a private address, with and without http, whatever addresses
// their names resolve to. The test runs in a network namespace whose only
// interface has the addresses that attackers use.
func TestHTTPRequest_NoURLReachesInternalAddress(t *testing.T) {
	if os.Getenv(emptyNetworkVariable) != "" {
		testInEmptyNetwork(t)
		return
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestHTTPRequest_NoURLReachesInternalAddress$", "-test.v")
	cmd.Env = append(os.Environ(), emptyNetworkVariable+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil: // it did not start
		t.Skipf("no network namespace on this system: %v", err)
	case strings.Contains(string(out), "--- SKIP"):
		t.Skipf("the network namespace cannot be set up: %s", out)
	case err != nil:
		t.Fatalf("in the empty network: %v\n%s", err, out)
	}
	t.Logf("in the empty network:\n%s", out)
}

// Addresses that listen in the empty network in addition to the standard ones of
// loopback. Those in loopbackNetworks are reachable because loopback has another
// address in the same network; loopbackAddresses are its own. The last two are
// public.
var (
	loopbackNetworks  = []string{"10.0.0.1", "172.16.0.1", "192.168.0.1", "192.168.1.1", "169.254.169.254", "169.254.170.2", "100.100.100.200", "192.0.0.192", "168.63.129.16"}
	loopbackAddresses = []string{"fd00::1", "fd00:ec2::254", "64:ff9b::a9fe:a9fe", "2002:7f00:1::1", "93.184.215.14", "2606:4700::1111"}
)

var internalPorts = []int{22, 25, 53, 80, 443, 2375, 2379, 5000, 6379, 8000, 8080, 9001, 10050, 11111, 11211, 12346}

func testInEmptyNetwork(t *testing.T) {
	addLoopbackAddresses(t)
	var reached atomic.Int32
	for _, port := range internalPorts {
		countConnections(t, port, &reached)
	}
	urls := ssrfURLs(t)
	targets := internalAddresses()
	var turn atomic.Int32 // every name resolves to each of the addresses in turn
	names := map[string]func() []netip.Addr{"*": func() []netip.Addr {
		n := int(turn.Add(1)) / 2 % len(targets) // both families are queried together
		return []netip.Addr{targets[n], targets[(n+1)%len(targets)]}
	}}
	send := func(policy NetworkPolicy) int32 {
		w := newNetworkFixture(t, names)
		w.policy = policy
		before := reached.Load()
		for _, url := range urls {
			if a := w.send(t, obj{"url": url, "timeoutMs": 2000}); a.Error == "" {
				t.Errorf("%s: status %d", url, a.Status)
			}
		}
		return reached.Load() - before
	}
	https, both, open := PublicNetwork(), PublicNetwork(), PublicNetwork()
	both.AllowHTTP, open.AllowHTTP = true, true
	open.Private = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	if got := send(https); got != 0 {
		t.Errorf("%d connections reached internal addresses over https", got)
	}
	for range targets { // until the names have resolved to all of them
		if got := send(both); got != 0 {
			t.Fatalf("%d connections reached internal addresses with http allowed", got)
		}
	}
	guarded, unguarded := countReachable(t, targets, hosts.NewDialGuard(nil)), countReachable(t, targets, hosts.NewDialGuard(open.Private))
	if guarded != 0 || unguarded != len(targets) {
		t.Errorf("%d addresses were reached by the guarded dialer and %d by the unguarded one, want 0 and %d", guarded, unguarded, len(targets))
	}
	if got := send(open); got < 150 {
		t.Errorf("only %d connections without the guard: the test proves nothing", got)
	}
}

// ssrfURLs returns the URLs of the corpus, the http ones also with https, and URLs
// of all internal addresses.
func ssrfURLs(t *testing.T) []string {
	f, err := os.Open("testdata/ssrf_urls.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var urls []string
	for rows := json.NewDecoder(bufio.NewReader(f)); rows.More(); {
		var row struct{ V string }
		if err := rows.Decode(&row); err != nil {
			t.Fatal(err)
		}
		urls = append(urls, row.V)
		if rest, ok := strings.CutPrefix(row.V, "http:"); ok {
			urls = append(urls, "https:"+rest)
		}
	}
	for _, addr := range internalAddresses() {
		urls = append(urls, "http://"+netip.AddrPortFrom(addr, 80).String(), "https://"+netip.AddrPortFrom(addr, 443).String())
	}
	if len(urls) < 160 {
		t.Fatalf("only %d URLs", len(urls))
	}
	return urls
}

func internalAddresses() []netip.Addr {
	list := []netip.Addr{netip.MustParseAddr("127.0.0.1"), netip.MustParseAddr("::1"), netip.MustParseAddr("0.0.0.0"), netip.MustParseAddr("::")}
	for _, text := range slices.Concat(loopbackNetworks, loopbackAddresses) {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

// countReachable returns how many addresses a dialer with the guard reaches.
func countReachable(t *testing.T, list []netip.Addr, g hosts.DialGuard) (reached int) {
	d := net.Dialer{Control: g.Control}
	for _, addr := range list {
		if c, err := d.DialContext(t.Context(), "tcp", netip.AddrPortFrom(addr, 80).String()); err == nil {
			reached++
			c.Close()
		}
	}
	return reached
}

// countConnections listens on a port of all addresses and counts connections.
func countConnections(t *testing.T, port int, reached *atomic.Int32) {
	l, err := net.Listen("tcp", fmt.Sprintf(":%d", port))
	if err != nil {
		t.Skip("cannot listen: ", err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			reached.Add(1)
			c.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
}

// addLoopbackAddresses brings loopback up and adds the internal addresses.
func addLoopbackAddresses(t *testing.T) {
	check := func(what string, err error) {
		t.Helper()
		if err != nil {
			t.Skipf("%s: %v", what, err)
		}
	}
	s4, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	check("socket", err)
	defer unix.Close(s4)
	s6, err := unix.Socket(unix.AF_INET6, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	check("socket", err)
	defer unix.Close(s6)
	up, err := unix.NewIfreq("lo")
	check("lo", err)
	up.SetUint16(unix.IFF_UP | unix.IFF_RUNNING)
	check("bring lo up", unix.IoctlIfreq(s4, unix.SIOCSIFFLAGS, up))
	lo, err := net.InterfaceByName("lo")
	check("lo", err)
	for i, text := range slices.Concat(loopbackNetworks, loopbackAddresses) {
		addr := netip.MustParseAddr(text)
		if addr.Is6() {
			check("add "+text, add6(s6, lo.Index, addr))
			continue
		}
		if i < len(loopbackNetworks) { // an address adds its whole network
			addr = netip.AddrFrom4([4]byte{addr.As4()[0], addr.As4()[1], addr.As4()[2], 77})
		}
		check("add "+text, add4(s4, fmt.Sprintf("lo:%d", i), addr))
	}
}

// add4 adds an IPv4 address as an alias of loopback.
func add4(socket int, alias string, addr netip.Addr) error {
	req, err := unix.NewIfreq(alias)
	if err != nil {
		return err
	}
	if err := req.SetInet4Addr(addr.AsSlice()); err != nil {
		return err
	}
	return unix.IoctlIfreq(socket, unix.SIOCSIFADDR, req)
}

// add6 adds an IPv6 address by SIOCSIFADDR with a struct in6_ifreq.
func add6(socket, index int, addr netip.Addr) error {
	req := struct {
		addr   [16]byte
		prefix uint32
		index  int32
	}{addr.As16(), 128, int32(index)}
	_, _, errno := unix.Syscall(unix.SYS_IOCTL, uintptr(socket), unix.SIOCSIFADDR, uintptr(unsafe.Pointer(&req)))
	if errno != 0 {
		return errno
	}
	return nil
}
