// Package trigger starts tasks without a person: for requests that carry a secret, at times of
// a schedule, and after other tasks.
//
//	e, err := trigger.NewEngine(trigger.Config{…})
//	e.ReplaceRules(rules)            // when a configuration is applied
//	hook, ok := e.FindHook(name, header, body)
//	stop := e.RunDue(ctx)            // schedules, and tasks that have ended
//
// A trigger is a caller of its own (identity.ByTrigger) in its role. The gate, the limits of
// callers and the record treat what it starts as what any caller starts. The package reads no
// configuration files and serves no HTTP.
package trigger

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/failurelog"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// storeOwner is the owner of the record of the triggers.
const storeOwner toolgroups.GroupOwner = "triggers"

// Config configures an Engine. Runtime, Start and LastSeq are required.
type Config struct {
	Runtime *runtime.Runtime
	Start   func(context.Context, org.TaskSpec) (identity.TaskID, error)
	LastSeq func() uint64    // of the store
	Now     func() time.Time // never goes back; nil is time.Now
	Log     *slog.Logger     // nil discards
}

// Engine starts the tasks of triggers. Its methods are safe for concurrent use.
type Engine struct {
	config   Config
	log      *failurelog.Log
	now      func() time.Time
	decoy    [32]byte // key of the signature that is checked for triggers without one
	wake     chan struct{}
	firing   sync.Mutex // serializes FireDue
	restored bool       // the record was read; guarded by firing
	stored   record     // guarded by firing

	// seenBefore are the sequence numbers that the ends reach which an earlier process has seen, or
	// that were before the trigger. By the name of the trigger; guarded by firing.
	seenBefore map[string]uint64

	mu        sync.Mutex // guards the fields below
	rules     []Rule
	suspended bool              // the triggers are not known
	states    map[string]*state // by the name of the trigger
	ended     []identity.TaskID // tasks that have ended since the last FireDue
	rescan    bool              // ended is not complete
}

// maxEnded is the most ended tasks that are remembered. With more, all tasks are looked at.
const maxEnded = 10_000

// NewEngine returns an Engine without triggers. It does nothing before ReplaceRules. The error names
// the field of Config that is missing.
func NewEngine(c Config) (*Engine, error) {
	if c.Runtime == nil || c.Start == nil || c.LastSeq == nil {
		return nil, errors.New("trigger: Config.Runtime, Config.Start or Config.LastSeq is missing")
	}
	e := &Engine{
		config: c, log: failurelog.New(c.Log), now: c.Now,
		wake: make(chan struct{}, 1), states: map[string]*state{}, rescan: true, suspended: true,
	}
	if e.now == nil {
		e.now = time.Now
	}
	_, _ = rand.Read(e.decoy[:]) // never fails
	return e, nil
}

// ReplaceRules replaces all triggers. One that is removed starts nothing any more. The tasks
// that it has started go on.
func (e *Engine) ReplaceRules(list []Rule) {
	e.mu.Lock()
	defer e.mu.Unlock()
	old := e.states
	e.rules, e.states, e.suspended = list, map[string]*state{}, false
	var tasks []org.Task
	for _, r := range list {
		s, known := old[r.Name]
		if !known {
			s = &state{rate: fair.NewRateTable[string](1), since: e.now().UTC(), seq: e.config.LastSeq()}
			if tasks == nil {
				tasks = e.config.Runtime.Org().ListTasks()
			}
			s.restore(r.Name, tasks)
		}
		s.setLimits(r)
		e.states[r.Name] = s
	}
	e.notify()
}

// SuspendRules removes all triggers and keeps their record: after ReplaceRules they start what has come due
// meanwhile.
func (e *Engine) SuspendRules() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rules, e.suspended = nil, true
}

// ruleByName returns a trigger.
func (e *Engine) ruleByName(name string) (Rule, bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, r := range e.rules {
		if r.Name == name {
			return r, true
		}
	}
	return Rule{}, false
}

// ObserveEvent notes a task that has ended. It is called with each event of a commit, and
// returns at once.
func (e *Engine) ObserveEvent(event journal.Event) {
	if _, ended := event.Body.(journal.TaskEnded); !ended {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.ended) < maxEnded {
		e.ended = append(e.ended, event.Task)
	} else {
		e.rescan = true
	}
	e.notify()
}

// notify wakes RunDue.
func (e *Engine) notify() {
	select {
	case e.wake <- struct{}{}:
	default:
	}
}

// maxDelay is the longest time between two looks at the schedules. The wall clock may jump, and
// a machine may sleep.
const maxDelay = 30 * time.Second

// RunDue starts what schedules and ended tasks fire, until ctx ends or stop is called. stop
// waits for a start in progress.
func (e *Engine) RunDue(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			timer := time.NewTimer(e.FireDue(ctx))
			select {
			case <-ctx.Done():
			case <-e.wake:
			case <-timer.C:
			}
			timer.Stop()
		}
	}()
	return func() {
		cancel()
		<-done
	}
}

