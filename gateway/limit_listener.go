package gateway

import (
	"net"
	"sync"
)

// limitListener is a TCP listener that limits the number of open connections;
// Accept blocks at the limit. Unlike netutil.LimitListener it returns
// connections with CloseWrite. net/http needs CloseWrite to deliver an error
// response to a client that is still sending.
type limitListener struct {
	*net.TCPListener
	slots  chan struct{} // one element for each open connection
	closed chan struct{}
	once   sync.Once
}

// newLimitListener returns a listener that allows limit open connections.
func newLimitListener(l *net.TCPListener, limit int) *limitListener {
	return &limitListener{TCPListener: l, slots: make(chan struct{}, limit), closed: make(chan struct{})}
}

// Accept implements net.Listener.
func (l *limitListener) Accept() (net.Conn, error) {
	select {
	case l.slots <- struct{}{}:
	case <-l.closed:
		return nil, net.ErrClosed
	}
	conn, err := l.AcceptTCP()
	if err != nil {
		<-l.slots
		return nil, err
	}
	return &limitedConn{TCPConn: conn, release: sync.OnceFunc(func() { <-l.slots })}, nil
}

// Close implements net.Listener. It may be called twice.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.TCPListener.Close()
}

// limitedConn is a connection that frees its slot when it is closed.
type limitedConn struct {
	*net.TCPConn
	release func()
}

// Close implements net.Conn. It may be called twice.
func (c *limitedConn) Close() error {
	err := c.TCPConn.Close()
	c.release()
	return err
}
