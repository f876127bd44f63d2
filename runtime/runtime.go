// Package runtime owns the running organization: it drives agents, carries
// their messages, ends tasks, and goes on after a restart.
//
// An agent is its journal: what it does next is a pure function of the events
// in it (state.go), and one loop (agent.go) acts on that. Agents run
// concurrently, each in one goroutine while it has something to do and in
// none while it waits. Every call goes through the gate; everything that
// happened is committed before it is acted upon. The package decides no
// permission (org, gate) and stores nothing itself (journal.Store).
//
// A model is asked through question.go (what it is told), think.go (its
// answer), compress.go and preview.go (what fits its window), plan.go (agents
// that plan first), gated.go (agents that answer from tools alone), repeat.go
// and budget.go (when to stop). What it says meanwhile is live.go.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config is what a Runtime needs.
type Config struct {
	Store  journal.Store
	Groups *toolgroups.Manager

	// Model finds a model by name; "" is the organization's default.
	Model func(name string) (model.Model, error)

	RootPrompt string // what root is told beside what the runtime tells it
	Rounds     int    // answers in one turn that do not end it; 0 is 200
	Workspaces string // where agents' own workspaces are made; "" is nowhere
	Data       string // the data directory, which no task's workspace may hold; "" when there is none
	Storage    Storage
	Budget     Budget // of the models of each task

	// Authn asks auth services about tokens that callers show; nil vouches for
	// nobody.
	Authn gate.Authn

	Console io.Writer        // where console_print writes; nil discards
	Log     *slog.Logger     // nil discards
	Now     func() time.Time // the seam for time; nil is time.Now
	Fatal   func(error)      // called once when the store has stopped, and all work with it; nil logs

	// Observe is called with each event of a commit, in order, before anybody
	// acts on it: by many goroutines, and it must be quick. Nil is nobody.
	Observe func(journal.Event)
}

// Runtime runs an organization. All methods are safe for concurrent use.
type Runtime struct {
	config Config
	rules  atomic.Pointer[settings] // in force
	store  journal.Store
	org    *org.Org
	gate   *gate.Gate
	log    *slog.Logger
	quotas builtin.QuotaManager
	blobs  blobs
	deltas deltaHub

	ctx         context.Context // ends with Close
	uncancelled context.Context // that of what Close does not cut short
	close       context.CancelCauseFunc
	work        sync.WaitGroup // actors and deliveries
	fatal       sync.Once
	configureMu sync.Mutex // held by Configure
	advanceMu   sync.Mutex // guards advanced
	advanced    bool       // the epoch was moved by this process

	requests requestLog
	turns    fair.KeyedMutex // of callers from outside, for calls that move their workflow state
	buffer   recordBuffer    // of callers' calls that change nothing
	commits  atomic.Uint64   // so far

	mu           sync.Mutex // guards what follows; held for no I/O
	active       map[identity.AgentID]*actor
	tasks        map[identity.TaskID]*taskRun
	cachedAgents int // agents at rest that are remembered, in all tasks
}

// taskRun is a task that is being worked on.
type taskRun struct {
	id      identity.TaskID
	record  *org.Task         // as stored; nil when only the store knows it
	spent   taskUsage         // by its models
	live    int               // agents at work and deliveries under way
	delayed []journal.Message // by Due, then Seq
	timer   *time.Timer       // for the first of delayed
	ended   bool
	mailed  bool // mail was sent since it came to rest
	done    chan struct{}

	greeted map[identity.AgentID]bool       // tool-gated agents that were asked
	cached  map[identity.AgentID]*idleAgent // some of its agents at rest
}

// New loads the organization from the store. Nothing runs before Start or
// Resume. The error names the field of Config that is missing.
func New(config Config) (*Runtime, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	rt := &Runtime{
		config: config, store: config.Store, log: config.Log,
		active: map[identity.AgentID]*actor{},
		tasks:  map[identity.TaskID]*taskRun{},
	}
	rt.ctx, rt.close = context.WithCancelCause(context.Background())
	rt.uncancelled = context.WithoutCancel(rt.ctx)
	rt.buffer.commit = rt.commit
	rt.rules.Store(config.rules(OrgConfig{}))
	var err error
	rt.org, err = org.Load(org.Config{Groups: config.Groups, Now: config.Now, Log: config.Log}, source{config.Store})
	if err != nil {
		return nil, fmt.Errorf("load the organization: %w", err)
	}
	rt.gate, err = gate.New(gate.Config{Groups: config.Groups, Directory: rt.org, Log: config.Log, Authn: config.Authn})
	return rt, err
}

func (c *Config) complete() error {
	switch {
	case c.Store == nil:
		return errors.New("runtime: Config.Store is missing")
	case c.Groups == nil:
		return errors.New("runtime: Config.Groups is missing")
	case c.Model == nil:
		return errors.New("runtime: Config.Model is missing")
	}
	if c.Rounds == 0 {
		c.Rounds = 200
	}
	c.Storage = c.Storage.or(defaultStorage)
	if c.Console == nil {
		c.Console = io.Discard
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// Close ends all turns at their next boundary and returns when all is quiet.
// What was under way goes on when the task is resumed. It may be called twice.
func (rt *Runtime) Close() error {
	rt.close(errClosing)
	rt.mu.Lock()
	for _, run := range rt.tasks {
		run.stopTimer()
	}
	rt.mu.Unlock()
	rt.work.Wait()
	return rt.buffer.close()
}

// Org gives the organization, for reading.
func (rt *Runtime) Org() *org.Org { return rt.org }

// Groups gives the registry.
func (rt *Runtime) Groups() *toolgroups.Manager { return rt.config.Groups }

// Gate gives the gate.
func (rt *Runtime) Gate() *gate.Gate { return rt.gate }

// Store gives the store, for reading.
func (rt *Runtime) Store() journal.Store { return rt.store }

func (rt *Runtime) now() time.Time { return rt.config.Now().UTC() }

// commit puts a batch on disk and wakes who got mail. Once begun it is not
// given up: the outcome is the real one. When the store has stopped nothing
// can go on.
func (rt *Runtime) commit(b *journal.Batch) (uint64, error) {
	seq, err := rt.store.Commit(rt.uncancelled, b)
	if errors.Is(err, journal.ErrClosed) {
		rt.stopped(err)
	}
	if err != nil {
		return 0, err
	}
	rt.deltas.committed(b.Events)
	rt.observe(b.Events)
	for _, m := range b.Send {
		if m.Due.IsZero() {
			rt.wake(identity.AgentID(m.To))
		} else {
			rt.schedule(m)
		}
	}
	for _, m := range b.Deliver {
		rt.wake(identity.AgentID(m.To))
	}
	return seq, nil
}

// stopped ends all work: the outcome of a commit is unknown, so what is in
// memory may be ahead of what is on disk.
func (rt *Runtime) stopped(err error) {
	if rt.ctx.Err() != nil {
		return // closing: the store may be closed already
	}
	rt.fatal.Do(func() {
		rt.close(err) // nothing more begins, and who waits is told
		if rt.config.Fatal == nil {
			rt.log.Error("the store has stopped", "error", err)
			return
		}
		rt.config.Fatal(err)
	})
}

// records gives the organization's changes to the store.
func records(changes []org.Change) []journal.Record {
	list := make([]journal.Record, len(changes))
	for i, c := range changes {
		list[i] = journal.Record{Kind: string(c.Kind), Key: c.Key, Value: c.Value}
	}
	return list
}
