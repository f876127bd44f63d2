// Package brokertest has the tests that every broker.Driver passes. A driver's own test starts
// the broker and runs them:
//
//	func TestDriver(t *testing.T) {
//		brokertest.TestDriver(t, brokertest.Target{Connect: connect, Serve: serve})
//	}
package brokertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// Target is a driver under test with its broker.
type Target struct {
	// Connect returns a driver that is connected to the broker. The tests close it.
	Connect func(t testing.TB) broker.Driver
	// Serve receives requests as a service does, until stop is called or the test ends. It
	// returns when a request that is sent afterwards is received. answer is called with each
	// request; respond sends a response to it.
	Serve func(t testing.TB, q broker.Queues, answer func(request broker.Message, respond func(broker.Message))) (stop func())
	// ReportsNoService says that the broker reports requests that nothing receives.
	ReportsNoService bool
}

// receiveTimeout is how long a test waits for a message that should come.
const receiveTimeout = 30 * time.Second

// TestDriver runs all tests as subtests.
func TestDriver(t *testing.T, target Target) {
	for _, c := range []struct {
		name string
		run  func(*testing.T, Target)
	}{
		{"Response has the id, body and token of its request", testRoundTrip},
		{"Pieces of a response arrive in order", testPieces},
		{"Many requests at once are each answered once", testConcurrent},
		{"Services with one id share the requests", testSharedService},
		{"Links receive responses to their own requests", testLinks},
		{"A request that nothing receives does not stop the next", testNoService},
		{"The largest message passes and a larger one is rejected", testSize},
		{"A closed link and a closed driver send nothing", testClosed},
	} {
		t.Run(c.name, func(t *testing.T) { c.run(t, target) })
	}
}

// queues returns the queues of a service that no other test uses.
func queues(t testing.TB, name string) broker.Queues {
	t.Helper()
	sum := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, t.Name())
	topic := func(class string) protocol.Topic {
		return protocol.Topic{Class: class, Space: "tg", Name: name + "_" + sum[max(0, len(sum)-80):]}
	}
	return broker.Queues{Service: name, Request: topic("request"), Response: topic("response")}
}

// client is a link with the deliveries that it has received.
type client struct {
	t          testing.TB
	link       broker.Link
	deliveries chan broker.Delivery
}

// open opens a link with a driver.
func open(t testing.TB, d broker.Driver, q broker.Queues) *client {
	t.Helper()
	c := &client{t: t, deliveries: make(chan broker.Delivery, 10_000)}
	ctx, cancel := context.WithTimeout(t.Context(), receiveTimeout)
	defer cancel()
	l, err := d.Open(ctx, q, func(d broker.Delivery) { c.deliveries <- d })
	if err != nil {
		t.Fatalf("open a link: %v", err)
	}
	c.link = l
	t.Cleanup(func() { _ = l.Close() })
	return c
}

// connect returns a driver that is closed at the end of the test.
func connect(t testing.TB, target Target) broker.Driver {
	t.Helper()
	d := target.Connect(t)
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Errorf("close the driver: %v", err)
		}
	})
	return d
}

// send sends a request.
func (c *client) send(id, body string) {
	c.t.Helper()
	if sent, err := c.link.Send(c.t.Context(), broker.Message{ID: id, Token: "token of " + id, Body: []byte(body)}); err != nil || !sent {
		c.t.Fatalf("send %s: sent %t, %v", id, sent, err)
	}
}

// next returns the next delivery.
func (c *client) next() broker.Delivery {
	c.t.Helper()
	select {
	case d := <-c.deliveries:
		return d
	case <-time.After(receiveTimeout):
		c.t.Fatal("no response arrived")
	}
	return broker.Delivery{}
}

// want fails unless the next delivery has this id and body.
func (c *client) want(id, body string) {
	c.t.Helper()
	if d := c.next(); d.Err != nil || d.ID != id || string(d.Body) != body {
		c.t.Fatalf("received %q %.100q %v, want %q %.100q", d.ID, d.Body, d.Err, id, body)
	}
}

// echo responds with the body of the request and its token.
func echo(m broker.Message, respond func(broker.Message)) {
	respond(broker.Message{ID: m.ID, Body: []byte(string(m.Body) + " with " + m.Token)})
}

func testRoundTrip(t *testing.T, target Target) {
	q := queues(t, "echo")
	c := open(t, connect(t, target), q)
	target.Serve(t, q, echo)
	for i := range 3 {
		id := fmt.Sprintf("id-%d", i)
		c.send(id, `{"ä": 1}`)
		c.want(id, `{"ä": 1} with token of `+id)
	}
}

