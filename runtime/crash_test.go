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
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
)

// mortal is a store whose process dies at the n-th commit: before it, or when
// it is on disk and nobody has heard of it yet.
type mortal struct {
	journal.Store
	after bool

	mu   sync.Mutex
	left int // commits until the end; guarded by mu
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
	return seq, err
}

// ledger counts what tools did, by call, over all processes.
type ledger struct {
	mu   sync.Mutex
	runs map[string]map[identity.CallID]int // by tool; guarded by mu
}

func (l *ledger) tool(t *testing.T, name string, o tool.Options) tool.Tool {
	return probe(t, name, o, func(ctx context.Context, _ obj) (any, error) {
		c, _ := tool.Current(ctx)
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.runs[name] == nil {
			l.runs[name] = map[identity.CallID]int{}
		}
		l.runs[name][c.ID]++
		return name + " done", nil
	})
}

// crew is a root that hires a worker, hears it twice, ends it and ends; the
// worker does something of each kind.
func crew(r model.Request) model.Answer {
	heard := len(messages(r)) - 1
	switch {
	case r.Self.Role == "worker":
		switch answers(r) {
		case 0:
			return do("look", obj{}, "strike", obj{}, "mark", obj{}, "put_artifact", obj{"type": "t", "content": "x"})
		case 1:
			return do("send_message", obj{"to": "root", "payload": outcomes(r)[1]})
		}
		return end("worked")
	case answers(r) == 0:
		return do("create_role", obj{"name": "worker", "rolePrompt": "", "toolGroups": []string{"artifact", "probe", "org_management"}})
	case answers(r) == 1:
		return do("spawn_agent_with_task", obj{"roleId": last(r)["id"], "taskBrief": brief(), "initialMessage": "go"})
	case last(r)["ok"] == true:
		return model.Answer{Finish: model.End, Value: encode([]any{messages(r)[1].Payload, messages(r)[2].Payload})}
	case heard < 2:
		return wait()
	}
	return do("terminate_agent", obj{"agentId": decode(results(r)[1].Content)["id"], "reason": "done"})
}

// life runs the task until it ends or the process dies; dies is how many
// commits it has, 0 for no end.
func (l *ledger) life(t *testing.T, dir string, dies int, after bool) (task org.Task, h *house, ended bool) {
	died := make(chan struct{})
	h = plan{
		dir: dir, model: brain(crew),
		tools: []tool.Tool{
			l.tool(t, "look", tool.Options{Effect: tool.ReadOnly}), l.tool(t, "strike", tool.Options{}),
			l.tool(t, "mark", tool.Options{Effect: tool.Idempotent, State: "marked"}),
		},
		store: func(s journal.Store) journal.Store {
			if dies == 0 {
				return s
			}
			return &mortal{Store: s, left: dies, after: after}
		},
		config: func(c *runtime.Config) { c.Fatal = func(error) { close(died) } },
	}.open(t)
	id, err := h.begin(t)
	if err != nil {
		if !errors.Is(err, journal.ErrClosed) {
			t.Fatal(err)
		}
		return task, h, false
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		select {
		case <-died:
			cancel()
		case <-ctx.Done():
		}
	}()
	task, err = h.Wait(ctx, id)
	return task, h, err == nil
}

// begin takes up the task that is there, or starts it.
func (h *house) begin(t *testing.T) (identity.TaskID, error) {
	for _, task := range h.Org().Tasks() {
		return task.ID, h.Resume(t.Context(), task.ID)
	}
	return h.Start(t.Context(), org.TaskSpec{Caller: operator})
}

func TestAfterACrashAtAnyCommitTheTaskEndsAsIfNothingHappened(t *testing.T) {
	commits := 0 // of a life without end
	for n := 1; commits == 0 || n <= commits; n++ {
		for _, after := range []bool{false, true} {
			when := map[bool]string{false: "before", true: "after"}[after]
			t.Run(fmt.Sprint(when, " commit ", n), func(t *testing.T) {
				l := &ledger{runs: map[string]map[identity.CallID]int{}}
				dir := scratch(t)
				task, h, ended := l.life(t, dir, n, after)
				if ended {
					commits = n
				}
				for again := n%7 + 1; !ended; again = 0 { // the second life dies too
					h.leave(t)
					task, h, ended = l.life(t, dir, again, after)
				}
				l.check(t, h, task)
				h.leave(t)
				if leak := goroutines(); leak != "" {
					t.Errorf("after the end these run still:\n%s", leak)
				}
			})
			if t.Failed() || n > 100 {
				t.Fatalf("stopped at commit %d", n)
			}
		}
	}
	t.Logf("a life without a crash has fewer than %d commits", commits)
}

