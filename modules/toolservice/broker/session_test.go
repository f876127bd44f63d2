package broker_test

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
)

// fakeSession ends when lost is closed.
type fakeSession struct{ lost chan struct{} }

// Serve implements broker.Session.
func (s *fakeSession) Serve(ctx context.Context, _ func(broker.Delivery)) {
	select {
	case <-s.lost:
	case <-ctx.Done():
	}
}

// fakeBroker opens fakeSessions while it is up.
type fakeBroker struct {
	mu       sync.Mutex // guards what follows
	up       bool
	attempts int
	last     *fakeSession
	received []broker.Delivery
}

func (b *fakeBroker) setUp(up bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.up = up
}

// counts returns how many attempts to open a session there were, and what was received.
func (b *fakeBroker) counts() (attempts int, received []broker.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.attempts, b.received
}

func (b *fakeBroker) open() (*fakeSession, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.attempts++
	if !b.up {
		return nil, broker.ErrUnavailable
	}
	b.last = &fakeSession{make(chan struct{})}
	return b.last, nil
}

func (b *fakeBroker) receive(d broker.Delivery) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.received = append(b.received, d)
}

func (b *fakeBroker) config() broker.SessionConfig[*fakeSession] {
	return broker.SessionConfig[*fakeSession]{
		Broker: "main", Service: "joke", Open: b.open, Log: slog.New(slog.DiscardHandler), Receive: b.receive,
	}
}

// A lost session is reported once, and another is opened as soon as the broker is back.
func TestSessionLink_OpensLostSessionAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, links := &fakeBroker{up: true}, broker.NewLinkGroup()
		l, err := broker.OpenSessionLink(t.Context(), links, b.config())
		if err != nil {
			t.Fatal(err)
		}
		first, connected := l.CurrentSession()
		if !connected || first != b.last {
			t.Errorf("got %v, %v, want the session", first, connected)
		}
		b.setUp(false)
		close(first.lost)
		synctest.Wait()
		if s, connected := l.CurrentSession(); connected || s != nil || l.IsConnected() {
			t.Errorf("got %v, %v, want no session", s, connected)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n, _ := b.counts(); n < 8 || n > 40 {
			t.Errorf("%d attempts in a minute", n)
		}
		b.setUp(true)
		time.Sleep(2 * broker.LongestDelay)
		synctest.Wait()
		if second, connected := l.CurrentSession(); !connected || second == first {
			t.Errorf("got %v, %v, want another session", second, connected)
		}
		if _, received := b.counts(); len(received) != 1 || !errors.Is(received[0].Err, broker.ErrUnavailable) {
			t.Errorf("received %v, want one ErrUnavailable", received)
		}
		links.Close()
		if l.IsConnected() {
			t.Error("the link is connected after Close of its group")
		}
	})
}

// Close ends a link while it waits for the broker, and the group waits for that.
func TestSessionLink_CloseEndsAttempts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, links := &fakeBroker{up: true}, broker.NewLinkGroup()
		l, err := broker.OpenSessionLink(t.Context(), links, b.config())
		if err != nil {
			t.Fatal(err)
		}
		b.setUp(false)
		close(b.last.lost)
		synctest.Wait()
		_ = l.Close()
		links.Close()
		before, _ := b.counts()
		time.Sleep(time.Minute)
		if after, _ := b.counts(); after != before {
			t.Errorf("%d attempts after Close", after-before)
		}
	})
}

func TestOpenSession_Errors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, links := &fakeBroker{}, broker.NewLinkGroup()
		if _, err := broker.OpenSessionLink(t.Context(), links, b.config()); !errors.Is(err, broker.ErrUnavailable) {
			t.Errorf("without a broker: got %v", err)
		}
		c, opening := b.config(), make(chan struct{})
		c.Open = func() (*fakeSession, error) { <-opening; return nil, broker.ErrUnavailable }
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := broker.OpenSessionLink(ctx, links, c); !errors.Is(err, broker.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("behind a silent broker: got %v", err)
		}
		close(opening)
		links.Close()
		if _, err := broker.OpenSessionLink(t.Context(), links, b.config()); !errors.Is(err, broker.ErrUnavailable) {
			t.Errorf("in a closed group: got %v", err)
		}
		if n, _ := b.counts(); n != 1 {
			t.Errorf("%d attempts, want 1", n)
		}
	})
}
