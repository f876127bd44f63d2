package mcpserver

import (
	"container/list"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Limits of the events that are kept for clients that resume a stream.
const (
	maxEventBytesOfOne = 16 << 20 // of one sender
	maxEventBytesOfAll = 64 << 20
	streamCost         = 512 // bytes counted for a stream
	eventCost          = 64  // bytes counted for an event besides its own
)

// eventStore keeps the events of sessions in memory, so that a client can resume a stream. A sender gets at most
// its share, and no more than it leaves free for the others: its oldest events go first. It implements sdk.EventStore
// and is safe for concurrent use.
type eventStore struct {
	maxOfOne, maxOfAll int // bytes

	mu       sync.Mutex // guards what follows, and the streams
	total    int        // bytes
	senders  map[identity.Principal]*senderEvents
	sessions map[string]map[string]*eventStream // by session and stream
}

// senderEvents are the streams of one sender.
type senderEvents struct {
	bytes   int
	streams *list.List // of *eventStream; the stream that was written to last is at the end
}

// eventStream holds the events of one stream that have not been dropped.
type eventStream struct {
	session, id string
	sender      identity.Principal
	place       *list.Element // in the list of its sender
	first       int           // the index of events[0] in the stream
	events      [][]byte
	held        *heldCall // the call that writes to it; nil if it is not held
}

func newEventStore() *eventStore {
	return &eventStore{
		maxOfOne: maxEventBytesOfOne, maxOfAll: maxEventBytesOfAll,
		senders: map[identity.Principal]*senderEvents{}, sessions: map[string]map[string]*eventStream{},
	}
}

// Open implements sdk.EventStore.
func (s *eventStore) Open(ctx context.Context, sessionID, streamID string) error {
	sc := scopeFrom(ctx)
	if sc == nil {
		return errcode.New(errcode.Internal, "keep the events of stream %q: the request has no sender", streamID)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sessions[sessionID][streamID] != nil {
		return nil
	}
	sender := sc.sender.Holder()
	if s.senders[sender] == nil {
		s.senders[sender] = &senderEvents{streams: list.New()}
	}
	if s.sessions[sessionID] == nil {
		s.sessions[sessionID] = map[string]*eventStream{}
	}
	stream := &eventStream{session: sessionID, id: streamID, sender: sender, held: heldCallOf(ctx)}
	stream.place = s.senders[sender].streams.PushBack(stream)
	s.sessions[sessionID][streamID] = stream
	s.makeRoom(sender, streamCost)
	s.count(sender, streamCost)
	return nil
}

// Append implements sdk.EventStore. An event for which there is no room is dropped with all before it.
func (s *eventStore) Append(_ context.Context, sessionID, streamID string, data []byte) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := s.sessions[sessionID][streamID]
	if stream == nil {
		return fmt.Errorf("the events of stream %q are not kept any more", streamID)
	}
	s.senders[stream.sender].streams.MoveToBack(stream.place)
	if !s.makeRoom(stream.sender, len(data)+eventCost) {
		s.dropEvents(stream, len(stream.events))
		stream.first++
		return nil
	}
	stream.events = append(stream.events, data)
	s.count(stream.sender, len(data)+eventCost)
	return nil
}

// After implements sdk.EventStore.
func (s *eventStore) After(_ context.Context, sessionID, streamID string, index int) iter.Seq2[[]byte, error] {
	events, err := s.after(sessionID, streamID, index)
	return func(yield func([]byte, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for _, data := range events {
			if !yield(data, nil) {
				return
			}
		}
	}
}

// after returns the events of a stream behind an index.
func (s *eventStore) after(sessionID, streamID string, index int) ([][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := s.sessions[sessionID][streamID]
	if stream == nil || index+1 < stream.first || index+1 > stream.first+len(stream.events) {
		if stream != nil && index == -1 && streamID == "" { // a client that begins the stream of its session
			return nil, nil
		}
		return nil, sdk.ErrEventsPurged
	}
	return slices.Clone(stream.events[index+1-stream.first:]), nil
}

// SessionClosed implements sdk.EventStore.
func (s *eventStore) SessionClosed(_ context.Context, sessionID string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, stream := range s.sessions[sessionID] {
		s.remove(stream)
	}
	return nil
}

// resume returns the held call of the stream that an event belongs to, nil if it is not held. It reports false if
// the events behind this one are not kept.
func (s *eventStore) resume(sessionID, eventID string) (held *heldCall, ok bool) {
	streamID, number, _ := strings.Cut(eventID, "_")
	index, err := strconv.Atoi(number)
	if err != nil || index < 0 {
		return nil, false
	}
	if _, err := s.after(sessionID, streamID, index); err != nil {
		return nil, false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	stream := s.sessions[sessionID][streamID]
	if stream == nil {
		return nil, false
	}
	return stream.held, true
}

// count adds bytes to the count of a sender. It must be called with mu held.
func (s *eventStore) count(sender identity.Principal, bytes int) {
	s.total += bytes
	s.senders[sender].bytes += bytes
}

// makeRoom drops the oldest events of a sender until it may keep so many bytes more. It reports false if it may
// not without any. It must be called with mu held.
func (s *eventStore) makeRoom(sender identity.Principal, bytes int) bool {
	own := s.senders[sender]
	for at := own.streams.Front(); at != nil && !s.fits(own, bytes); {
		stream, next := at.Value.(*eventStream), at.Next()
		for len(stream.events) > 0 && !s.fits(own, bytes) {
			s.dropEvents(stream, 1)
		}
		if len(stream.events) == 0 && next != nil && !stream.inUse() {
			s.remove(stream)
		}
		at = next
	}
	return s.fits(own, bytes)
}

// fits reports whether a sender may keep so many bytes more. It must be called with mu held.
func (s *eventStore) fits(own *senderEvents, bytes int) bool {
	return own.bytes+bytes <= min(s.maxOfOne, s.maxOfAll-s.total)
}

// inUse reports whether events may still be written to a stream. These are the streams of sessions
// and of calls in progress.
func (e *eventStream) inUse() bool { return e.id == "" || e.held != nil && !e.held.hasEnded() }

// dropEvents drops the first n events of a stream. It must be called with mu held.
func (s *eventStore) dropEvents(stream *eventStream, n int) {
	for _, data := range stream.events[:n] {
		s.count(stream.sender, -len(data)-eventCost)
	}
	clear(stream.events[:n])
	stream.events = stream.events[n:]
	stream.first += n
}

// remove forgets a stream. It must be called with mu held.
func (s *eventStore) remove(stream *eventStream) {
	s.dropEvents(stream, len(stream.events))
	s.count(stream.sender, -streamCost)
	own := s.senders[stream.sender]
	own.streams.Remove(stream.place)
	if own.streams.Len() == 0 {
		delete(s.senders, stream.sender)
	}
	if streams := s.sessions[stream.session]; streams != nil {
		delete(streams, stream.id)
		if len(streams) == 0 {
			delete(s.sessions, stream.session)
		}
	}
}
