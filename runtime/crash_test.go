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

// mortal is a store whose process dies at the n-th commit: before it, or when
// it is on disk and nobody has heard of it yet. It knows which calls it said
// were on record.
type mortal struct {
	journal.Store
	after bool

	mu   sync.Mutex // guards what follows
	left int        // commits until the end
	told map[identity.CallID]bool
}

var errKilled = fmt.Errorf("killed: %w", journal.ErrClosed)

// Commit implements journal.Log.
func (s *mortal) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	s.mu.Lock()
	s.left--
	left := s.left
	s.mu.Unlock()
	if left < 0 || left == 0 && !s.after {
		return 0, errKilled
	}
	seq, err := s.Store.Commit(ctx, b)
	if left == 0 && err == nil {
		err = errKilled
	}
	if err == nil {
		s.tell(b)
	}
	return seq, err
}

// tell notes whose intents it says are on record.
func (s *mortal) tell(b *journal.Batch) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range b.Events {
		if c, ok := e.Body.(journal.ToolCall); ok && c.Decision == journal.Allowed {
			if s.told == nil {
				s.told = map[identity.CallID]bool{}
			}
			s.told[c.Call] = true
		}
	}
}

func (s *mortal) hasTold(id identity.CallID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told[id]
}

// ledger counts what tools did, by call, over all processes.
type ledger struct {
	mu    sync.Mutex                         // guards what follows
	runs  map[string]map[identity.CallID]int // by tool and agent
	store *mortal                            // of the process that lives
}

// tool makes one that is counted. It acts only when its intent is said to be
// on record.
func (l *ledger) tool(t *testing.T, name string, o tool.Options, act func() (any, error)) tool.Tool {
	return probe(t, name, o, func(ctx context.Context, _ obj) (any, error) {
		c, _ := tool.Current(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		if !l.store.hasTold(c.ID) {
			t.Errorf("%s began and its intent is not known to be on record", name)
		}
		who := name + " of " + string(c.By.Agent)
		if l.runs[who] == nil {
			l.runs[who] = map[identity.CallID]int{}
		}
		l.runs[who][c.ID]++
		if act != nil {
			return act()
		}
		return name + " done", nil
	})
}

// crew is a root that makes a role and hires two workers, writes to itself for
// later, hears each worker twice, ends both and ends; a worker does something of
// each kind, and changes its role.
func crew(r model.Request) model.Answer {
	switch {
	case r.Self.Role == "worker":
		switch answers(r) {
		case 0:
			return do("look", obj{}, "look", obj{}, "strike", obj{}, "mark", obj{}, "put_artifact", obj{"type": "t", "content": "x"}, "reform", obj{})
		case 1:
			return do("send_message", obj{"to": "root", "payload": outcomes(r)[2]})
		}
		return end("worked")
	case answers(r) == 0:
		return do("create_role", obj{"name": "worker", "rolePrompt": "", "toolGroups": []string{"artifact", "probe", "org_management"}})
	case answers(r) == 1:
		hire := obj{"roleId": last(r)["id"], "taskBrief": brief(), "initialMessage": "go"}
		return do("spawn_agent_with_task", hire, "spawn_agent_with_task", hire, "send_message", obj{"to": "root", "payload": "later", "delayMs": 1})
	case len(messages(r)) < 6:
		return wait()
	case last(r)["ok"] == true:
		return model.Answer{Finish: model.FinishEnd, Value: encode(payloads(messages(r)[1:]))}
	}
	made := results(r)
	return do("terminate_agent", obj{"agentId": decode(made[1].Content)["id"], "reason": "done"}, "terminate_agent", obj{"agentId": decode(made[2].Content)["id"], "reason": "done"})
}

// payloads lists what messages say, sorted.
func payloads(list []model.Message) []string {
	var said []string
	for _, m := range list {
		said = append(said, string(m.Payload))
	}
	slices.Sort(said)
	return said
}

// life is what one process came to.
type life struct {
	*house
	task  org.Task
	ended bool

	mu       sync.Mutex // guards what follows
	fatal    []error
	observed []journal.Event
}

// life runs the task until it ends or the process dies at its dies-th commit.
func (l *ledger) life(t *testing.T, dir string, dies int, after bool) *life {
	t.Helper()
	p := &life{}
	l.store = &mortal{left: dies, after: after}
	p.house = plan{
		dir: dir, model: brain(crew), config: p.config,
		tools: []tool.Tool{
			l.tool(t, "look", tool.Options{Effect: tool.ReadOnly}, nil), l.tool(t, "strike", tool.Options{}, nil),
			l.tool(t, "mark", tool.Options{Effect: tool.Idempotent, State: "marked"}, nil),
			l.tool(t, "reform", tool.Options{Effect: tool.Idempotent}, p.reform),
		},
		store: func(s journal.Store) journal.Store {
			l.store.Store = s
			return l.store
		},
	}.open(t)
	id, err := p.begin(t)
	if err == nil {
		p.task, err = p.Wait(t.Context(), id)
	}
	if p.ended = err == nil; !p.ended && !errors.Is(err, errKilled) {
		t.Fatalf("who waits is told %v, want what the store says", err)
	}
	p.check(t)
	return p
}

func (p *life) config(c *runtime.Config) {
	c.Fatal = func(err error) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.fatal = append(p.fatal, err)
	}
	c.Observe = func(e journal.Event) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.observed = append(p.observed, e)
	}
}

