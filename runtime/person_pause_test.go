package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	goruntime "runtime"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// pauses are the three things that can be paused.
var pauses = []string{"task", "role", "all"}

// pause pauses a thing of a task. A role without agents is not paused.
func (fx *fixture) pause(t *testing.T, what string, id identity.TaskID) (paused bool) {
	t.Helper()
	var err error
	switch what {
	case "task":
		err = fx.PauseTask(t.Context(), operator, id, "look first")
	case "all":
		err = fx.PauseOrg(operator, "look first")
	default:
		role, _ := fx.Org().RoleByName("worker")
		if !slices.ContainsFunc(fx.Org().ListAgents(id), func(a org.Agent) bool { return a.Role == role.ID }) {
			return false
		}
		_, _, err = fx.PauseRole(operator, role.ID, "look first")
	}
	if err != nil {
		t.Error(err)
	}
	return err == nil
}

// unpause ends what pause did.
func (fx *fixture) unpause(t *testing.T, what string, id identity.TaskID) {
	t.Helper()
	var err error
	switch what {
	case "task":
		err = fx.UnpauseTask(t.Context(), operator, id, "go on")
	case "all":
		err = fx.ResumeOrg(operator, "go on")
	default:
		role, _ := fx.Org().RoleByName("worker")
		_, _, err = fx.ResumeRole(operator, role.ID, "go on")
	}
	if err != nil {
		t.Error(err)
	}
}

// waitQuiet waits until no agent is at work.
func (fx *fixture) waitQuiet(t *testing.T) {
	t.Helper()
	for begin := time.Now(); ; goruntime.Gosched() {
		if l := fx.CurrentLoad(); l.Starting+l.Thinking+l.Calling == 0 {
			return
		}
		if time.Since(begin) > time.Minute {
			t.Fatalf("agents are still at work\n%s", fx.eventLog(t))
		}
	}
}

// wantNoStart requires that no call of a task is allowed while it is paused.
func (fx *fixture) wantNoStart(t *testing.T, what string) {
	t.Helper()
	paused := false
	for _, e := range fx.events(t) {
		switch b := e.Body.(type) {
		case journal.Paused:
			paused = true
		case journal.Resumed:
			paused = false
		case journal.ToolCall:
			if paused && b.Decision == journal.Allowed && (what != "role" || e.Role == "worker") {
				t.Errorf("%s starts while it is paused\n%s", b.Tool, fx.eventLog(t))
			}
		}
	}
}

// haltingStore pauses before the n-th commit of the agents. With dies, the process dies then.
type haltingStore struct {
	journal.Store
	at    int64
	pause func() bool
	dies  bool

	seen atomic.Int64
	dead atomic.Bool
	once sync.Once
	done chan struct{} // closed when it has paused
}

// Commit implements journal.Log.
func (s *haltingStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if b.Stream != "" && s.seen.Add(1) >= s.at {
		s.once.Do(func() {
			s.pause()
			s.dead.Store(s.dies)
			close(s.done)
		})
	}
	if s.dead.Load() {
		return 0, fmt.Errorf("%w: %w", journal.ErrClosed, errDied)
	}
	return s.Store.Commit(ctx, b)
}

// pokes counts the effects of the tools of TestPause_AtEachCommit.
type pokes struct{ counts [3]atomic.Int64 }

func (p *pokes) tools(t *testing.T) []tool.Tool {
	poke := func(_ context.Context, in obj) (any, error) { return p.counts[int(in["n"].(float64))].Add(1), nil }
	return []tool.Tool{newTool(t, "poke", tool.Options{Effect: tool.Mutating}, poke), newTool(t, "peek", tool.Options{Effect: tool.ReadOnly}, poke)}
}

// pokingTeam is a root that hires a worker, which makes two calls of one answer, then another.
func pokingTeam(r model.Request) model.Answer {
	if r.Self.Role == "root" {
		return delegate(r, "worker", "probe")
	}
	switch answerCount(r) {
	case 0:
		return callTools("poke", obj{"n": 0}, "poke", obj{"n": 1})
	case 1:
		return callTools("peek", obj{"n": 2})
	}
	return model.Answer{Finish: model.FinishEnd, Value: mustJSON(outcomes(r))}
}

// A pause at any commit of any agent: no call starts after its acknowledgement, also not after
// a restart or a crash. After the end of the pause everything goes on once.
func TestPause_AtEachCommit(t *testing.T) {
	type trial struct {
		what, then string
		at         int64
	}
	var trials []trial
	for _, what := range pauses {
		for _, then := range []string{"stay", "restart", "die"} {
			for at := range int64(14) {
				trials = append(trials, trial{what, then, at + 1})
			}
		}
	}
	for _, tr := range short.SampleList(t, 24, trials) {
		t.Run(fmt.Sprintf("%s, %s, commit %d", tr.what, tr.then, tr.at), func(t *testing.T) { pauseAt(t, tr.what, tr.then, tr.at) })
	}
}

