package gateway_test

import (
	"net"
	"testing"

	"github.com/rolecall/rolecall/gateway"
)

// At the limit Accept blocks until a connection is closed.
func TestLimitListener_BlocksWhenFull(t *testing.T) {
	l, err := gateway.ListenTCP("127.0.0.1:0", false)
	if err != nil {
		t.Fatal(err)
	}
	var accepted []net.Conn
	for range gateway.MaxConnections {
		out, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		in, err := l.Accept()
		if err != nil {
			t.Fatal(err)
		}
		accepted = append(accepted, in)
	}
	late, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	next := make(chan net.Conn, 1)
	go func() {
		in, err := l.Accept()
		if err != nil {
			t.Error(err)
		}
		next <- in
	}()
	if len(next) != 0 {
		t.Error("a connection over the limit was accepted")
	}
	for range 2 {
		_ = accepted[0].Close()
	}
	if in := <-next; in.RemoteAddr().String() != late.LocalAddr().String() {
		t.Errorf("%s was accepted, want %s", in.RemoteAddr(), late.LocalAddr())
	} else {
		defer in.Close()
	}
	ended := make(chan error, 1)
	go func() {
		_, err := l.Accept() // blocks: the limit is reached again
		ended <- err
	}()
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if err := <-ended; err == nil {
		t.Error("a connection was accepted after Close")
	}
	for _, in := range accepted[1:] {
		in.Close()
	}
}
