// Package runtime runs an organization of agents: it schedules agents, delivers
// messages between them, ends tasks and resumes them after a restart.
//
//	rt, err := runtime.New(runtime.Config{Store: store, Groups: groups, Model: models})
//	...
//	id, err := rt.StartTask(ctx, org.TaskSpec{Text: "summarize the report"})
//	...
//	task, err := rt.WaitTask(ctx, id) // task.Result is the answer
//
// An agent has no state but its journal. The next step of an agent is a pure function of its
// events (state.go), and one loop acts on it (agent.go). Agents run
// concurrently: an active agent has one goroutine, an idle agent has none.
// Every tool call passes the gate, and every event is committed before it is
// acted upon. A restarted process therefore continues where the journals end.
//
// The files by subject:
//
//   - model requests: generate.go (the flow from request to answer), request.go
//     and prompt.go (what is sent), answer.go (what comes back), context.go and
//     preview.go (what fits into the context window), deltas.go (live output);
//   - working patterns and limits: plan.go, toolgated.go, repetition.go and
//     steady.go (loops), limits.go, turns.go, budget.go;
//   - scheduling: schedule.go, task.go, message.go;
//   - a Go program in place of the first agent's model: driver.go;
//   - callers from outside the organization: invoke.go, record_buffer.go;
//   - what others use of a runtime: toolhost.go (built-in tools), artifact.go
//     (artifacts and stored contents), owner.go (records of modules).
//
// The package makes no permission decision (see packages org and gate) and has
// no storage format of its own (see journal.Store). It has more than sixty exported
// names: a Runtime is what orchestrators, built-in tools, modules and gateways call.
package runtime

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/failurelog"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// Config holds the dependencies and defaults of a Runtime. Store, Groups and
// Model are required.
type Config struct {
	Store  journal.Store
	Groups *toolgroups.Manager

	// Model returns the model of that name; "" is the organization's default
	// model.
	Model func(name string) (model.Model, error)

	RootPrompt        string // system prompt of root, after the text that the runtime adds itself
	Rounds            int    // answers one turn may have before it must end; 0 means 200
	Workspaces        string // directory for the workspaces of agents and callers; "" means they have none
	Data              string // data directory, which no task's workspace may contain; "" if there is none
	Workspace         string // overrides the default workspace of OrgConfig.Workspaces; "" overrides nothing
	WorkspaceReadOnly bool   // no agent and no caller writes to Workspace
	Storage           StorageLimits
	Limits            Limits
	Budget            TaskBudget // default limit on the model usage of each task

	// Authn verifies the tokens that callers present. With nil no caller is
	// authenticated to any auth service.
	Authn gate.TokenVerifier

	// Redact returns the beginning of the arguments of a denied call without the secrets
	// of the organization. It may be nil.
	Redact func(args []byte) []byte

	Console io.Writer        // output of console_print; nil discards it
	Log     *slog.Logger     // nil discards the log
	Now     func() time.Time // current time; nil means time.Now

	// QuestionTimeout is how long a question of a tool waits for the person who started the
	// task. After that it counts as declined. 0 is 5 minutes.
	QuestionTimeout time.Duration
	Fatal           func(error) // called once if the store has stopped, after all work was cancelled; nil logs the error

	// Observe is called with each event of a commit, in order, before anything
	// acts on the event. It is called by many goroutines and must be fast. It
	// may be nil.
	Observe func(journal.Event)
}