func testPieces(t *testing.T, target Target) {
	q := queues(t, "pieces")
	c := open(t, connect(t, target), q)
	target.Serve(t, q, func(m broker.Message, respond func(broker.Message)) {
		for i := range 50 {
			respond(broker.Message{ID: m.ID, Body: fmt.Appendf(nil, "piece %d", i)})
		}
	})
	c.send("one", "")
	for i := range 50 {
		c.want("one", fmt.Sprintf("piece %d", i))
	}
}

func testConcurrent(t *testing.T, target Target) {
	const count = 200
	q := queues(t, "many")
	c := open(t, connect(t, target), q)
	target.Serve(t, q, echo)
	var senders sync.WaitGroup
	for i := range count {
		senders.Go(func() {
			id := fmt.Sprintf("id-%d", i)
			if _, err := c.link.Send(t.Context(), broker.Message{ID: id, Body: []byte(id)}); err != nil {
				t.Errorf("send %s: %v", id, err)
			}
		})
	}
	senders.Wait()
	seen := map[string]bool{}
	for range count {
		d := c.next()
		if d.Err != nil || seen[d.ID] || string(d.Body) != d.ID+" with " {
			t.Fatalf("received %q %q %v", d.ID, d.Body, d.Err)
		}
		seen[d.ID] = true
	}
}

func testSharedService(t *testing.T, target Target) {
	const count = 60
	q := queues(t, "shared")
	c := open(t, connect(t, target), q)
	for i := range 2 {
		target.Serve(t, q, func(m broker.Message, respond func(broker.Message)) {
			respond(broker.Message{ID: m.ID, Body: fmt.Appendf(nil, "%d", i)})
		})
	}
	for i := range count {
		c.send(fmt.Sprintf("id-%d", i), "")
	}
	seen := map[string]bool{}
	for range count {
		d := c.next()
		if seen[d.ID] || d.Err != nil {
			t.Fatalf("request %s was answered twice, or failed: %v", d.ID, d.Err)
		}
		seen[d.ID] = true
	}
	select {
	case d := <-c.deliveries:
		t.Errorf("another response to %s", d.ID)
	default:
	}
}

func testLinks(t *testing.T, target Target) {
	q := queues(t, "links")
	d := connect(t, target)
	target.Serve(t, q, echo)
	one, other := open(t, d, q), open(t, d, q)
	one.send("of-one", "a")
	other.send("of-other", "b")
	for c, id := range map[*client]string{one: "of-one", other: "of-other"} {
		for c.next().ID != id { // a broker with one response queue shows both
			continue
		}
	}
}

func testNoService(t *testing.T, target Target) {
	q := queues(t, "absent")
	c := open(t, connect(t, target), q)
	sent, err := c.link.Send(t.Context(), broker.Message{ID: "lost", Body: []byte("{}")})
	if target.ReportsNoService {
		d := broker.Delivery{Message: broker.Message{ID: "lost"}, Err: err}
		if sent {
			d = c.next()
		}
		if d.ID != "lost" || !errors.Is(d.Err, broker.ErrNoService) || len(d.Body) > 0 {
			t.Errorf("sent %t, received %q %q %v, want ErrNoService", sent, d.ID, d.Body, d.Err)
		}
	}
	target.Serve(t, q, echo)
	c.send("next", "x")
	for {
		d := c.next()
		if d.ID == "next" {
			return
		}
	}
}

func testSize(t *testing.T, target Target) {
	q := queues(t, "size")
	d := connect(t, target)
	c := open(t, d, q)
	target.Serve(t, q, func(m broker.Message, respond func(broker.Message)) {
		respond(broker.Message{ID: m.ID, Body: fmt.Append(nil, len(m.Body))})
	})
	most := d.MaxBytes()
	if sent, err := c.link.Send(t.Context(), broker.Message{ID: "larger", Body: make([]byte, most+1<<20)}); sent || !errors.Is(err, broker.ErrTooLarge) {
		t.Errorf("a message of %d bytes: sent %t, %v; want ErrTooLarge", most+1<<20, sent, err)
	}
	c.send("largest", strings.Repeat("x", most))
	c.want("largest", fmt.Sprint(most))
}

func testClosed(t *testing.T, target Target) {
	q := queues(t, "closed")
	d := target.Connect(t)
	c := open(t, d, q)
	target.Serve(t, q, echo)
	if err := c.link.Close(); err != nil {
		t.Errorf("close the link: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Errorf("close the driver: %v", err)
	}
	if sent, err := c.link.Send(t.Context(), broker.Message{ID: "late", Body: []byte("{}")}); sent || err == nil {
		t.Errorf("a closed driver sends: sent %t, %v", sent, err)
	}
	if _, err := d.Open(t.Context(), q, func(broker.Delivery) {}); !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("open a link of a closed driver: %v, want ErrUnavailable", err)
	}
}
