package runtime_test

import (
	"context"
	"errors"
	"fmt"
	goruntime "runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/soakreport"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// crashingStore simulates a process that dies at its n-th commit: before the
// commit, or after it is on disk and before the caller is told. It tracks the
// calls whose intent it has acknowledged.
type crashingStore struct {
	journal.Store
	after bool

	mu           sync.Mutex               // guards the fields below
	commitsLeft  int                      // commits until the crash
	acknowledged map[identity.CallID]bool // calls whose intent was acknowledged
}

var errKilled = fmt.Errorf("killed: %w", journal.ErrClosed)

// Commit implements journal.Log.
func (s *crashingStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	s.mu.Lock()
	s.commitsLeft--
	left := s.commitsLeft
	s.mu.Unlock()
	if left < 0 || left == 0 && !s.after {
		return 0, errKilled
	}
	seq, err := s.Store.Commit(ctx, b)
	if left == 0 && err == nil {
		err = errKilled
	}
	if err == nil {
		s.acknowledge(b)
	}
	return seq, err
}

// acknowledge notes the intents in a committed batch.
func (s *crashingStore) acknowledge(b *journal.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range b.Events {
		if c, ok := e.Body.(journal.ToolCall); ok && c.Decision == journal.Allowed {
			if s.acknowledged == nil {
				s.acknowledged = map[identity.CallID]bool{}
			}
			s.acknowledged[c.Call] = true
		}
	}
}

func (s *crashingStore) isAcknowledged(id identity.CallID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acknowledged[id]
}

// effectLog counts the runs of tools, by call, over all processes of a test.
type effectLog struct {
	mu    sync.Mutex                         // guards the fields below
	runs  map[string]map[identity.CallID]int // by tool and agent
	store *crashingStore                     // of the running process
}

// tool creates a tool whose runs are counted. It fails the test if the tool
// runs before its intent was acknowledged.
func (l *effectLog) tool(t *testing.T, name string, o tool.Options, act func() (any, error)) tool.Tool {
	return newTool(t, name, o, func(ctx context.Context, _ obj) (any, error) {
		c, _ := tool.CurrentCall(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.store.isAcknowledged(c.ID) {
			t.Errorf("%s started before its intent was acknowledged", name)
		}
		agent := name + " of " + string(c.By.Agent)
		if l.runs[agent] == nil {
			l.runs[agent] = map[identity.CallID]int{}
		}
		l.runs[agent][c.ID]++
		if act != nil {
			return act()
		}
		return name + " done", nil
	})
}

// mixedWorkload is a root that creates a role, spawns two workers, sends itself
// a delayed message, receives two messages of each worker, terminates both and
// ends. A worker calls tools of every effect class and changes its role.
func mixedWorkload(r model.Request) model.Answer {
	switch {
	case r.Self.Role == "worker":
		switch answerCount(r) {
		case 0:
			return callTools("look", obj{}, "look", obj{}, "strike", obj{}, "mark", obj{}, "put_artifact", obj{"type": "t", "content": "x"}, "reform", obj{})
		case 1:
			return callTools("send_message", obj{"to": "root", "payload": outcomes(r)[2]})
		}
		return endWith("worked")
	case answerCount(r) == 0:
		return callTools("create_role", obj{"name": "worker", "rolePrompt": "", "toolGroups": []string{"artifact", "probe", "org_management"}})
	case answerCount(r) == 1:
		hire := obj{"roleId": lastResult(r)["id"], "taskBrief": taskBrief(), "initialMessage": "go"}
		return callTools("spawn_agent_with_task", hire, "spawn_agent_with_task", hire, "send_message", obj{"to": "root", "payload": "later", "delayMs": 1})
	case len(messages(r)) < 6:
		return waitForMessage()
	case lastResult(r)["ok"] == true:
		return model.Answer{Finish: model.FinishEnd, Value: mustJSON(payloads(messages(r)[1:]))}
	}
	made := results(r)
	return callTools("terminate_agent", obj{"agentId": decodeObject(made[1].Content)["id"], "reason": "done"}, "terminate_agent", obj{"agentId": decodeObject(made[2].Content)["id"], "reason": "done"})
}

// payloads lists the payloads of messages, sorted.
func payloads(list []model.Message) []string {
	var said []string
	for _, m := range list {
		said = append(said, string(m.Payload))
	}
	slices.Sort(said)
	return said
}

// process is a process that ended its task or crashed.
type process struct {
	*fixture
	task  org.Task
	ended bool

	mu          sync.Mutex // guards the fields below
	fatalErrors []error
	observed    []journal.Event
}

// runProcess runs the task until it ends or the process crashes at its n-th
// commit.
func (l *effectLog) runProcess(t *testing.T, dir string, crashAt int, after bool) *process {
	t.Helper()
	p := &process{}
	l.store = &crashingStore{commitsLeft: crashAt, after: after}
	p.fixture = fixtureConfig{
		dir: dir, model: answerFunc(mixedWorkload), configure: p.config,
		tools: []tool.Tool{
			l.tool(t, "look", tool.Options{Effect: tool.ReadOnly}, nil), l.tool(t, "strike", tool.Options{}, nil),
			l.tool(t, "mark", tool.Options{Effect: tool.Idempotent, State: "marked"}, nil),
			l.tool(t, "reform", tool.Options{Effect: tool.Idempotent}, p.extendWorkerRole),
		},
		wrapStore: func(s journal.Store) journal.Store {
			l.store.Store = s
			return l.store
		},
	}.open(t)
	id, err := p.startOrResume(t)
	if err == nil {
		p.task, err = p.WaitTask(t.Context(), id)
	}
	if p.ended = err == nil; !p.ended && !errors.Is(err, errKilled) {
		t.Fatalf("Wait returned %v, want the error of the store", err)
	}
	p.check(t)
	return p
}

func (p *process) config(c *runtime.Config) {
	c.Fatal = func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fatalErrors = append(p.fatalErrors, err)
	}
	c.Observe = func(e journal.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.observed = append(p.observed, e)
	}
}

// extendWorkerRole adds a group to the workers' role.
func (p *process) extendWorkerRole() (any, error) {
	role, _ := p.Org().RoleByName("worker")
	_, _, err := p.UpdateRole(operator, role.ID, org.RoleSpec{Use: groupSet("artifact", "probe", "org_management", "context")}, false)
	return obj{}, err
}

// check checks a process after its end: every observed event is on disk, and a
// crashed process accepts no task and has called Fatal once.
func (p *process) check(t *testing.T) {
	t.Helper()
	p.Close()
	kept := map[uint64]string{}
	for _, e := range p.events(t) {
		kept[e.Seq] = string(mustJSON(e))
	}
	for _, e := range p.observed {
		if got := kept[e.Seq]; got != string(mustJSON(e)) {
			t.Errorf("observed %s, on disk is %s", mustJSON(e), got)
		}
	}
	switch {
	case p.ended && len(p.fatalErrors) > 0:
		t.Errorf("Fatal was called with %v", p.fatalErrors)
	case !p.ended && (len(p.fatalErrors) != 1 || !errors.Is(p.fatalErrors[0], errKilled)):
		t.Errorf("Fatal was called with %v, want one call with the error of the store", p.fatalErrors)
	}
	if p.ended {
		return
	}
	if _, err := p.StartTask(t.Context(), org.TaskSpec{Caller: operator}); !errors.Is(err, errKilled) {
		t.Errorf("a crashed process started a task: %v", err)
	}
}

// startOrResume resumes the existing task or starts one.
func (fx *fixture) startOrResume(t *testing.T) (identity.TaskID, error) {
	for _, task := range fx.Org().ListTasks() {
		return task.ID, fx.ResumeTask(t.Context(), task.ID)
	}
	return fx.StartTask(t.Context(), org.TaskSpec{Caller: operator})
}

// noCrash is more commits than a process makes.
const noCrash = 1 << 30

func TestRuntime_CrashAtAnyCommitCompletesTask(t *testing.T) {
	commits := 0 // of a process that does not crash
	// With -short one commit in six is tried, beginning with one of the first six.
	step := short.Count(6, 1)
	for n := short.SampleRange(t, 1, 1, step)[0]; commits == 0 || n <= commits; n += step {
		for _, after := range []bool{false, true} {
			when := map[bool]string{false: "before", true: "after"}[after]
			t.Run(fmt.Sprint(when, " commit ", n), func(t *testing.T) {
				l := &effectLog{runs: map[string]map[identity.CallID]int{}}
				dir := fastTempDir(t)
				p := l.runProcess(t, dir, n, after)
				if p.ended {
					commits = n
				}
				for again := n%7 + 1; !p.ended; again = noCrash { // the second process crashes too
					p.shutdown(t)
					p = l.runProcess(t, dir, again, after)
				}
				l.check(t, p)
				p.shutdown(t)
				if leak := leakedGoroutines(); leak != "" {
					t.Errorf("goroutines after the end:\n%s", leak)
				}
			})
			if t.Failed() || n > 100 {
				t.Fatalf("stopped at commit %d", n)
			}
		}
	}
	soakreport.RecordResult(t, soakreport.Result{
		Part: "storage", Claim: "after a failed commit no tool runs, and the next process completes the task as if nothing had happened",
		Goal: "every commit, written and not written", Observed: fmt.Sprintf("%d commits twice each", commits), Passed: commits > 0,
	})
}

// check checks the result and the records of a completed task.
func (l *effectLog) check(t *testing.T, p *process) {
	t.Helper()
	unknown := 0
	for _, e := range bodiesOf[journal.ToolError](t, p.fixture) {
		if e.Tool != "strike" || e.Code != errcode.ToolInterrupted {
			t.Errorf("call of %s ended as %s", e.Tool, e.Code)
		}
		unknown++
	}
	want := []string{`"later"`, `{"text":"worked"}`, `{"text":"worked"}`}
	for i := range 2 {
		struck := `"\"strike done\""`
		if i < unknown {
			struck = `"tool_interrupted"`
		}
		want = append(want, struck)
	}
	slices.Sort(want)
	p.wantResult(t, p.task, string(mustJSON(want)), "")
	l.checkRuns(t, p.fixture)
	p.checkCreated(t)
	p.checkMessages(t)
	p.checkCalls(t)
	if runnable, err := p.store.RunnableAgents(t.Context()); err != nil || len(runnable) > 0 {
		t.Errorf("runnable in the end: %v, %v", runnable, err)
	}
	if t.Failed() {
		t.Log(p.eventLog(t))
	}
}

// checkRuns compares the counted runs with the recorded results: a Mutating
// call runs at most once, and a successful call has run.
func (l *effectLog) checkRuns(t *testing.T, fx *fixture) {
	t.Helper()
	ran := map[identity.CallID]int{}
	for agent, calls := range l.runs {
		if most := map[bool]int{true: 2, false: 1}[strings.HasPrefix(agent, "look")]; len(calls) > most {
			t.Errorf("%s has %d different calls", agent, len(calls))
		}
		for id, n := range calls {
			ran[id] += n
			if strings.HasPrefix(agent, "strike") && n > 1 {
				t.Errorf("%s ran %d times as call %s", agent, n, id)
			}
		}
	}
	for _, e := range bodiesOf[journal.ToolResult](t, fx) {
		if slices.Contains([]string{"look", "strike", "mark", "reform"}, e.Tool) && ran[e.Call] == 0 {
			t.Errorf("call %s of %s is recorded as successful and never ran", e.Call, e.Tool)
		}
	}
}

// checkCreated counts what the tools created.
func (fx *fixture) checkCreated(t *testing.T) {
	t.Helper()
	artifacts := 0
	for _, err := range fx.ArtifactStore().ListArtifacts(t.Context(), "") {
		if err != nil {
			t.Error(err)
		}
		artifacts++
	}
	made := 0
	for _, e := range bodiesOf[journal.RoleChanged](t, fx) {
		if e.Change == "created" {
			made++
		}
	}
	for what, n := range map[string][2]int{
		"roles":         {len(fx.Org().ListRoles()), 1},
		"roles made":    {made, 1},
		"tasks":         {len(bodiesOf[journal.TaskStarted](t, fx)), 1},
		"results":       {len(bodiesOf[journal.TaskEnded](t, fx)), 1},
		"agents":        {len(bodiesOf[journal.AgentSpawned](t, fx)), 3},
		"terminations":  {len(bodiesOf[journal.AgentTerminated](t, fx)), 2},
		"transitions":   {len(bodiesOf[journal.StateTransition](t, fx)), 2},
		"artifacts":     {artifacts, 2},
		"agents alive":  {len(fx.Org().ListAgents("")), 1},
		"failures":      {len(bodiesOf[journal.TurnFailed](t, fx)), 0},
		"messages sent": {len(bodiesOf[journal.MessageSent](t, fx)), 9}, // task, two assignments, one delayed, four reports, result
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d, want %d", what, n[0], n[1])
		}
	}
}

