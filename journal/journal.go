// Package journal owns what happened: the events of agents and of the
// organization, and the interface of the log that keeps them.
//
// Every agent has one stream, its journal, with one writer: the agent. The
// organization has a stream too (Org). A Batch puts events, messages for
// others and changed records into the log in one commit. The package stores
// nothing and decides nothing: persist implements Log, runtime writes and
// folds.
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

// Errors a Log gives.
var (
	// ErrClosed: the log is closed or has stopped after a failed commit.
	// Nothing more is kept; the process has to end.
	ErrClosed = errors.New("nothing more is taken")
	// ErrDamaged: a record is not what was written. It must not be used.
	ErrDamaged = errors.New("damaged")
)

// Org is the stream of the organization.
const Org identity.AgentID = ""

// Event is one thing that happened. Agent and Role name whom it is about,
// Stream whose journal it stands in.
type Event struct {
	Seq    uint64 // place in the whole log, from 1; set by Commit
	At     time.Time
	Stream identity.AgentID
	Task   identity.TaskID
	Agent  identity.AgentID
	Role   string
	Body   Body
}

// Message is a message on its way to an agent. Seq is set by Commit.
type Message struct {
	model.Message
	Seq uint64
	Due time.Time // a delayed message's; zero for one that may be read now
}

// Record is a keyed record that is replaced whole; a nil Value removes it.
type Record struct {
	Kind  string
	Key   string
	Value []byte
}

// RecordInfo is a record as a listing gives it, without its value.
type RecordInfo struct {
	Key  string
	Size int // bytes of the value
}

// Batch is what one commit makes last. Its fields are applied together or not
// at all.
type Batch struct {
	Stream  identity.AgentID // whose journal Events go to
	Events  []Event
	Send    []Message          // to inboxes, or to the delayed ones when Due is set
	Consume []uint64           // messages of Stream's inbox that Events took in
	Deliver []Message          // delayed messages to be moved to their inboxes; those that no longer wait are passed over
	Purge   []identity.AgentID // agents that are no more: their inbox and what is delayed for them is let go
	Put     []Record
	Idle    bool // Stream has nothing more to do unless its inbox holds something

	// Prepare, if set, runs first and in commit order, once: it decides, and
	// may add to the batch; what is there stays as it is. Its error keeps the batch out and is Commit's.
	Prepare func(*Batch) error
}

// Log keeps events, messages and records. Methods are safe for concurrent
// use. Commit returns when the batch is on disk, with the sequence number of
// its last event; once it is queued, ctx is ignored and the caller gets the
// real outcome. An error that is not Prepare's means the outcome is unknown:
// the log takes nothing more.
type Log interface {
	Commit(ctx context.Context, b *Batch) (seq uint64, err error)
	Read(ctx context.Context, stream identity.AgentID, after uint64) iter.Seq2[Event, error]
}

// Mailbox is what waits for an agent.
type Mailbox interface {
	Inbox(ctx context.Context, agent identity.AgentID) ([]Message, error) // in order of Seq
	Delayed(ctx context.Context) ([]Message, error)                       // in order of Due, then Seq
	Runnable(ctx context.Context) ([]identity.AgentID, error)             // agents with unfinished business
}

// Records are the keyed records.
type Records interface {
	Record(ctx context.Context, kind, key string) (value []byte, err error) // nil when absent
	Records(ctx context.Context, kind, prefix string) iter.Seq2[Record, error]
	// Entries is Records without the values: they may be large. It does not
	// look at them, so that a damaged one is listed too.
	Entries(ctx context.Context, kind, prefix string) iter.Seq2[RecordInfo, error]
}

// Follower is the whole log, in order.
type Follower interface {
	// Follow yields the events after a sequence number and, when wait is set,
	// those to come until ctx ends.
	Follow(ctx context.Context, after uint64, wait bool) iter.Seq2[Event, error]
	// FollowTask is Follow for one task. Of the events of others it yields
	// the numbers alone, without a body: how far the log was read.
	FollowTask(ctx context.Context, task identity.TaskID, after uint64, wait bool) iter.Seq2[Event, error]
	Seq() uint64 // the number of the last event
}

// Store is all of it.
type Store interface {
	Log
	Mailbox
	Records
	Follower
}

// header is what every event has on the wire and on disk.
type header struct {
	Seq    uint64           `json:"seq,omitempty"`
	At     time.Time        `json:"at"`
	Type   Type             `json:"type"`
	Stream identity.AgentID `json:"stream,omitempty"`
	Task   identity.TaskID  `json:"task,omitempty"`
	Agent  identity.AgentID `json:"agent,omitempty"`
	Role   string           `json:"role,omitempty"`
}

// MarshalJSON gives one flat object: the header's fields, then the body's.
func (e Event) MarshalJSON() ([]byte, error) {
	if e.Body == nil {
		return nil, errors.New("the event has no body")
	}
	head, err := json.Marshal(header{e.Seq, e.At, e.Body.Type(), e.Stream, e.Task, e.Agent, e.Role})
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

// UnmarshalJSON takes what MarshalJSON gives; a type it does not know is an error.
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