// reform gives the role of the workers one group more.
func (p *life) reform() (any, error) {
	role, _ := p.Org().RoleNamed("worker")
	_, _, err := p.UpdateRole(operator, role.ID, org.RoleSpec{Use: use("artifact", "probe", "org_management", "context")}, false)
	return obj{}, err
}

// check looks at a process that ended or died, when all is quiet: what was
// observed is on disk, and a dead process takes nothing and said so once.
func (p *life) check(t *testing.T) {
	t.Helper()
	p.Close()
	kept := map[uint64]string{}
	for _, e := range p.events(t) {
		kept[e.Seq] = string(encode(e))
	}
	for _, e := range p.observed {
		if got := kept[e.Seq]; got != string(encode(e)) {
			t.Errorf("observed was %s, on disk is %s", encode(e), got)
		}
	}
	switch {
	case p.ended && len(p.fatal) > 0:
		t.Errorf("Fatal was called with %v", p.fatal)
	case !p.ended && (len(p.fatal) != 1 || !errors.Is(p.fatal[0], errKilled)):
		t.Errorf("Fatal was called with %v, want once with what the store says", p.fatal)
	}
	if p.ended {
		return
	}
	if _, err := p.Start(t.Context(), org.TaskSpec{Caller: operator}); !errors.Is(err, errKilled) {
		t.Errorf("after its end a process begins a task: %v", err)
	}
}

// begin takes up the task that is there, or starts it.
func (h *house) begin(t *testing.T) (identity.TaskID, error) {
	for _, task := range h.Org().Tasks() {
		return task.ID, h.Resume(t.Context(), task.ID)
	}
	return h.Start(t.Context(), org.TaskSpec{Caller: operator})
}

// never is more commits than a life has.
const never = 1 << 30

func TestAfterACrashAtAnyCommitTheTaskEndsAsIfNothingHappened(t *testing.T) {
	commits := 0 // of a life without end
	// With -short one commit in six is tried, beginning with one of the first six.
	step := short.N(6, 1)
	for n := short.Numbers(t, 1, 1, step)[0]; commits == 0 || n <= commits; n += step {
		for _, after := range []bool{false, true} {
			when := map[bool]string{false: "before", true: "after"}[after]
			t.Run(fmt.Sprint(when, " commit ", n), func(t *testing.T) {
				l := &ledger{runs: map[string]map[identity.CallID]int{}}
				dir := scratch(t)
				p := l.life(t, dir, n, after)
				if p.ended {
					commits = n
				}
				for again := n%7 + 1; !p.ended; again = never { // the second life dies too
					p.leave(t)
					p = l.life(t, dir, again, after)
				}
				l.check(t, p)
				p.leave(t)
				if leak := goroutines(); leak != "" {
					t.Errorf("after the end these run still:\n%s", leak)
				}
			})
			if t.Failed() || n > 100 {
				t.Fatalf("stopped at commit %d", n)
			}
		}
	}
	soakreport.Report(t, soakreport.Result{
		Part: "storage", Claim: "when storage fails at any commit nothing more acts, and the next process ends the task as if nothing had happened",
		Goal: "every commit, on disk and not", Observed: fmt.Sprintf("%d commits twice each", commits), Passed: commits > 0,
	})
}