func pauseAt(t *testing.T, what, then string, at int64) {
	p := &pokes{}
	cfg := fixtureConfig{dir: fastTempDir(t), model: answerFunc(pokingTeam), tools: p.tools(t)}
	var fx *fixture
	var id identity.TaskID
	began, held := make(chan struct{}), false
	store := &haltingStore{at: at, dies: then == "die", done: make(chan struct{}), pause: func() bool {
		<-began
		held = fx.pause(t, what, id)
		return held
	}}
	first := cfg
	first.wrapStore = func(s journal.Store) journal.Store { store.Store = s; return store }
	fx = first.open(t)
	id = fx.start(t, org.TaskSpec{})
	close(began)
	ended, wait := make(chan struct{}), fx.WaitTask
	go func() { defer close(ended); _, _ = wait(t.Context(), id) }()
	select {
	case <-store.done:
	case <-ended:
	}
	if then == "stay" {
		fx.waitQuiet(t)
		fx.wantNoStart(t, what)
	} else {
		fx.shutdown(t)
		fx = cfg.open(t)
		fx.resume(t, id)
		fx.waitQuiet(t)
		fx.wantNoStart(t, what)
	}
	task, _ := fx.Org().TaskByID(id)
	if held && !task.Status.Ended() {
		if got := fx.TaskStatus(task); what != "role" && got != org.Paused {
			t.Errorf("the task is %s", got)
		}
		fx.unpause(t, what, id)
	}
	task = fx.wait(t, id)
	for n := range p.counts {
		if got := p.counts[n].Load(); got != 1 && (then != "die" || got > 1 && n < 2) { // after a crash, a call may be interrupted, or repeated if it only reads
			t.Errorf("call %d ran %d times\n%s", n, got, fx.eventLog(t))
		}
	}
	if task.Status != org.Done || then != "die" && string(task.Result) != `["1","1","1"]` {
		t.Errorf("%s: %s\n%s", task.Status, task.Result, fx.eventLog(t))
	}
	fx.wantNoStart(t, what)
}

// A call that runs and an answer that was asked for before the pause end and are kept.
func TestPause_KeepsWhatRuns(t *testing.T) {
	for _, what := range pauses {
		for _, where := range []string{"model", "tool"} {
			t.Run(what+", "+where, func(t *testing.T) {
				reached, release := make(chan struct{}), make(chan struct{})
				var asked, ran atomic.Int64
				slow := newTool(t, "slow", tool.Options{Effect: tool.Mutating}, func(context.Context, obj) (any, error) {
					if ran.Add(1) == 1 && where == "tool" {
						close(reached)
						<-release
					}
					return "ran", nil
				})
				fx := fixtureConfig{tools: []tool.Tool{slow}, model: answerFunc(func(r model.Request) model.Answer {
					if asked.Add(1) == 1 && where == "model" {
						close(reached)
						<-release
					}
					if answerCount(r) == 0 {
						return callTools("slow", obj{})
					}
					return model.Answer{Finish: model.FinishEnd, Value: mustJSON(outcomes(r))}
				})}.open(t)
				id := fx.start(t, fx.workerTask(t, ""))
				fx.waitReached(t, id, reached)
				fx.pause(t, what, id)
				close(release)
				fx.waitQuiet(t)
				wantRan := map[string]int64{"model": 0, "tool": 1}[where]
				if asked.Load() != 1 || ran.Load() != wantRan || len(eventsOf[journal.ModelAnswered](t, fx)) != 1 || int64(len(eventsOf[journal.ToolResult](t, fx))) != wantRan {
					t.Errorf("asked %d times, ran %d times\n%s", asked.Load(), ran.Load(), fx.eventLog(t))
				}
				task, _ := fx.Org().TaskByID(id)
				if why := fx.PauseOf(id); fx.TaskStatus(task) != org.Paused || why == nil || why.Code != errcode.Paused {
					t.Errorf("the task is %s, %+v", fx.TaskStatus(task), why)
				}
				if got := fx.AgentStatus(org.Agent{ID: task.Top, Task: id, Status: org.Active}); got != org.AgentPaused {
					t.Errorf("the agent is %s", got)
				}
				fx.unpause(t, what, id)
				fx.wantResult(t, fx.wait(t, id), `["\"ran\""]`, "")
				if asked.Load() != 2 || ran.Load() != 1 {
					t.Errorf("asked %d times, ran %d times", asked.Load(), ran.Load())
				}
			})
		}
	}
}

