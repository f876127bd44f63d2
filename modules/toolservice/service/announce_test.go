package service_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/modules/toolservice/service"
)

// nextAnnouncement returns the next announcement of the service joke.
func nextAnnouncement(t *testing.T, sub *nats.Subscription) protocol.Announcement {
	t.Helper()
	m, err := sub.NextMsg(20 * time.Second)
	if err != nil {
		t.Fatal(err)
	}
	a, err := protocol.VerifyAnnouncement(string(m.Data), "joke", time.Now(), key)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// A service announces its tools when it starts, and says goodbye when it stops.
func TestService_AnnouncesItself(t *testing.T) {
	url, client := startServer(t)
	sub, err := client.SubscribeSync(protocol.AnnounceSubject("joke"))
	if err != nil {
		t.Fatal(err)
	}
	if err := client.Flush(); err != nil {
		t.Fatal(err)
	}
	tools := []service.Tool{{Name: "tell-joke", Description: "Tell a joke", Arguments: json.RawMessage(`{"type":"object"}`), Effect: "readOnly"}}
	s := start(t, service.Options{URL: url, Key: key, Tools: tools, Lease: 5 * time.Minute}, tell)
	first := nextAnnouncement(t, sub)
	if len(first.Tools) != 1 || first.Tools[0].Name != "tell-joke" || first.Tools[0].Effect != "readOnly" || first.LeaseTime() != 5*time.Minute || first.End {
		t.Errorf("announced is %+v", first)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if last := nextAnnouncement(t, sub); !last.End || last.Instance != first.Instance || !last.Time.After(first.Time) {
		t.Errorf("the goodbye is %+v after %+v", last, first)
	}
}

func TestStart_RejectsAnnouncements(t *testing.T) {
	tool := service.Tool{Name: "tell-joke"}
	for want, o := range map[string]service.Options{
		"requires a Key":          {Tools: []service.Tool{tool}},
		"leave out Queue":         {Tools: []service.Tool{tool}, Key: key, Queue: "request:tg:bank"},
		"the lease is not":        {Tools: []service.Tool{tool}, Key: key, Lease: time.Second},
		"too many or too large":   {Tools: make([]service.Tool, 0), Key: key},
		"has no name":             {Tools: []service.Tool{{}}, Key: key},
		"its arguments are no JS": {Tools: []service.Tool{{Name: "a", Arguments: json.RawMessage("{")}}, Key: key},
	} {
		if strings.HasPrefix(want, "too many") {
			for range protocol.MaxAnnouncedTools + 1 {
				o.Tools = append(o.Tools, tool)
			}
		}
		o.ID = "joke"
		if _, err := service.Start(o, tell); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
