// Package journal defines the events of agents and of the organization, and the
// interfaces of the store that holds them.
//
// Every agent has one stream, its journal, with the agent as its only writer.
// The organization has a stream too (Org). A Batch commits events, messages to
// agents and changed records together:
//
//	seq, err := store.Commit(ctx, &journal.Batch{
//		Stream: agent,
//		Events: []journal.Event{{At: now, Agent: agent, Body: body}},
//	})
//
// The package stores nothing and makes no decisions. Package persist implements
// Store on disk, and package memory in memory. Package runtime writes events
// and folds them into the state of agents.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// Errors of a Store.
var (
	// ErrClosed is returned when the store is closed, or has stopped after a
	// failed commit. The process must end then, since it cannot commit any
	// more.
	ErrClosed = errors.New("journal closed")
	// ErrDamaged is returned for data that differs from what was written. It
	// must not be used.
	ErrDamaged = errors.New("damaged")
)

// Org is the id of the organization's stream.
const Org identity.AgentID = ""

// Event is a recorded event. Task, Agent and Role name the subject of the event. Stream names the
// journal that has it.
type Event struct {
	Seq uint64 // sequence number in the whole log, from 1; set by Commit
	// time of the event
	At     time.Time
	Stream identity.AgentID
	Task   identity.TaskID
	Agent  identity.AgentID
	Role   string
	Body   EventBody
}

// Message is a message to an agent that was not received yet. Seq is set by
// Commit.
type Message struct {
	model.Message
	Seq uint64
	Due time.Time // delivery time of a delayed message; zero for others
}

// Record is a stored value with a kind and a key. A nil Value removes it.
type Record struct {
	Kind  string
	Key   string
	Value []byte
}

// RecordInfo describes a record in a listing, without its value.
type RecordInfo struct {
	Key  string
	Size int // bytes of the value
}

// Batch is the content of one commit. Its fields are applied together or not at
// all.
type Batch struct {
	Stream  identity.AgentID // the stream of Events
	Events  []Event
	Send    []Message          // added to the inboxes, or to the delayed messages if Due is set
	Consume []uint64           // sequence numbers of messages in Stream's inbox that Events include
	Deliver []Message          // delayed messages to move to their inboxes; those not waiting any more are ignored
	Purge   []identity.AgentID // terminated agents, whose inboxes and delayed messages are removed
	Put     []Record
	Idle    bool // Stream has nothing to do unless its inbox has messages

	// Prepare, if set, is called once before the batch is applied, in commit
	// order. It makes the decisions that need this order, and may add to the
	// batch but not change what is in it. If it fails, nothing is committed and
	// Commit returns its error.
	Prepare func(*Batch) error

	// Measured, if set, is called once after Prepare, in commit order, with the size of
	// each event in bytes, as it is encoded. The records that it returns are added to
	// Put.
	Measured func(sizes []int) []Record
}

// Log is an append-only log of events. Methods are safe for concurrent use.
//
// Commit returns the sequence number of the batch's last event when the batch
// is on disk. Once the batch is queued the end of ctx is ignored and Commit
// returns the real outcome. An error of Prepare, of a ctx that has
// ended before, or of an invalid batch without Prepare leaves the log as it is. After any other
// error the outcome is unknown and the log accepts no more batches.
//
// Read yields the events of a stream after a sequence number, in order.
type Log interface {
	Commit(ctx context.Context, b *Batch) (seq uint64, err error)
	Read(ctx context.Context, stream identity.AgentID, after uint64) iter.Seq2[Event, error]
}

// Mailbox reads undelivered and delayed messages.
type Mailbox interface {
	ReadInbox(ctx context.Context, agent identity.AgentID) ([]Message, error) // sorted by Seq
	DelayedMessages(ctx context.Context) ([]Message, error)                   // of all agents, sorted by Due, then Seq
	RunnableAgents(ctx context.Context) ([]identity.AgentID, error)           // agents with unfinished work
}

