package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/identity"
)

// storeFor returns a small store, and a function that opens a stream of a user.
func storeFor(t *testing.T, ofOne, ofAll int) (*eventStore, func(user, session, stream string)) {
	s := newEventStore()
	s.maxOfOne, s.maxOfAll = ofOne, ofAll
	return s, func(user, session, stream string) {
		sc := &clientScope{sender: identity.ByCaller(identity.UserName(user), "role")}
		if err := s.Open(sc.attach(t.Context()), session, stream); err != nil {
			t.Fatal(err)
		}
	}
}

// kept returns the events of a stream behind an index.
func kept(s *eventStore, session, stream string, index int) (string, error) {
	var list []string
	for data, err := range s.After(context.Background(), session, stream, index) {
		if err != nil {
			return "", err
		}
		list = append(list, string(data[:min(len(data), 4)]))
	}
	return strings.Join(list, " "), nil
}

// A sender loses its own oldest events when it has more than its share, and never those of others. What has a gap is not
// resumed.
func TestEventStore_IsSharedFairly(t *testing.T) {
	s, open := storeFor(t, 20000, 30000)
	open("ann", "a", "x")
	open("bob", "b", "y")
	add := func(session, stream string, from, n int) {
		for i := range n {
			if err := s.Append(t.Context(), session, stream, []byte(fmt.Sprintf("%04d", from+i)+strings.Repeat("-", 1000))); err != nil {
				t.Fatal(err)
			}
		}
	}
	add("b", "y", 0, 2)
	add("a", "x", 0, 100)
	if s.senders[identity.ByCaller("ann", "role").Holder()].bytes > 20000 || s.total > 30000 {
		t.Errorf("%d bytes are kept", s.total)
	}
	if got, err := kept(s, "b", "y", -1); err != nil || got != "0000 0001" {
		t.Errorf("of the other sender: %q, %v", got, err)
	}
	if _, err := kept(s, "a", "x", 50); !errors.Is(err, sdk.ErrEventsPurged) {
		t.Errorf("behind events that were dropped: %v", err)
	}
	if got, err := kept(s, "a", "x", 97); err != nil || got != "0098 0099" {
		t.Errorf("the newest: %q, %v", got, err)
	}
	if err := s.Append(t.Context(), "a", "x", make([]byte, 40000)); err != nil {
		t.Fatal(err)
	}
	if _, err := kept(s, "a", "x", 99); !errors.Is(err, sdk.ErrEventsPurged) {
		t.Errorf("behind an event that is too large: %v", err)
	}
	add("a", "x", 101, 1)
	if got, err := kept(s, "a", "x", 100); err != nil || got != "0101" {
		t.Errorf("after it: %q, %v", got, err)
	}
}

// Streams that have ended are forgotten before the sender has too many, and a session takes its events with it.
func TestEventStore_ForgetsStreams(t *testing.T) {
	s, open := storeFor(t, 20000, 30000)
	open("ann", "a", "")
	for i := range 1000 {
		open("ann", "a", fmt.Sprint(i))
	}
	if n := len(s.sessions["a"]); n > 41 || s.sessions["a"][""] == nil {
		t.Errorf("%d streams are kept", n)
	}
	if err := s.SessionClosed(t.Context(), "a"); err != nil || s.total != 0 || len(s.sessions) != 0 || len(s.senders) != 0 {
		t.Errorf("%d bytes of %d sessions of %d senders are left: %v", s.total, len(s.sessions), len(s.senders), err)
	}
	if err := s.Append(t.Context(), "a", "1", nil); err == nil {
		t.Error("an event of a session that has ended is kept")
	}
	if err := s.Open(t.Context(), "a", ""); err == nil {
		t.Error("a stream without a sender is kept")
	}
}