// Runtime runs an organization. All methods are safe for concurrent use. Close
// it before its store.
type Runtime struct {
	config   Config
	settings atomic.Pointer[settings] // the active settings; replaced whole by ApplyConfig
	store    journal.Store
	org      *org.Org
	gate     *gate.Gate
	log      *slog.Logger
	denials  *failurelog.Log // of denied calls

	tracker     *tracker // tasks and agents that this process is working on
	artifacts   *ArtifactStore
	workspaces  *workspaces
	recorded    *recordedBytes
	mail        *waitingMail
	disk        *diskGuard
	approvals   *approvalTable
	standing    *standingTable
	oversight   atomic.Pointer[approval.Oversight] // changed within commits only; nil for none
	credentials atomic.Pointer[func(string) bool]  // see SetCredentialCheck
	deltas      deltaHub                           // live output for WatchTask
	questions   openQuestions                      // of the tools of tasks

	ctx         context.Context // cancelled by Close, and when the store stops
	uncancelled context.Context // ctx without its cancellation, for commits that must finish during Close
	close       context.CancelCauseFunc
	fatal       sync.Once   // guards the call of Config.Fatal
	unnotify    func() bool // cancels the notification when the store stops
	advanceMu   sync.Mutex  // guards advanced
	advanced    bool        // this process has advanced the epoch

	toolNames   toolNameCache
	callerLocks fair.KeyedMutex // by caller: held by calls that change the caller's workflow state
	buffer      recordBuffer    // events of external calls without effects
	commits     atomic.Uint64   // number of commits of this process

	largeCommits *fair.Semaphore // see acquireLargeCommit
}

// New loads the organization from the store and records the changes of the registry from
// now on. No agent runs before StartTask or ResumeTask. If a required field of config is missing, the error names it.
func New(config Config) (*Runtime, error) {
	if err := config.complete(); err != nil {
		return nil, err
	}
	rt := &Runtime{config: config, store: config.Store, log: config.Log, denials: failurelog.New(config.Log), largeCommits: fair.NewSemaphore(maxLargeCommits)}
	rt.ctx, rt.close = context.WithCancelCause(context.Background())
	rt.uncancelled = context.WithoutCancel(rt.ctx)
	rt.buffer.commit = rt.commit
	var err error
	rt.org, err = org.LoadOrg(org.Config{Groups: config.Groups, Now: config.Now, Log: config.Log}, storeSource{config.Store})
	if err != nil {
		return nil, fmt.Errorf("load organization: %w", err)
	}
	rt.useSettings(config.settingsFor(OrgConfig{}))
	rt.approvals = newApprovalTable(rt.now)
	rt.standing = newStandingTable()
	if err := errors.Join(rt.loadApprovals(), rt.loadStanding()); err != nil {
		return nil, fmt.Errorf("load requests for approval: %w", err)
	}
	if err := rt.loadOversight(); err != nil {
		return nil, fmt.Errorf("load the oversight of operators: %w", err)
	}
	rt.tracker = newTracker(rt.ctx, rt.org, rt.now, rt.deliverDue)
	rt.tracker.hasRequests = rt.approvals.hasRequestsBeside
	limits := func() StorageLimits { return rt.settings.Load().Storage }
	rt.artifacts = &ArtifactStore{store: config.Store, org: rt.org, commit: rt.commit, now: rt.now, limits: limits}
	rt.recorded = &recordedBytes{org: rt.org, limits: limits, log: config.Log}
	if err := rt.recorded.load(config.Store); err != nil {
		return nil, err
	}
	if rt.mail, err = rt.loadMail(rt.ctx, func() int { return rt.settings.Load().Limits.Mail }); err != nil {
		return nil, fmt.Errorf("count waiting messages: %w", err)
	}
	rt.disk = newDiskGuard(config.Store, rt.recorded, limits, config.Log)
	rt.workspaces = &workspaces{base: config.Workspaces, data: config.Data, limits: limits, org: rt.org, disk: rt.disk,
		policy: func() WorkspacePolicy { return rt.settings.Load().Workspaces }, shares: shareStore{rt}}
	if config.Workspace != "" {
		if rt.config.Workspace, err = rt.ResolveWorkspace(config.Workspace); err != nil {
			return nil, err
		}
		rt.useSettings(rt.config.settingsFor(OrgConfig{}))
	}
	rt.gate, err = gate.New(gate.Config{Groups: config.Groups, Directory: rt.org, Log: config.Log, Authn: config.Authn, Quota: rt.recorded.checkPrincipal, Owner: rt.callOwner, Inputs: rt.taskInput, Approvals: rt})
	if err != nil {
		return nil, err
	}
	config.Groups.SetCommit(rt.commitGroups)
	rt.unnotify = func() bool { return false }
	if store, ok := config.Store.(journal.StopNotifier); ok {
		rt.unnotify = store.NotifyStop(rt.storeStopped)
	}
	return rt, nil
}

