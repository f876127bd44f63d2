package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/org/hosts"
)

// ListenUnix creates the socket of the data directory dir, accessible only to its
// owner. The caller must hold the directory's lock; an existing socket is
// therefore left over from a killed process, and is replaced.
//
// The socket is created in a temporary directory that only the owner can enter,
// and then moved. So it is never accessible to others.
func ListenUnix(dir string) (net.Listener, error) {
	path := filepath.Join(dir, wire.SocketName)
	if err := checkSocketPath(path); err != nil {
		return nil, err
	}
	tmpDir, err := os.MkdirTemp(dir, "s") // mode 0700; the socket's path in it is not longer than path
	if err != nil {
		return nil, fmt.Errorf("create socket: %w", err)
	}
	defer os.RemoveAll(tmpDir)
	tmpPath := filepath.Join(tmpDir, "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: tmpPath, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("create socket: %w", err)
	}
	l.SetUnlinkOnClose(false) // socketListener.Close removes the moved file
	if err := installSocket(tmpPath, path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	info, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &socketListener{Listener: l, path: path, info: info}, nil
}

// checkSocketPath rejects a path that is too long or names another kind of
// file.
func checkSocketPath(path string) error {
	if len(path) > wire.MaxSocketPath {
		return fmt.Errorf("create socket %s: the path has %d bytes, the limit is %d; use a shorter --data, for example a relative path",
			path, len(path), wire.MaxSocketPath)
	}
	info, err := os.Lstat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("create socket: %w", err)
	case info.Mode().Type() != fs.ModeSocket:
		return fmt.Errorf("create socket %s: the file exists and is not a socket; move it away", path)
	}
	return nil
}

// installSocket restricts the socket to its owner and moves it to its place.
func installSocket(from, to string) error {
	if err := os.Chmod(from, 0o600); err != nil {
		return fmt.Errorf("create socket: %w", err)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("create socket: %w", err)
	}
	return nil
}

// socketListener removes its socket file when it is closed, unless the file has
// been replaced.
type socketListener struct {
	net.Listener
	path string
	info fs.FileInfo // of the socket file, to recognize it
	once sync.Once
}

// Close implements net.Listener. It may be called twice.
func (s *socketListener) Close() error {
	err := s.Listener.Close()
	s.once.Do(func() {
		if now, statErr := os.Lstat(s.path); statErr == nil && os.SameFile(now, s.info) {
			err = errors.Join(err, os.Remove(s.path))
		}
	})
	return err
}

// ListenTCP listens on an address, host:port. It rejects an address that other
// hosts can reach unless open is set, which requires that requests are
// authenticated. The listener reads limits for every new connection; nil means the
// defaults.
func ListenTCP(address string, open bool, limits func() ConnectionLimits) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, errcode.New(errcode.InvalidConfig, "invalid listen address %q; want HOST:PORT, such as 127.0.0.1:7464", address)
	}
	if !open && !hosts.IsLoopback(host) {
		return nil, errcode.New(errcode.InvalidConfig, "%s is reachable from other hosts and no tokens are configured; list tokens or issuers under kind: gateway (rolecall token create prints one), or listen on 127.0.0.1", address)
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, listenError(address, err)
	}
	tcp, ok := l.(*net.TCPListener)
	if !ok || !open && !tcp.Addr().(*net.TCPAddr).IP.IsLoopback() { // localhost may resolve to another address
		return nil, errors.Join(fmt.Errorf("listen on %s: it resolves to %s, which is reachable from other hosts", address, l.Addr()), l.Close())
	}
	return newLimitListener(tcp, limits), nil
}

// listenError returns the error for an address on which the system does not let this
// process listen. It leaves out the words of package net, which repeat the address.
func listenError(address string, err error) error {
	if _, ok := errors.AsType[*net.AddrError](err); ok {
		return errcode.New(errcode.InvalidConfig, "invalid listen address %q; the port is a number from 0 to 65535", address)
	}
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("listen on %s: another process uses this port; stop it, or listen on another address, such as 127.0.0.1:0 for any free port", address)
	}
	if e, ok := errors.AsType[*os.SyscallError](err); ok {
		err = e.Err
	} else if e, ok := errors.AsType[*net.OpError](err); ok {
		err = e.Err
	}
	return fmt.Errorf("listen on %s: %w", address, err)
}
