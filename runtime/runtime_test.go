package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// brain answers for all agents: a pure function of the request.
type brain func(r model.Request) model.Answer

func (b brain) Generate(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := b(r)
		if a.Read == 0 {
			for _, item := range r.Items {
				if item.Message != nil {
					a.Read++
				}
			}
		}
		yield(model.Delta{Answer: &a}, nil)
	}
}

// end is an answer that ends the turn.
func end(text string) model.Answer { return model.Answer{Finish: model.End, Text: text} }

// do is an answer that calls tools: name, arguments, name, arguments …
func do(pairs ...any) model.Answer {
	a := model.Answer{Finish: model.Calls}
	for i := 0; i < len(pairs); i += 2 {
		args, err := json.Marshal(pairs[i+1])
		if err != nil {
			panic(err)
		}
		a.Calls = append(a.Calls, model.Call{Name: pairs[i].(string), Args: args})
	}
	return a
}

// last gives the content of the last result, decoded.
func last(r model.Request) map[string]any {
	for i := len(r.Items) - 1; i >= 0; i-- {
		if res := r.Items[i].Result; res != nil {
			var v map[string]any
			_ = json.Unmarshal(res.Content, &v)
			return v
		}
	}
	return nil
}

// answers counts the answers given so far.
func answers(r model.Request) int {
	n := 0
	for _, item := range r.Items {
		if item.Answer != nil {
			n++
		}
	}
	return n
}

// house is a runtime on a store, with the built-in groups.
type house struct {
	*runtime.Runtime
	store *persist.Store
}

func open(t *testing.T, dir string, b brain) *house {
	t.Helper()
	store := persisttest.OpenIn(t, dir)
	groups := toolgroups.NewManager(toolgroups.Reserved()...)
	rt, err := runtime.New(runtime.Config{
		Store: store, Groups: groups, Workspaces: t.TempDir(),
		Model: func(string) (model.Model, error) { return b, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := builtin.Register(groups, rt); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	return &house{rt, store}
}

func (h *house) run(t *testing.T, spec org.TaskSpec) org.Task {
	t.Helper()
	if spec.Caller.Kind == identity.Nobody {
		spec.Caller = identity.ByOperator("test")
	}
	id, err := h.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	task, err := h.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	return task
}

func (h *house) events(t *testing.T) []journal.Event {
	t.Helper()
	var list []journal.Event
	for e, err := range h.store.Follow(t.Context(), 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

func brief() map[string]any {
	return map[string]any{"objective": "o", "constraints": []string{}, "inputs": "i", "outputs": "o", "completion_criteria": "c"}
}

func TestATaskEndsWithItsRootsLastAnswer(t *testing.T) {
	h := open(t, t.TempDir(), func(r model.Request) model.Answer { return end("hello " + r.Self.Role) })
	task := h.run(t, org.TaskSpec{Text: "greet"})
	if task.Status != org.Done || string(task.Result) != `"hello root"` {
		t.Errorf("got %s %s, want done \"hello root\"", task.Status, task.Result)
	}
}

// team is a root that makes a role, spawns a worker, waits for its report and
// passes it on; the worker tries a tool it has and one it has not.
func team(r model.Request) model.Answer {
	if r.Self.Role == "root" {
		switch answers(r) {
		case 0:
			return do("create_role", map[string]any{"name": "worker", "rolePrompt": "work", "toolGroups": []string{"artifact"}})
		case 1:
			return do("spawn_agent_with_task", map[string]any{"roleId": last(r)["id"], "taskBrief": brief(), "initialMessage": "go"})
		}
		if report := report(r); report != nil {
			return model.Answer{Finish: model.End, Value: report}
		}
		return model.Answer{Finish: model.Wait}
	}
	switch answers(r) {
	case 0:
		return do("put_artifact", map[string]any{"type": "text", "content": "x"}, "read_file", map[string]any{"path": "x"})
	default:
		return end(fmt.Sprint(last(r)["error"]))
	}
}

// report gives the payload of the last message from another agent.
func report(r model.Request) json.RawMessage {
	for i := len(r.Items) - 1; i >= 0; i-- {
		if m := r.Items[i].Message; m != nil && m.From != "user" {
			return m.Payload
		}
	}
	return nil
}

func TestAnAgentIsDeniedWhatItsRoleHasNotAndTheRunGoesOn(t *testing.T) {
	h := open(t, t.TempDir(), team)
	task := h.run(t, org.TaskSpec{Text: "go"})
	if got, want := string(task.Result), `{"text":"tool_not_available"}`; got != want {
		t.Errorf("result %s, want %s (status %s, error %v)", got, want, task.Status, task.Error)
	}
	var denied []string
	for _, e := range h.events(t) {
		if c, ok := e.Body.(journal.ToolCall); ok && c.Decision == journal.Denied {
			denied = append(denied, c.Tool+" "+string(c.Code)+" "+c.Reason)
		}
	}
	if len(denied) != 1 || !strings.Contains(denied[0], "read_file tool_not_available tool read_file is not available") {
		t.Errorf("denials on record: %q", denied)
	}
}

func TestATaskThatWaitsForNobodyStalls(t *testing.T) {
	h := open(t, t.TempDir(), func(model.Request) model.Answer { return model.Answer{Finish: model.Wait} })
	task := h.run(t, org.TaskSpec{Text: "wait"})
	if task.Status != org.Failed || task.Error == nil || task.Error.Code != "task_stalled" {
		t.Errorf("got %s %v, want failed task_stalled", task.Status, task.Error)
	}
}

func TestARestartedProcessGoesOnWhereItWas(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	var first *house
	reached := make(chan struct{})
	var once sync.Once
	// The first process is closed while the worker thinks.
	h := open(t, dir, func(r model.Request) model.Answer {
		if r.Self.Role == "worker" {
			once.Do(func() { close(reached) })
			mu.Lock()
			defer mu.Unlock()
		}
		return team(r)
	})
	first = h
	mu.Lock()
	id, err := h.Start(t.Context(), org.TaskSpec{Text: "go", Caller: identity.ByOperator("test")})
	if err != nil {
		t.Fatal(err)
	}
	<-reached
	closed := make(chan struct{})
	go func() { first.Close(); close(closed) }()
	mu.Unlock()
	<-closed
	persisttest.Close(t, h.store)

	h = open(t, dir, team)
	if err := h.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	task, err := h.Wait(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(task.Result), `{"text":"tool_not_available"}`; got != want {
		t.Errorf("result %s, want %s (status %s, error %v)", got, want, task.Status, task.Error)
		for _, e := range h.events(t) {
			text, _ := json.Marshal(e)
			t.Log(e.Seq, string(text))
		}
	}
}