// checkMessages checks that every message to an agent was received exactly
// once.
func (fx *fixture) checkMessages(t *testing.T) {
	t.Helper()
	open := map[string]int{}
	for _, m := range bodiesOf[journal.MessageSent](t, fx) {
		if m.Message.To != runtime.User {
			open[m.Message.ID]++
		}
	}
	for _, m := range bodiesOf[journal.MessageReceived](t, fx) {
		open[m.Message.ID]--
	}
	for id, n := range open {
		if n != 0 {
			t.Errorf("message %s: sent %d times more than received", id, n)
		}
	}
}

// checkCalls checks that every call has exactly one outcome.
func (fx *fixture) checkCalls(t *testing.T) {
	t.Helper()
	open := map[identity.CallID]int{}
	for _, a := range bodiesOf[journal.ModelAnswered](t, fx) {
		for _, c := range a.Answer.Calls {
			open[c.ID]++
		}
	}
	for _, r := range bodiesOf[journal.ToolResult](t, fx) {
		open[r.Call]--
	}
	for _, r := range bodiesOf[journal.ToolError](t, fx) {
		open[r.Call]--
	}
	for id, n := range open {
		if n != 0 {
			t.Errorf("call %s: requested %d times more than completed", id, n)
		}
	}
}

// leakedGoroutines returns the stacks of this module's goroutines outside of
// tests. It waits a while for goroutines that return.
func leakedGoroutines() (leaked string) {
	for range 100 {
		if leaked = moduleStacks(); leaked == "" {
			break
		}
		goruntime.Gosched()
	}
	return leaked
}