// A call that is approved while its task is paused runs once, when the task goes on.
func TestPause_ApprovalWaits(t *testing.T) {
	for _, what := range []string{"task", "all"} {
		b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: approval.Rule{Tools: []string{"transfer"}, From: bothRoles}, model: clerkModel}
		b.open(t)
		task := b.begin(t)
		b.waiting(t, 1)
		b.pause(t, what, task)
		b.approveAll(t)
		b.waitQuiet(t)
		if b.paid.Load() != 0 {
			t.Errorf("%s: paid while paused", what)
		}
		b.shutdown(t)
		b.open(t)
		b.resume(t, task)
		b.waitQuiet(t)
		if b.paid.Load() != 0 {
			t.Errorf("%s: paid after the restart", what)
		}
		b.unpause(t, what, task)
		b.wait(t, task)
		if b.paid.Load() != 1 {
			t.Errorf("%s: paid %d times", what, b.paid.Load())
		}
	}
}

// Mail that becomes due while a task is paused is read when the task goes on, once.
func TestPause_DelayedMail(t *testing.T) {
	for _, what := range pauses {
		fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
			if got := messages(r); len(got) > 1 {
				return model.Answer{Finish: model.FinishEnd, Value: got[len(got)-1].Payload}
			}
			return waitForMessage()
		}))
		spec := fx.workerTask(t, "")
		spec.Open = true
		id := fx.start(t, spec)
		fx.waitEvent(t, func(e journal.Event) bool { _, ok := e.Body.(journal.ModelAnswered); return ok })
		fx.pause(t, what, id)
		if _, err := fx.SendMessage(t.Context(), newCall(operator), string(fx.topAgent(t, id)), mustJSON("late"), time.Millisecond); err != nil {
			t.Fatal(err)
		}
		for fx.CurrentLoad().Delayed > 0 {
			goruntime.Gosched()
		}
		fx.waitQuiet(t)
		if n := len(eventsOf[journal.ModelAnswered](t, fx)); n != 1 {
			t.Errorf("%s: %d answers", what, n)
		}
		fx.unpause(t, what, id)
		fx.waitEvent(t, func(e journal.Event) bool {
			b, ok := e.Body.(journal.ModelAnswered)
			return ok && string(b.Answer.Value) == `"late"`
		})
		if got := fx.received(t, fx.topAgent(t, id)); len(got) != 2 {
			t.Errorf("%s: received %v", what, got)
		}
	}
}

// While the organization is paused, callers are denied, and a new task waits.
func TestPauseOrg_CallersAndNewTasks(t *testing.T) {
	cfg := fixtureConfig{dir: fastTempDir(t), model: answerFunc(func(model.Request) model.Answer { return endWith("done") }),
		tools: []tool.Tool{newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { return "seen", nil })}}
	fx := cfg.open(t)
	spec := fx.workerTask(t, "")
	role, _ := fx.Org().RoleByName("worker")
	ann := identity.ByCaller("ann", role.ID)
	call := func() errcode.Code {
		a, err := fx.InvokeTool(t.Context(), ann, "look", nil)
		if err != nil {
			t.Fatal(err)
		}
		return a.Code()
	}
	if got := call(); got != "" {
		t.Errorf("before: %s", got)
	}
	fx.pause(t, "all", "")
	if err := fx.PauseOrg(operator, "another reason"); err != nil || fx.Org().OrgPause().Reason != "look first" {
		t.Errorf("again: %v, %+v", err, fx.Org().OrgPause())
	}
	if got := call(); got != errcode.ToolNotAvailable {
		t.Errorf("while paused: %s", got)
	}
	id := fx.start(t, spec)
	fx.waitQuiet(t)
	fx.shutdown(t)
	fx = cfg.open(t)
	fx.resume(t, id)
	fx.waitQuiet(t)
	if got := call(); got != errcode.ToolNotAvailable || len(eventsOf[journal.ModelAnswered](t, fx)) != 0 {
		t.Errorf("after the restart: %s\n%s", got, fx.eventLog(t))
	}
	fx.unpause(t, "all", "")
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
	if got := call(); got != "" {
		t.Errorf("after: %s", got)
	}
}

