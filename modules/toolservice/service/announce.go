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
	if n := len(a.announcement()); n > protocol.MaxAnnouncementBytes || len(a.tools) > protocol.MaxAnnouncedTools {
		return nil, fmt.Errorf("the tools are too many or too large: %d tools, %d bytes; the limits are %d and %d", len(a.tools), n, protocol.MaxAnnouncedTools, protocol.MaxAnnouncementBytes)
	}
	return a, nil
}

// isOwnQueue reports whether a queue is the queue that a service with this id announces.
func isOwnQueue(queue, id string) bool {
	own, _, ok := protocol.AnnouncedQueues(id)
	t, err := protocol.ParseTopic(queue)
	return ok && err == nil && t == own
}

// announceAgain announces the service again soon.
func (a *announcer) announceAgain(*nats.Conn) {
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
	a.announce()
	for {
		select {
		case <-a.stop:
			a.sayGoodbye()
			return
		case <-a.again:
			a.announce()
		case <-tick.C:
			a.announce()
		}
	}
}

func (a *announcer) lease() time.Duration {
	if a.service.options.Lease == 0 {
		return defaultLease
	}
	return a.service.options.Lease
}

// announce announces the service with its tools. While there is no connection, the announcement is
// lost, and the next one counts.
func (a *announcer) announce() { a.publish(a.announcement()) }

// sayGoodbye announces that the service ends.
func (a *announcer) sayGoodbye() {
	n := a.unsigned()
	n.End = true
	a.publish(n.Sign(a.service.options.Key))
}

func (a *announcer) publish(text string) {
	s := a.service
	if err := s.conn.Publish(protocol.AnnounceSubject(s.options.ID), []byte(text)); err != nil {
		s.options.Log.Warn("announcement not sent", "service", s.options.ID, "error", err)
	}
}

// announcement returns an announcement with the tools, signed now.
func (a *announcer) announcement() string {
	n := a.unsigned()
	n.Tools = a.tools
	return n.Sign(a.service.options.Key)
}

// unsigned returns an announcement of this time without tools.
func (a *announcer) unsigned() protocol.Announcement {
	o := a.service.options
	request, response, _ := protocol.AnnouncedQueues(o.ID)
	return protocol.Announcement{
		Service: o.ID, Request: request.URL(), Response: response.URL(), Instance: a.instance,
		Started: a.started, Time: time.Now().UTC(), Lease: int(a.lease() / time.Second),
	}
}

// end says goodbye and waits until that is sent.
func (a *announcer) end() {
	if a != nil {
		close(a.stop)
		<-a.done
	}
}