func (l *ledger) check(t *testing.T, h *house, task org.Task) {
	t.Helper()
	struck := "\"strike done\""
	for _, e := range said[journal.ToolError](t, h) {
		if e.Tool != "strike" || e.Code != errcode.ToolInterrupted {
			t.Errorf("call of %s ended as %s", e.Tool, e.Code)
		}
		struck = "tool_interrupted"
	}
	h.want(t, task, string(encode([]any{struck, obj{"text": "worked"}})), "")
	l.checkRuns(t, struck)
	h.checkMade(t)
	h.checkMail(t)
	h.checkCalls(t)
	if runnable, err := h.store.Runnable(t.Context()); err != nil || len(runnable) > 0 {
		t.Errorf("runnable in the end: %v, %v", runnable, err)
	}
	if t.Failed() {
		t.Log(h.story(t))
	}
}

func (l *ledger) checkRuns(t *testing.T, struck string) {
	t.Helper()
	for name, calls := range l.runs {
		if len(calls) > 1 {
			t.Errorf("%s was called as %d different calls", name, len(calls))
		}
	}
	for id, n := range l.runs["strike"] {
		if n > 1 {
			t.Errorf("strike ran %d times as call %s", n, id)
		}
	}
	if len(l.runs["strike"]) == 0 && struck != "tool_interrupted" {
		t.Error("strike never ran and is said to have")
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
	for what, n := range map[string][2]int{
		"roles":            {len(h.Org().Roles()), 1},
		"role events":      {len(said[journal.RoleChanged](t, h)), 1},
		"tasks":            {len(said[journal.TaskStarted](t, h)), 1},
		"results":          {len(said[journal.Result](t, h)), 1},
		"agents":           {len(said[journal.AgentSpawned](t, h)), 2},
		"terminations":     {len(said[journal.AgentTerminated](t, h)), 1},
		"transitions":      {len(said[journal.StateTransition](t, h)), 1},
		"artifacts":        {artifacts, 1},
		"agents alive":     {len(h.Org().Agents("")), 1},
		"failures":         {len(said[journal.Failed](t, h)), 0},
		"messages on file": {len(said[journal.MessageSent](t, h)), 5}, // task, assignment, two reports, result
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
	for _, m := range said[journal.MessageTaken](t, h) {
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

// goroutines gives the stacks of goroutines of this module that no test runs.
func goroutines() string {
	buf := make([]byte, 1<<20)
	stacks := strings.Split(string(buf[:goruntime.Stack(buf, true)]), "\n\n")
	stacks = slices.DeleteFunc(stacks, func(s string) bool {
		return !strings.Contains(s, "rolecall/rolecall/") || strings.Contains(s, "testing.tRunner") || strings.Contains(s, "runtime_test.")
	})
	return strings.Join(stacks, "\n\n")
}

func TestAfterACrashAMessageIsDelayedAsItWas(t *testing.T) {
	for _, after := range []bool{false, true} {
		var story string
		for n := 1; n < 12; n++ {
			dir := scratch(t)
			died := make(chan struct{})
			h := plan{dir: dir, model: brain(soon), config: func(c *runtime.Config) { c.Fatal = func(error) { close(died) } },
				store: func(s journal.Store) journal.Store { return &mortal{Store: s, left: n, after: after} }}.open(t)
			if id, err := h.begin(t); err == nil {
				ctx, cancel := context.WithCancel(t.Context())
				go func() {
					select {
					case <-died:
					case <-ctx.Done():
					}
					cancel()
				}()
				_, _ = h.Wait(ctx, id) // it may end, or die
				cancel()
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
	return model.Answer{Finish: model.End, Value: results(r)[0].Content}
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