// complete checks the required fields and sets the defaults of the others.
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
	c.Storage, c.Limits = c.Storage.orDefault(defaultStorage), c.Limits.orDefault(defaultLimits)
	c.Budget = c.Budget.orDefault(TaskBudget{Tokens: defaultTokens, WarnAt: defaultWarnAt})
	if c.Console == nil {
		c.Console = io.Discard
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.QuestionTimeout == 0 {
		c.QuestionTimeout = questionTimeout
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	return nil
}

// Close ends all turns at their next step boundary, waits until no agent,
// delivery or external call is running, and flushes the recorded events.
// Unfinished turns continue when their task is resumed. Close may be called
// more than once.
func (rt *Runtime) Close() error {
	rt.close(errClosing)
	rt.unnotify()
	rt.approvals.stopTimer()
	rt.tracker.wait()
	return rt.buffer.close()
}

// Org returns the organization. Callers must not change it.
func (rt *Runtime) Org() *org.Org { return rt.org }

// GroupManager returns the registry of tool groups.
func (rt *Runtime) GroupManager() *toolgroups.Manager { return rt.config.Groups }

// Gate returns the gate that every tool call passes.
func (rt *Runtime) Gate() *gate.Gate { return rt.gate }

// JournalStore returns the store. Callers must not commit to it.
func (rt *Runtime) JournalStore() journal.Store { return rt.store }

func (rt *Runtime) now() time.Time { return rt.config.Now().UTC() }

// commit writes a batch to the store, publishes its events and wakes the agents
// that it sends messages to. A commit cannot be cancelled, so the result is
// always the real outcome. If the store has stopped, commit stops the runtime.
func (rt *Runtime) commit(b *journal.Batch) (uint64, error) {
	if b.Measured == nil {
		rt.recorded.measure(b, identity.ByAgent(b.Stream))
	}
	rt.mail.follow(b)
	seq, err := rt.store.Commit(rt.uncancelled, b)
	if errors.Is(err, journal.ErrClosed) {
		rt.storeStopped(err)
	}
	if err != nil {
		return 0, err
	}
	rt.deltas.advanceSeq(b.Events)
	rt.observe(b.Events)
	rt.tracker.schedule(b.Send)
	for _, m := range b.Send {
		if m.Due.IsZero() {
			rt.wake(identity.AgentID(m.To))
		}
	}
	for _, m := range b.Deliver {
		rt.wake(identity.AgentID(m.To))
	}
	if slices.ContainsFunc(b.Events, mayEndPause) {
		rt.wakeResumed()
	}
	return seq, nil
}

// storeStopped cancels all work after a commit failed with an unknown outcome:
// the state in memory may be ahead of the state on disk.
func (rt *Runtime) storeStopped(err error) {
	if rt.ctx.Err() != nil {
		return // closing: the store may be closed already
	}
	rt.fatal.Do(func() {
		rt.close(err) // no new work starts, and WaitTask returns err
		if rt.config.Fatal == nil {
			rt.log.Error("store stopped", "error", err)
			return
		}
		rt.config.Fatal(err)
	})
}

// storeRecords converts changes of the organization to the store's records.
func storeRecords(changes []org.RecordChange) []journal.Record {
	list := make([]journal.Record, len(changes))
	for i, c := range changes {
		list[i] = journal.Record{Kind: string(c.Kind), Key: c.Key, Value: c.Value}
	}
	return list
}
