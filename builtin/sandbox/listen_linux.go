package sandbox

import (
	"errors"
	"fmt"
	"net"
	"os"

	"golang.org/x/sys/unix"
)

// openListener prepares the socket pair over which the job sends its listener. It returns the end
// of the starter, or nil if no listener is wanted.
func (p *jobProcess) openListener(wanted bool) (*os.File, error) {
	if !wanted {
		return nil, nil
	}
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start sandbox job: %w", err)
	}
	p.sender = os.NewFile(uintptr(pair[1]), "sender")
	p.cmd.ExtraFiles = append(p.cmd.ExtraFiles, p.sender)
	return os.NewFile(uintptr(pair[0]), "receiver"), nil
}

// sendListener listens on the loopback of the sandbox and sends the listener to the
// starter. The program does not inherit it.
func sendListener(s *spec) error {
	if !s.Listen {
		return nil
	}
	defer unix.Close(listenFD)
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Bind(fd, &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		return err
	}
	if err := unix.Listen(fd, unix.SOMAXCONN); err != nil {
		return err
	}
	return unix.Sendmsg(listenFD, []byte{0}, unix.UnixRights(fd), nil, 0)
}

// receiveListener returns the listener that a job has sent before it was ready.
func receiveListener(from *os.File) (net.Listener, error) {
	rights := make([]byte, unix.CmsgSpace(4))
	_, n, _, _, err := unix.Recvmsg(int(from.Fd()), make([]byte, 1), rights, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("start sandbox job: receive its listener: %w", err)
	}
	messages, err := unix.ParseSocketControlMessage(rights[:n])
	if err != nil || len(messages) != 1 {
		return nil, errors.Join(errors.New("start sandbox job: it sent no listener"), err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil {
		return nil, fmt.Errorf("start sandbox job: receive its listener: %w", err)
	}
	file := os.NewFile(uintptr(fds[0]), "listener")
	defer file.Close()
	return net.FileListener(file)
}