func moduleStacks() string {
	buf := make([]byte, 1<<20)
	list := strings.Split(string(buf[:goruntime.Stack(buf, true)]), "\n\n")
	list = slices.DeleteFunc(list, func(s string) bool {
		return !strings.Contains(s, "rolecall/rolecall/") || strings.Contains(s, "testing.tRunner") || strings.Contains(s, "runtime_test.")
	})
	return strings.Join(list, "\n\n")
}

func TestSend_CrashKeepsDueTime(t *testing.T) {
	for _, after := range []bool{false, true} {
		var story string
		for n := 1; n < 12; n++ {
			dir := fastTempDir(t)
			fx := fixtureConfig{dir: dir, model: answerFunc(sendSoon),
				wrapStore: func(s journal.Store) journal.Store { return &crashingStore{Store: s, commitsLeft: n, after: after} }}.open(t)
			if id, err := fx.startOrResume(t); err == nil {
				_, _ = fx.WaitTask(t.Context(), id) // it may end or crash
			}
			fx.shutdown(t)

			fx = openFixture(t, dir, answerFunc(sendSoon))
			id, err := fx.startOrResume(t)
			if err != nil {
				t.Fatal(err)
			}
			task := fx.wait(t, id)
			story = fx.eventLog(t)
			sent := bodiesOf[journal.MessageSent](t, fx)[1]
			if got := decodeObject(task.Result)["scheduledDeliveryTime"]; got != sent.Due {
				t.Errorf("crash at commit %d: due %v in the result, %s in the message\n%s", n, got, sent.Due, story)
			}
			fx.checkMessages(t)
			fx.shutdown(t)
		}
	}
}