// check looks at what a task that has ended left behind.
func (l *ledger) check(t *testing.T, p *life) {
	t.Helper()
	unknown := 0
	for _, e := range said[journal.ToolError](t, p.house) {
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
	p.want(t, p.task, string(encode(want)), "")
	l.checkRuns(t, p.house)
	p.checkMade(t)
	p.checkMail(t)
	p.checkCalls(t)
	if runnable, err := p.store.Runnable(t.Context()); err != nil || len(runnable) > 0 {
		t.Errorf("runnable in the end: %v, %v", runnable, err)
	}
	if t.Failed() {
		t.Log(p.story(t))
	}
}

// checkRuns holds what acted against what is said to have: a Mutating call acts
// once at most, and none succeeds that did not act.
func (l *ledger) checkRuns(t *testing.T, h *house) {
	t.Helper()
	ran := map[identity.CallID]int{}
	for who, calls := range l.runs {
		if most := map[bool]int{true: 2, false: 1}[strings.HasPrefix(who, "look")]; len(calls) > most {
			t.Errorf("%s was called as %d different calls", who, len(calls))
		}
		for id, n := range calls {
			ran[id] += n
			if strings.HasPrefix(who, "strike") && n > 1 {
				t.Errorf("%s ran %d times as call %s", who, n, id)
			}
		}
	}
	for _, e := range said[journal.ToolResult](t, h) {
		if slices.Contains([]string{"look", "strike", "mark", "reform"}, e.Tool) && ran[e.Call] == 0 {
			t.Errorf("call %s of %s is said to have succeeded and never ran", e.Call, e.Tool)
		}
	}
}

// checkMade counts what idempotent tools made.
func (h *house) checkMade(t *testing.T) {
	t.Helper()
	artifacts := 0
	for _, err := range h.Artifacts(t.Context(), "") {
		if err != nil {
			t.Error(err)
		}
		artifacts++
	}
	made := 0
	for _, e := range said[journal.RoleChanged](t, h) {
		if e.Change == "created" {
			made++
		}
	}
	for what, n := range map[string][2]int{
		"roles":            {len(h.Org().Roles()), 1},
		"roles made":       {made, 1},
		"tasks":            {len(said[journal.TaskStarted](t, h)), 1},
		"results":          {len(said[journal.Result](t, h)), 1},
		"agents":           {len(said[journal.AgentSpawned](t, h)), 3},
		"terminations":     {len(said[journal.AgentTerminated](t, h)), 2},
		"transitions":      {len(said[journal.StateTransition](t, h)), 2},
		"artifacts":        {artifacts, 2},
		"agents alive":     {len(h.Org().Agents("")), 1},
		"failures":         {len(said[journal.Failed](t, h)), 0},
		"messages on file": {len(said[journal.MessageSent](t, h)), 9}, // task, two assignments, one for later, four reports, result
	} {
		if n[0] != n[1] {
			t.Errorf("%s: %d, want %d", what, n[0], n[1])
		}
	}
}

// checkMail checks that what was sent to agents was taken, once each.
func (h *house) checkMail(t *testing.T) {
	t.Helper()
	open := map[string]int{}
	for _, m := range said[journal.MessageSent](t, h) {
		if m.Message.To != runtime.User {
			open[m.Message.ID]++
		}
	}
	for _, m := range said[journal.MessageReceived](t, h) {
		open[m.Message.ID]--
	}
	for id, n := range open {
		if n != 0 {
			t.Errorf("message %s was sent %d times more than it was taken", id, n)
		}
	}
}

// checkCalls checks that every call has one outcome.
func (h *house) checkCalls(t *testing.T) {
	t.Helper()
	open := map[identity.CallID]int{}
	for _, a := range said[journal.ModelAnswered](t, h) {
		for _, c := range a.Answer.Calls {
			open[c.ID]++
		}
	}
	for _, r := range said[journal.ToolResult](t, h) {
		open[r.Call]--
	}
	for _, r := range said[journal.ToolError](t, h) {
		open[r.Call]--
	}
	for id, n := range open {
		if n != 0 {
			t.Errorf("call %s: asked for %d times more than it ended", id, n)
		}
	}
}

// goroutines gives the stacks of goroutines of this module that no test runs. Who
// is just returning is let go.
func goroutines() (left string) {
	for range 100 {
		if left = ourStacks(); left == "" {
			break
		}
		goruntime.Gosched()
	}
	return left
}

func ourStacks() string {
	buf := make([]byte, 1<<20)
	list := strings.Split(string(buf[:goruntime.Stack(buf, true)]), "\n\n")
	list = slices.DeleteFunc(list, func(s string) bool {
		return !strings.Contains(s, "rolecall/rolecall/") || strings.Contains(s, "testing.tRunner") || strings.Contains(s, "runtime_test.")
	})
	return strings.Join(list, "\n\n")
}

func TestAfterACrashAMessageIsDelayedAsItWas(t *testing.T) {
	for _, after := range []bool{false, true} {
		var story string
		for n := 1; n < 12; n++ {
			dir := scratch(t)
			h := plan{dir: dir, model: brain(soon),
				store: func(s journal.Store) journal.Store { return &mortal{Store: s, left: n, after: after} }}.open(t)
			if id, err := h.begin(t); err == nil {
				_, _ = h.Wait(t.Context(), id) // it may end, or die
			}
			h.leave(t)

			h = open(t, dir, brain(soon))
			id, err := h.begin(t)
			if err != nil {
				t.Fatal(err)
			}
			task := h.wait(t, id)
			story = h.story(t)
			sent := said[journal.MessageSent](t, h)[1]
			if got := decode(task.Result)["scheduledDeliveryTime"]; got != sent.Due {
				t.Errorf("crash at commit %d: the result says due %v, the message is due %s\n%s", n, got, sent.Due, story)
			}
			h.checkMail(t)
			h.leave(t)
		}
	}
}

// soon sends itself a message for a moment later and ends with what the tool
// said of it when it has come.
func soon(r model.Request) model.Answer {
	switch {
	case answers(r) == 0:
		return do("send_message", obj{"to": "root", "payload": "later", "delayMs": 5})
	case len(messages(r)) == 1:
		return wait()
	}
	return model.Answer{Finish: model.FinishEnd, Value: results(r)[0].Content}
}

// A spawn that is repeated finds what it made, also when that is gone already:
// nobody comes back to life.
func TestAfterACrashASpawnDoesNotBringBackWhoWasEnded(t *testing.T) {
	dir := scratch(t)
	spawned := make(chan identity.AgentID, 1)
	var dead atomic.Bool
	h := plan{dir: dir, model: brain(team), store: func(s journal.Store) journal.Store {
		return &between{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
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
	id := h.start(t, org.TaskSpec{})
	child := <-spawned
	h.leave(t)

	h = open(t, dir, brain(team))
	if err := h.Terminate(t.Context(), called(operator), child, "not needed"); err != nil {
		t.Fatal(err)
	}
	h.resume(t, id)
	h.want(t, h.wait(t, id), "", errcode.TaskStalled) // root waits for one who is gone
	if a, err := h.AgentRecord(t.Context(), child); err != nil || a.Status != org.Terminated || len(h.Org().Agents("")) != 1 {
		t.Errorf("the agent is %s (%v)", a.Status, err)
	}
	h.empty(t, child)
}
