package rabbitmq_test

import (
	"net"
	"sync"
	"testing"
)

// proxy passes on connections to a broker, and can cut them or hold what they send.
type proxy struct {
	listener net.Listener
	target   string
	gate     sync.RWMutex // held for writing while the proxy holds everything

	mu    sync.Mutex
	conns []net.Conn
}

// newProxy returns a proxy that ends with the test.
func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: l, target: target}
	go p.accept()
	t.Cleanup(func() { _ = l.Close(); p.cut() })
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", p.target)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns = append(p.conns, client, server)
		p.mu.Unlock()
		go p.copy(client, server)
		go p.copy(server, client)
	}
}

// copy passes on what one side sends.
func (p *proxy) copy(to, from net.Conn) {
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

// cut closes all connections.
func (p *proxy) cut() {
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

// hold makes the proxy pass on nothing until the end of the test.
func (p *proxy) hold(t *testing.T) {
	p.gate.Lock()
	t.Cleanup(p.gate.Unlock)
}
