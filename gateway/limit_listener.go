package gateway

import (
	"net"
	"sync"
)

// limitListener is a TCP listener that has so many connections open at most; others
// wait. That of x/net/netutil hides CloseWrite, without which the last answer
// of a server to who sends too much does not arrive.
type limitListener struct {
	*net.TCPListener
	places chan struct{} // one for each open connection
	closed chan struct{}
	once   sync.Once
}

func newCrowd(l *net.TCPListener, most int) *limitListener {
	return &limitListener{TCPListener: l, places: make(chan struct{}, most), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (c *limitListener) Accept() (net.Conn, error) {
	select {
	case c.places <- struct{}{}:
	case <-c.closed:
		return nil, net.ErrClosed
	}
	conn, err := c.AcceptTCP()
	if err != nil {
		<-c.places
		return nil, err
	}
	return &limitedConn{TCPConn: conn, leave: sync.OnceFunc(func() { <-c.places })}, nil
}

// Close implements net.Listener. It may be called twice.
func (c *limitListener) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.TCPListener.Close()
}

// limitedConn is one of the connections of a crowd.
type limitedConn struct {
	*net.TCPConn
	leave func()
}

// Close implements net.Conn. It may be called twice.
func (m *limitedConn) Close() error {
	err := m.TCPConn.Close()
	m.leave()
	return err
}
