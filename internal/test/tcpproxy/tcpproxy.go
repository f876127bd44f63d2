// Package tcpproxy passes on TCP connections to a server that a test uses, and breaks them:
//
//	p := tcpproxy.New(t, server)
//	client := connect(p.Address())
//	p.Cut()
//
// Only tests import it.
package tcpproxy

import (
	"net"
	"sync"
	"testing"
)

// Proxy passes on connections to one server. It is safe for concurrent use.
type Proxy struct {
	listener net.Listener
	gate     sync.RWMutex // held for writing while the proxy passes on nothing

	mu     sync.Mutex // guards what follows
	target string
	conns  []net.Conn
}

// New returns a proxy for the server at target, HOST:PORT. It ends with the test.
func New(t testing.TB, target string) *Proxy {
	t.Helper()
	return At(t, "127.0.0.1:0", target)
}

// At is New with an address of the proxy, HOST:PORT.
func At(t testing.TB, address, target string) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: l, target: target}
	go p.accept()
	t.Cleanup(func() { _ = l.Close(); p.Cut() })
	return p
}

// Address returns the address of the proxy, HOST:PORT.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// SetTarget changes the server that later connections are for.
func (p *Proxy) SetTarget(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Cut resets all connections. Later ones are passed on.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		if tcp, ok := c.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = c.Close()
	}
	p.conns = nil
}

// Hold makes the proxy pass on nothing, and close nothing, until release is called or the test
// ends.
func (p *Proxy) Hold(t testing.TB) (release func()) {
	p.gate.Lock()
	release = sync.OnceFunc(p.gate.Unlock)
	t.Cleanup(release)
	return release
}

// accept passes on each connection.
func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.connect(client)
	}
}

// connect connects a client with the server. Without a server it closes the connection.
func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		_ = client.Close()
		return
	}
	p.conns = append(p.conns, client, server)
	go p.pass(client, server)
	go p.pass(server, client)
}

// pass passes on what one side sends, until one side closes.
func (p *Proxy) pass(to, from net.Conn) {
	defer to.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := from.Read(buffer)
		p.gate.RLock()
		_, writeErr := to.Write(buffer[:n])
		p.gate.RUnlock()
		if err != nil || writeErr != nil {
			return
		}
	}
}