// FireDue starts the tasks of schedules whose time has come, and those after tasks that have
// ended. It returns how long to wait until the next call, at most 30 s. An error is logged: a
// start that fails is not repeated.
func (e *Engine) FireDue(ctx context.Context) time.Duration {
	e.firing.Lock()
	defer e.firing.Unlock()
	rules, ended, rescan, ok := e.takeDue()
	if !ok {
		return maxDelay
	}
	before, err := e.restore(ctx, rules)
	if err != nil {
		e.log.LogFailure(slog.LevelError, "record of triggers not read", "triggers", err)
		e.putBack(ended)
		return maxDelay
	}
	e.fireEnded(ctx, rules, ended, rescan)
	delay := e.fireSchedules(ctx, rules)
	if after, _ := json.Marshal(e.stored); string(after) != string(before) {
		e.save(ctx, after)
	}
	return delay
}

// takeDue returns the triggers, and which tasks have ended since the last call. It reports false
// while the triggers are suspended.
func (e *Engine) takeDue() (rules []Rule, ended []identity.TaskID, rescan, ok bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.suspended {
		return nil, nil, false, false
	}
	rules, ended, rescan = e.rules, e.ended, e.rescan
	e.ended, e.rescan = nil, false
	return rules, ended, rescan, true
}

// putBack undoes takeDue. The next call also looks at all tasks again.
func (e *Engine) putBack(ended []identity.TaskID) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ended, e.rescan = append(ended, e.ended...), true
}

// logFailure logs a start that failed.
func (e *Engine) logFailure(r Rule, err error) {
	e.log.LogFailure(slog.LevelWarn, "trigger started no task", identity.ByTrigger(r.Name, r.RoleID).String(), err, "trigger", r.Name)
}

// record is what is stored about triggers.
type record struct {
	Times map[string]firedTime `json:"times,omitempty"` // by the name of the trigger
	Ended map[string]uint64    `json:"ended,omitempty"` // sequence number that the ends that a trigger has seen reach
}

// firedTime is the last time of a schedule that has fired, or when the schedule was first seen.
type firedTime struct {
	Schedule string    `json:"schedule"` // with its zone
	At       time.Time `json:"at"`
}

// notAfter returns t, or now if t is in the future. The clock was ahead, and later times must not
// wait for t. The keys of their tasks prevent that times fire twice.
func (t firedTime) notAfter(now time.Time) firedTime {
	if t.At.After(now) {
		t.At = now.UTC()
	}
	return t
}

// restore reads the record once, and makes it have the triggers of rules and no others. A
// trigger that is new looks at nothing that was before. It returns the record as it was stored.
func (e *Engine) restore(ctx context.Context, rules []Rule) (before []byte, err error) {
	if !e.restored {
		data, err := e.config.Runtime.OwnerStore().ReadValue(ctx, storeOwner)
		if err == nil && data != nil {
			err = json.Unmarshal(data, &e.stored)
		}
		if err != nil {
			return nil, err
		}
		e.restored = true
	}
	before, _ = json.Marshal(e.stored) // maps of such types always marshal
	kept, seenBefore := record{Times: map[string]firedTime{}, Ended: map[string]uint64{}}, map[string]uint64{}
	for _, r := range rules {
		since, seq := e.firstSeen(r.Name)
		switch r.Type {
		case config.TriggerCron:
			now := firedTime{Schedule: r.Schedule + " " + r.Zone, At: since}
			if old, known := e.stored.Times[r.Name]; known && old.Schedule == now.Schedule {
				now = old.notAfter(e.now())
			} else if known { // times of the old schedule do not count
				now.At = e.now().UTC()
			}
			kept.Times[r.Name] = now
		case config.TriggerAfterTask:
			seen, known := e.stored.Ended[r.Name]
			if !known {
				seen = seq
			}
			kept.Ended[r.Name], seenBefore[r.Name] = seen, seen
			if first, there := e.seenBefore[r.Name]; known && there {
				seenBefore[r.Name] = first
			}
		}
	}
	e.stored, e.seenBefore = kept, seenBefore
	return before, nil
}

// firstSeen returns when this process has seen a trigger first, and the sequence number of the
// store then.
func (e *Engine) firstSeen(name string) (since time.Time, seq uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if s := e.states[name]; s != nil {
		return s.since, s.seq
	}
	return e.now().UTC(), e.config.LastSeq()
}

// save stores the record. If that fails, the keys of the tasks prevent that a restart starts
// them again.
func (e *Engine) save(ctx context.Context, data []byte) {
	if err := e.config.Runtime.OwnerStore().WriteValue(context.WithoutCancel(ctx), storeOwner, data); err != nil {
		e.log.LogFailure(slog.LevelError, "record of triggers not written", "triggers", err)
	}
}

// byEnd orders tasks by their ends.
func byEnd(a, b org.Task) int {
	return cmp.Or(cmp.Compare(a.EndSeq, b.EndSeq), cmp.Compare(a.ID, b.ID))
}
