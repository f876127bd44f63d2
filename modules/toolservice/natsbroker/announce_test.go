package natsbroker_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/natsbroker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// testAnnouncements checks that a driver receives what is published on the subject of a service,
// up to the limit of size, and nothing after stop.
func testAnnouncements(t *testing.T, d broker.Driver, url string, options ...nats.Option) {
	t.Helper()
	received := make(chan string, 10)
	stop, err := d.(broker.Announcer).OpenAnnouncements(t.Context(), func(service, text string) { received <- service + ": " + text })
	if err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect(url, options...)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range []string{"one", string(make([]byte, protocol.MaxAnnouncementBytes+1)), "two"} {
		if err := conn.Publish(protocol.AnnounceSubject("joke"), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"joke: one", "joke: two"} {
		if got := <-received; got != want {
			t.Errorf("received %.100q, want %q", got, want)
		}
	}
	stop()
	if err := errors.Join(conn.Publish(protocol.AnnounceSubject("joke"), []byte("late")), conn.Flush(), d.Close()); err != nil {
		t.Fatal(err)
	}
	if len(received) > 0 {
		t.Errorf("received after stop: %q", <-received)
	}
	if _, err := d.(broker.Announcer).OpenAnnouncements(t.Context(), func(string, string) {}); !errors.Is(err, broker.ErrUnavailable) {
		t.Errorf("a closed driver: %v", err)
	}
}

func TestAnnouncements_Embedded(t *testing.T) {
	a := &accounts{queues: broker.Queues{Service: "joke", Request: protocol.Topic{Class: "request", Space: "tg", Name: "joke"}}}
	d, url := connectEmbedded(t, a)
	testAnnouncements(t, d, url, nats.UserInfo("joke", password))
}

func TestAnnouncements_External(t *testing.T) {
	url := startServer(t)
	d, err := natsbroker.Connect(broker.Config{Name: "main", URL: url})
	if err != nil {
		t.Fatal(err)
	}
	testAnnouncements(t, d, url)
}
