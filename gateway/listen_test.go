package gateway_test

import (
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
)

func TestListenTCP_PublicAddressNeedsTokens(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "[::]:0", "192.0.2.1:0", "example.com:0", "localhost.example.com:0"} {
		l, err := gateway.ListenTCP(address, false, nil)
		if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), "kind: gateway") {
			t.Errorf("%s: got %v, want invalid_config", address, err)
		}
		if l != nil {
			l.Close()
		}
	}
	for _, address := range []string{"", "7464", "127.0.0.1", "::1", "127.0.0.1:99999"} {
		if _, err := gateway.ListenTCP(address, true, nil); errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%q: got %v, want invalid_config", address, err)
		}
	}
	l, err := gateway.ListenTCP("0.0.0.0:0", true, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	f := newFixture(t, gatewaytest.TeamModel)
	gatewaytest.ServeListener(t, l, auth.HostCheck{}.Wrap(f.Handler))
	for host, want := range map[string]int{"127.0.0.1": 200, "192.0.2.1": 403, "0.0.0.0": 403} {
		status, _, body := gatewaytest.SendRaw(t, http.MethodGet, "http://127.0.0.1:"+port+"/healthz", http.Header{"Host": {host + ":" + port}}, nil)
		if status != want {
			t.Errorf("host %s: %d %s, want %d", host, status, body, want)
		}
	}
	if _, err := gateway.ListenTCP("127.0.0.1:"+port, false, nil); err == nil || strings.Count(err.Error(), port) != 1 || !strings.Contains(err.Error(), "another process uses this port; ") {
		t.Errorf("an address in use: %v", err)
	}
}

func TestListen_SocketIsPrivate(t *testing.T) {
	dir := t.TempDir()
	l, err := gateway.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, wire.SocketName)
	info, err := os.Lstat(path)
	if err != nil || info.Mode() != fs.ModeSocket|0o600 {
		t.Errorf("got %v, %v, want a socket of mode 0600", info.Mode(), err)
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("the directory contains %v", entries)
	}
	for range 2 {
		err = l.Close()
	}
	if _, statErr := os.Lstat(path); !errors.Is(statErr, fs.ErrNotExist) {
		t.Errorf("the socket still exists after Close: %v, %v", statErr, err)
	}
}

func TestListen_ReplacesStaleSocket(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, wire.SocketName)
	stale, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	stale.SetUnlinkOnClose(false) // as after SIGKILL
	stale.Close()
	if _, err := client.Dial(dir); !errors.Is(err, client.ErrNotServed) {
		t.Errorf("dialing a stale socket: %v, want ErrNotServed", err)
	}
	first, err := gateway.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	second, err := gateway.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if _, err := client.Dial(dir); err != nil {
		t.Errorf("closing the first listener removed the socket of the second: %v", err)
	}
}

func TestListen_RejectsImpossibleSocket(t *testing.T) {
	dir := t.TempDir()
	if _, err := client.Dial(dir); !errors.Is(err, client.ErrNotServed) {
		t.Errorf("dialing without a server: %v, want ErrNotServed", err)
	}
	if err := os.WriteFile(filepath.Join(dir, wire.SocketName), []byte("text"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.ListenUnix(dir); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("another kind of file: %v", err)
	}
	long := filepath.Join(dir, strings.Repeat("x", wire.MaxSocketPath-len(dir)-len(wire.SocketName)-1))
	if err := os.Mkdir(long, 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.ListenUnix(long); err == nil || !strings.Contains(err.Error(), "--data") {
		t.Errorf("a path of %d bytes: %v", len(long)+len(wire.SocketName)+1, err)
	}
	if _, err := client.Dial(long); !errors.Is(err, client.ErrNotServed) {
		t.Errorf("dialing it: %v, want ErrNotServed", err)
	}
	fits := long[:len(long)-1]
	if err := os.Mkdir(fits, 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := gateway.ListenUnix(fits)
	if err != nil {
		t.Fatalf("the longest path that fits: %v", err)
	}
	l.Close()
}