// RecordReader reads the stored records.
type RecordReader interface {
	ReadRecord(ctx context.Context, kind, key string) (value []byte, err error) // nil if there is none
	// ReadRecords yields the records of a kind whose keys have a prefix, sorted by
	// key.
	ReadRecords(ctx context.Context, kind, prefix string) iter.Seq2[Record, error]
	// ReadRecordsFrom yields the records of a kind whose keys are not less than
	// from, sorted by key.
	ReadRecordsFrom(ctx context.Context, kind, from string) iter.Seq2[Record, error]
	// ReadEntries is ReadRecords without the values, which may be large. It does not read them, so
	// it also yields damaged records.
	ReadEntries(ctx context.Context, kind, prefix string) iter.Seq2[RecordInfo, error]
}

// Values of wait in the methods of EventFollower.
const (
	StoredOnly  = false // end after the stored events
	WaitForMore = true  // then wait for new events
)

// EventFollower reads the whole log in order.
type EventFollower interface {
	// FollowEvents yields the events after a sequence number. With wait (WaitForMore) it
	// continues with new events until ctx ends.
	FollowEvents(ctx context.Context, after uint64, wait bool) iter.Seq2[Event, error]
	// FollowTask is FollowEvents for one task. For events of other tasks it yields
	// only the sequence number, without a body, to report how far the log was
	// read.
	FollowTask(ctx context.Context, task identity.TaskID, after uint64, wait bool) iter.Seq2[Event, error]
	// FollowMatching is FollowEvents for the events that match. For others it yields
	// only the sequence number, as FollowTask does.
	FollowMatching(ctx context.Context, match EventFilter, after uint64, wait bool) iter.Seq2[Event, error]
	LastSeq() uint64 // sequence number of the last event
}

// EventSeeker reads the log from its end, and finds a time in it.
type EventSeeker interface {
	// EventsBefore yields the events before a sequence number, newest first. For events that do not
	// match it yields only the sequence number.
	EventsBefore(ctx context.Context, match EventFilter, before uint64) iter.Seq2[Event, error]
	// SeqBefore returns the sequence number of the last event before a time, 0 if there is
	// none. It reads few events and assumes that their times ascend.
	SeqBefore(ctx context.Context, at time.Time) (uint64, error)
}

// StopNotifier is implemented by stores that can stop without a commit that fails.
type StopNotifier interface {
	// NotifyStop calls fn in its own goroutine when the store stops, except by
	// Close. The function that it returns cancels that, and reports whether it
	// did so before the call.
	NotifyStop(fn func(reason error)) (cancel func() bool)
}

// Store is a complete store.
type Store interface {
	Log
	Mailbox
	RecordReader
	EventFollower
	EventSeeker
}

// DiskStore is implemented by stores that are on a disk.
type DiskStore interface {
	// DiskSpace returns the space of the disk. The error is errors.ErrUnsupported
	// if the system or the file system does not report it.
	DiskSpace() (DiskSpace, error)
}

// DiskSpace is the space of a disk in bytes.
type DiskSpace struct {
	Free  uint64 // that the process may use
	Total uint64
}

// header has the fields that all events have in JSON, in the API and on disk.
type header struct {
	Seq    uint64           `json:"seq,omitempty"`
	At     time.Time        `json:"at"`
	Type   EventType        `json:"type"`
	Stream identity.AgentID `json:"stream,omitempty"`
	Task   identity.TaskID  `json:"task,omitempty"`
	Agent  identity.AgentID `json:"agent,omitempty"`
	Role   string           `json:"role,omitempty"`
}

// MarshalJSON encodes an event as one flat object: first the fields of the header, then the fields
// of the body.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Body == nil {
		return nil, errors.New("event has no body")
	}
	head, err := json.Marshal(header{e.Seq, e.At, e.Body.EventType(), e.Stream, e.Task, e.Agent, e.Role})
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(e.Body)
	if err != nil {
		return nil, err
	}
	if len(body) == len("{}") {
		return head, nil
	}
	return append(append(head[:len(head)-1], ','), body[1:]...), nil
}

// UnmarshalJSON decodes the output of MarshalJSON. It rejects unknown event
// types.
func (e *Event) UnmarshalJSON(data []byte) error {
	var h header
	if err := json.Unmarshal(data, &h); err != nil {
		return err
	}
	body, err := decodeBody(h.Type, data)
	if err != nil {
		return err
	}
	*e = Event{h.Seq, h.At, h.Stream, h.Task, h.Agent, h.Role, body}
	return nil
}