// Who may pause and resume a task, and what the errors name.
func TestPauseTask_Who(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, func(context.Context, model.Request) (model.Answer, error) { return waitForMessage(), nil }))
	fx.workerTask(t, "")
	role, _ := fx.Org().RoleByName("worker")
	ann, bob := identity.ByCaller("ann", role.ID), identity.ByCaller("bob", role.ID)
	id := fx.start(t, org.TaskSpec{Caller: ann})
	pause := func(by identity.Principal) error { return fx.PauseTask(t.Context(), by, id, "by "+by.String()) }
	resume := func(by identity.Principal) error { return fx.UnpauseTask(t.Context(), by, id, "") }
	want := func(err error, code errcode.Code) {
		t.Helper()
		if got := errcode.CodeOf(err); got != code {
			t.Errorf("got %v, want %s", err, code)
		}
	}
	want(resume(operator), errcode.Conflict)
	want(pause(bob), errcode.TaskNotFound)
	want(pause(identity.ByAgent(fx.topAgent(t, id))), errcode.InsufficientPermissions)
	want(fx.PauseOrg(ann, ""), errcode.InsufficientPermissions)
	want(fx.ResumeOrg(ann, ""), errcode.InsufficientPermissions)
	want(fx.ResumeOrg(operator, ""), errcode.Conflict)
	want(pause(ann), "")
	want(pause(ann), "")
	want(resume(bob), errcode.TaskNotFound)
	want(resume(ann), "")
	want(pause(ann), "")
	want(pause(operator), "") // replaces that of the caller
	want(pause(ann), "")      // does not replace it
	if got := fx.PauseOf(id); got == nil || got.By != operator.String() {
		t.Errorf("paused by %+v", got)
	}
	want(resume(ann), errcode.InsufficientPermissions)
	want(fx.RetryTask(t.Context(), id, operator, org.ModelAllowance{}), errcode.Conflict)
	want(resume(operator), "")
	close(free)
	if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
		t.Error(err)
	}
	want(pause(operator), errcode.Conflict)
	want(resume(operator), errcode.Conflict)
	var types []journal.EventType
	for _, e := range fx.events(t) {
		switch e.Body.(type) {
		case journal.Paused, journal.Resumed:
			types = append(types, e.Body.EventType())
		}
	}
	if !slices.Equal(types, []journal.EventType{"paused", "resumed", "paused", "paused", "resumed"}) {
		t.Errorf("on record: %v", types)
	}
}

// A task that an error has paused is not resumed but retried. A person may pause it besides.
func TestPauseTask_PausedByError(t *testing.T) {
	rejected := atomic.Bool{}
	rejected.Store(true)
	fx := openFixture(t, "", modelFunc(func(context.Context, model.Request) (model.Answer, error) {
		if rejected.Load() {
			return model.Answer{}, keyRejected()
		}
		return endWith("done"), nil
	}))
	task := fx.run(t, org.TaskSpec{})
	fx.wantPaused(t, task, errcode.LLMCallFailed)
	if err := fx.UnpauseTask(t.Context(), operator, task.ID, ""); errcode.CodeOf(err) != errcode.Conflict || !contains(err, "task retry") {
		t.Errorf("got %v", err)
	}
	fx.pause(t, "task", task.ID)
	rejected.Store(false)
	if err := fx.RetryTask(t.Context(), task.ID, operator, org.ModelAllowance{}); err != nil {
		t.Fatal(err)
	}
	fx.waitQuiet(t)
	if n := len(eventsOf[journal.ModelAnswered](t, fx)); n != 0 {
		t.Errorf("%d answers while paused", n)
	}
	fx.unpause(t, "task", task.ID)
	fx.wantResult(t, fx.wait(t, task.ID), `"done"`, "")
}

// The time of a paused task, and of all tasks of a paused organization, stands still.
func TestPause_DeadlineStandsStill(t *testing.T) {
	for _, what := range []string{"task", "all"} {
		var ahead atomic.Int64
		now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
		cfg := fixtureConfig{dir: fastTempDir(t), model: answerFunc(func(model.Request) model.Answer { return waitForMessage() }),
			configure: func(c *runtime.Config) { c.Now = now }}
		fx := cfg.open(t)
		spec := fx.workerTask(t, "")
		spec.Open, spec.Timeout = true, time.Hour
		id := fx.start(t, spec)
		fx.pause(t, what, id)
		ahead.Store(int64(3 * time.Hour))
		fx.waitQuiet(t)
		fx.shutdown(t)
		fx = cfg.open(t)
		fx.resume(t, id)
		fx.EnforceDeadlines()
		if task, _ := fx.Org().TaskByID(id); task.Status != org.Running {
			t.Errorf("%s: %s while paused", what, task.Status)
		}
		fx.unpause(t, what, id)
		at, runs := fx.Org().DeadlineOf(id)
		if left := at.Sub(now()); !runs || left < 55*time.Minute || left > time.Hour {
			t.Errorf("%s: %v left", what, left)
		}
	}
}

func contains(err error, text string) bool { return err != nil && strings.Contains(err.Error(), text) }
