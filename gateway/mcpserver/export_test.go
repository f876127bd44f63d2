package mcpserver

import (
	"iter"
	"net/http/httptest"
	"reflect"
	"sync"
	"testing"
	"time"
	"unsafe"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// SessionParams returns the parameters of initialize that the sessions of s keep.
func SessionParams(s *Server) iter.Seq[*sdk.InitializeParams] {
	return func(yield func(*sdk.InitializeParams) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, session := range s.sessions {
			if !yield(session.sdk.InitializeParams()) {
				return
			}
		}
	}
}

// TestSealer is a sealer.
type TestSealer struct{ s *sealer }

// NewSealer returns a sealer with a new key.
func NewSealer(t testing.TB) TestSealer {
	t.Helper()
	s, err := newSealer()
	if err != nil {
		t.Fatal(err)
	}
	return TestSealer{s}
}

// SetNow replaces the clock.
func (s TestSealer) SetNow(now func() time.Time) { s.s.now = now }

// Seal returns a sealed state that is bound to a text, and opens for so long.
func (s TestSealer) Seal(t testing.TB, bound string, valid time.Duration) string {
	t.Helper()
	text, err := s.s.seal(roundState{Nonce: "n", Expires: s.s.now().Add(valid), Open: map[string]string{"q": "d"}}, []byte(bound))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// Open opens a sealed state.
func (s TestSealer) Open(text, bound string) error {
	_, err := s.s.open(text, []byte(bound))
	return err
}

// Use uses a state of a sender.
func (s TestSealer) Use(sender, nonce string, valid time.Duration) error {
	return s.s.markUsed(roundState{Nonce: nonce, Expires: s.s.now().Add(valid)}, sender)
}

// SubscribedURIs returns how many URIs the SDK remembers for subscriptions.
func SubscribedURIs(s *Server) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range s.endpoints {
		server := reflect.ValueOf(e.server).Elem()
		mu := (*sync.Mutex)(unsafe.Pointer(server.FieldByName("mu").UnsafeAddr()))
		mu.Lock()
		n += server.FieldByName("resourceSubscriptions").Len()
		mu.Unlock()
	}
	return n
}

// SetSourceTime sets in which time a source must list. No request may be in progress.
func SetSourceTime(s *Server, d time.Duration) { s.sourceTime = d }

// ArgumentAt returns the argument at a path.
var ArgumentAt = argumentAt

// WritesUntilEncoded returns how many of these writes of an answer it takes until its turn to encode a
// list has ended.
func WritesUntilEncoded(texts ...string) (n int) {
	ended := false
	w := &idRestoringWriter{ResponseWriter: httptest.NewRecorder(), ids: newIDEncoder(), encoded: func() { ended = true }}
	for _, text := range texts {
		_, _ = w.Write([]byte(text)) // a recorder has no errors
		if n++; ended {
			return n
		}
	}
	return 0
}
