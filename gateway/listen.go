package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/rolecall/rolecall/errcode"
)

// SocketName is the socket in a data directory.
const SocketName = "rolecall.sock"

// maxSocketPath is how many bytes the path of a socket may have: macOS takes
// 104 with a zero at the end, Linux 108.
const maxSocketPath = 103

// Listen makes the socket of the data directory dir, for its owner alone. The
// caller holds the directory's lock, so a socket that is there already is
// what a process left that was killed, and is replaced.
//
// The socket is never open to others, not even for a moment: it is made in a
// directory that only the owner enters, and moved from there.
func Listen(dir string) (net.Listener, error) {
	path := filepath.Join(dir, SocketName)
	if err := checkSocket(path); err != nil {
		return nil, err
	}
	nursery, err := os.MkdirTemp(dir, "s") // 0700, and its socket's path is no longer than path
	if err != nil {
		return nil, fmt.Errorf("make the socket: %w", err)
	}
	defer os.RemoveAll(nursery)
	born := filepath.Join(nursery, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: born, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("make the socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // it will have moved
	if err := settle(born, path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socket{Listener: l, path: path, info: info}, nil
}

func checkSocket(path string) error {
	if len(path) > maxSocketPath {
		return fmt.Errorf("make the socket %s: its path has %d bytes and systems take %d; give --data a shorter path, a relative one for instance",
			path, len(path), maxSocketPath)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("make the socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("make the socket %s: something else is there; move it away", path)
	}
	return nil
}

func settle(from, to string) error {
	if err := os.Chmod(from, 0o600); err != nil {
		return fmt.Errorf("make the socket: %w", err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("make the socket: %w", err)
	}
	return nil
}

// socket is a listener that takes its file with it, unless another one is in
// its place by then.
type socket struct {
	net.Listener
	path string
	info fs.FileInfo
	once sync.Once
}

// Close implements net.Listener. It may be called twice.
func (s *socket) Close() error {
	err := s.Listener.Close()
	s.once.Do(func() {
		if now, statErr := os.Lstat(s.path); statErr == nil && os.SameFile(now, s.info) {
			err = errors.Join(err, os.Remove(s.path))
		}
	})
	return err
}

// maxConnections is how many connections over TCP are open at most; others wait.
const maxConnections = 1024

// ListenTCP listens on an address, host:port. One that other hosts reach is
// refused unless open is set: then who asks has to be known.
func ListenTCP(address string, open bool) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errcode.Wrap(errcode.InvalidConfig, err, "%q is no address to serve; write HOST:PORT, as 127.0.0.1:7464", address)
	}
	if !open && !isLoopback(host) {
		return nil, errcode.New(errcode.InvalidConfig, "other hosts reach %s and nobody would be told from another; list tokens under kind: gateway (rolecall token makes one), or serve 127.0.0.1", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("serve %s: %w", address, err)
	}
	at, ok := l.(*net.TCPListener)
	if !ok || !open && !at.Addr().(*net.TCPAddr).IP.IsLoopback() { // localhost need not be what it says
		return nil, errors.Join(fmt.Errorf("serve %s: it is %s, which other hosts reach", address, l.Addr()), l.Close())
	}
	return newCrowd(at, maxConnections), nil
}

// isLoopback says whether only this host reaches an address or name.
func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && addr.Unmap().IsLoopback()
}
