package service

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/rolecall/rolecall/modules/toolservice/protocol"
)

// Tool is a tool that a service announces.
type Tool struct {
	Name        string
	Description string
	Arguments   json.RawMessage // the JSON Schema of an object; nil means no arguments
	Effect      string          // readOnly, idempotent or mutating; "" says nothing. A hint for the operator
}

// announcer announces a service until stop is closed.
type announcer struct {
	service  *Service
	tools    []protocol.AnnouncedTool
	instance string
	started  time.Time
	again    chan struct{} // has an entry after the connection was made again
	stop     chan struct{}
	done     chan struct{} // closed when the goroutine has ended
}

// defaultLease is the lease of announcements.
const defaultLease = time.Minute

// newAnnouncer returns the announcer of a service, nil if it has no tools to announce.
func newAnnouncer(s *Service) (*announcer, error) {
	o := s.options
	switch {
	case len(o.Tools) == 0:
		return nil, nil
	case o.Key == "":
		return nil, errors.New("a service with Tools announces itself, which requires a Key")
	case o.Queue != "" && !isOwnQueue(o.Queue, o.ID):
		return nil, errors.New("a service with Tools has the queue of its id; leave out Queue")
	case o.Lease != 0 && (o.Lease < protocol.MinLease || o.Lease > protocol.MaxLease):
		return nil, fmt.Errorf("the lease is not between %v and %v", protocol.MinLease, protocol.MaxLease)
	}
	a := &announcer{service: s, instance: nats.NewInbox()[len(nats.InboxPrefix):], started: time.Now().UTC(), again: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{})}
	for _, t := range o.Tools {
		if t.Name == "" || len(t.Arguments) > 0 && !json.Valid(t.Arguments) {
			return nil, fmt.Errorf("the tool %q has no name, or its arguments are no JSON", t.Name)
		}
		a.tools = append(a.tools, protocol.AnnouncedTool{Name: t.Name, Description: t.Description, Input: t.Arguments, Effect: t.Effect})
	}
	if n := len(a.text(false)); n > protocol.MaxAnnouncementBytes || len(a.tools) > protocol.MaxAnnouncedTools {
		return nil, fmt.Errorf("the tools are too many or too large: %d tools, %d bytes; the limits are %d and %d", len(a.tools), n, protocol.MaxAnnouncedTools, protocol.MaxAnnouncementBytes)
	}
	return a, nil
}

// isOwnQueue reports whether a queue is the one that a service with this id announces.
func isOwnQueue(queue, id string) bool {
	own, _, ok := protocol.AnnouncedQueues(id)
	t, err := protocol.ParseTopic(queue)
	return ok && err == nil && t == own
}

// reconnected announces the service again soon.
func (a *announcer) reconnected(*nats.Conn) {
	select {
	case a.again <- struct{}{}:
	default:
	}
}

// run announces the service at once, and again three times in each lease. It ends with a
// goodbye.
func (a *announcer) run() {
	defer close(a.done)
	tick := time.NewTicker(a.lease() / 3)
	defer tick.Stop()
	a.send(false)
	for {
		select {
		case <-a.stop:
			a.send(true)
			return
		case <-a.again:
			a.send(false)
		case <-tick.C:
			a.send(false)
		}
	}
}

func (a *announcer) lease() time.Duration {
	if a.service.options.Lease == 0 {
		return defaultLease
	}
	return a.service.options.Lease
}

// send sends an announcement. While there is no connection it is lost, and the next one counts.
func (a *announcer) send(end bool) {
	s := a.service
	if err := s.conn.Publish(protocol.AnnounceSubject(s.options.ID), []byte(a.text(end))); err != nil {
		s.options.Log.Warn("announcement not sent", "service", s.options.ID, "error", err)
	}
}

// text returns an announcement that is signed now.
func (a *announcer) text(end bool) string {
	o := a.service.options
	request, response, _ := protocol.AnnouncedQueues(o.ID)
	n := protocol.Announcement{
		Service: o.ID, Request: request.URL(), Response: response.URL(), Instance: a.instance,
		Started: a.started, Time: time.Now().UTC(), Lease: int(a.lease() / time.Second), End: end,
	}
	if !end {
		n.Tools = a.tools
	}
	return n.Sign(o.Key)
}

// end says goodbye and waits until that is sent.
func (a *announcer) end() {
	if a != nil {
		close(a.stop)
		<-a.done
	}
}
