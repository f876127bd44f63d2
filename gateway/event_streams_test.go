package gateway_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/org"
)

const (
	streamCallers   = 16       // with streams of events
	streamsOfCaller = 32       // of one caller at once, the limit
	streamMemory    = 48 << 10 // bytes of heap and stacks that a stream may take
)

// streamServer serves streams of events to callers over TCP.
type streamServer struct {
	*gatewaytest.Fixture
	role    org.Role
	address string
	ended   chan bool // receives when a handler has returned
}

func newStreamServer(t *testing.T) *streamServer {
	t.Helper()
	s := &streamServer{Fixture: newFixture(t, gatewaytest.TeamModel), ended: make(chan bool, 2*streamCallers*streamsOfCaller)}
	s.AddTool(t, "desk/mine", "own_tool")
	s.role = s.AddRole(t, "mine", "desk/mine")
	var list []auth.Token
	for i := range streamCallers {
		_, token := gatewaytest.NewToken(streamCaller(i), auth.Token{Scope: auth.ScopeRole, Role: s.role.ID})
		list = append(list, token)
	}
	tokens := gatewaytest.NewTokens(t, s.Fixture, list...)
	api, err := gateway.New(gateway.Config{Runtime: s.Runtime, Authenticate: tokens.Authenticate})
	if err != nil {
		t.Fatal(err)
	}
	l, err := gateway.ListenTCP("127.0.0.1:0", false, func() gateway.ConnectionLimits { return gateway.ConnectionLimits{Total: 1200, PerAddress: 1000} })
	if err != nil {
		t.Fatal(err)
	}
	s.address = l.Addr().String()
	checked := auth.HostCheck{Tokens: tokens}.Wrap(api)
	gatewaytest.ServeListener(t, l, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { s.ended <- true }()
		checked.ServeHTTP(w, r)
	}))
	return s
}

func streamCaller(i int) string { return fmt.Sprintf("caller-%d", i) }

// eventConn is a connection with a stream of events.
type eventConn struct {
	net.Conn
	in *bufio.Reader
}

// open requests a stream of the events of a caller and returns the status of the answer.
func (s *streamServer) open(t *testing.T, caller string) (c eventConn, status int) {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	c = eventConn{conn, bufio.NewReaderSize(conn, 256)}
	_, err = fmt.Fprintf(conn, "GET /api/v1/events?follow=1 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer rc_%s\r\nAccept: text/event-stream\r\n\r\n", s.address, caller)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.ReadResponse(c.in, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c, answer.StatusCode
}

// readEvents reads n events and fails unless they are of calls of the caller.
func (c eventConn) readEvents(t *testing.T, n int, caller string) {
	t.Helper()
	for n > 0 {
		line, err := c.in.ReadString('\n')
		if err != nil {
			t.Fatalf("%d events are missing: %v", n, err)
		}
		text, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		if n--; !strings.Contains(text, `"user:`+caller+"@") {
			t.Fatalf("a stream of %s has the event %s", caller, text)
		}
	}
}

// memoryInUse returns the bytes of heap and stacks after a collection.
func memoryInUse() int64 {
	runtime.GC()
	runtime.GC() // frees what the first one finalized
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// Each of 512 streams has the events of its caller only, and takes little memory. One more of
// a caller is refused, while other callers get theirs. When the clients go away, all ends.
func TestOrgEvents_ManyStreams(t *testing.T) {
	s := newStreamServer(t)
	before := memoryInUse()
	var conns []eventConn
	for i := range streamCallers * streamsOfCaller {
		c, status := s.open(t, streamCaller(i/streamsOfCaller))
		if status != http.StatusOK {
			t.Fatalf("stream %d: status %d", i, status)
		}
		conns = append(conns, c)
	}
	c, status := s.open(t, streamCaller(0))
	if status != http.StatusTooManyRequests {
		t.Errorf("one stream more: status %d", status)
	}
	c.Close()
	<-s.ended
	for i := range streamCallers {
		invoke(t, s.Fixture, identity.ByCaller(identity.UserName(streamCaller(i)), s.role.ID), "own_tool")
	}
	for i, c := range conns {
		c.readEvents(t, 2, streamCaller(i/streamsOfCaller)) // the call and its result
	}
	if each := (memoryInUse() - before) / int64(len(conns)); each > streamMemory && !short.RaceDetector {
		t.Errorf("a stream takes %d bytes, with its client", each)
	} else {
		t.Logf("a stream takes %d bytes, with its client", each)
	}
	for _, c := range conns {
		c.Close()
	}
	for range conns {
		<-s.ended
	}
	if _, status := s.open(t, streamCaller(0)); status != http.StatusOK {
		t.Errorf("a stream after all have ended: status %d", status)
	}
}