// sendSoon sends itself a message with a short delay, and ends with the tool's
// result when it has arrived.
func sendSoon(r model.Request) model.Answer {
	switch {
	case answerCount(r) == 0:
		return callTools("send_message", obj{"to": "root", "payload": "later", "delayMs": 5})
	case len(messages(r)) == 1:
		return waitForMessage()
	}
	return model.Answer{Finish: model.FinishEnd, Value: results(r)[0].Content}
}

// A repeated spawn finds the agent it created, even if that agent has been
// terminated since. It does not create it again.
func TestSpawn_CrashDoesNotRecreateTerminatedAgent(t *testing.T) {
	dir := fastTempDir(t)
	spawned := make(chan identity.AgentID, 1)
	var dead atomic.Bool
	fx := fixtureConfig{dir: dir, model: answerFunc(delegateWithDenial), wrapStore: func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			if dead.Load() {
				return 0, errKilled
			}
			seq, err := s.Commit(ctx, b)
			for _, e := range b.Events {
				if a, ok := e.Body.(journal.AgentSpawned); ok && a.Parent != "" {
					dead.Store(true)
					spawned <- e.Agent
					return 0, errKilled
				}
			}
			return seq, err
		}}
	}}.open(t)
	id := fx.start(t, org.TaskSpec{})
	child := <-spawned
	fx.shutdown(t)

	fx = openFixture(t, dir, answerFunc(delegateWithDenial))
	if err := fx.TerminateAgent(t.Context(), newCall(operator), child, "not needed"); err != nil {
		t.Fatal(err)
	}
	fx.resume(t, id)
	fx.wantResult(t, fx.wait(t, id), "", errcode.TaskStalled) // root waits for a terminated agent
	if a, err := fx.AgentRecord(t.Context(), child); err != nil || a.Status != org.Terminated || len(fx.Org().ListAgents("")) != 1 {
		t.Errorf("the agent is %s (%v)", a.Status, err)
	}
	fx.wantNoWork(t, child)
}
