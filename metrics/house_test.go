package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var operator = identity.ByOperator("test")

// brain answers for all agents: a pure function of the request.
type brain func(r model.Request) model.Answer

// Generate implements model.Model.
func (b brain) Generate(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a := b(r)
		for _, item := range r.Items {
			if item.Message != nil {
				a.MessagesRead++
			}
		}
		yield(model.Delta{Answer: &a}, nil)
	}
}

// intruder tries, one answer each, a tool of a state it is not in, one that
// leads there, the first again, one that is not its own and one that is
// nowhere.
func intruder(r model.Request) model.Answer {
	step := 0
	for _, item := range r.Items {
		if item.Answer != nil {
			step++
		}
	}
	if names := []string{"enter", "open", "enter", "secret", "made_up"}; step < len(names) {
		return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: names[step], Args: json.RawMessage(`{}`)}}, Usage: model.Usage{Input: 10, Output: 1}}
	}
	return model.Answer{Finish: model.FinishEnd, Text: "done"}
}

// house is a runtime that f observes, in which intruder may use the door.
func (f *figures) house(t *testing.T, store journal.Store) *runtime.Runtime {
	t.Helper()
	return f.houseOf(t, store, brain(intruder), org.React)
}

func (f *figures) houseOf(t *testing.T, store journal.Store, thinks model.Model, pattern org.Pattern) *runtime.Runtime {
	t.Helper()
	rt, err := runtime.New(runtime.Config{
		Store: store, Groups: f.groups, Observe: f.Observe,
		Model: func(string) (model.Model, error) { return thinks, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	f.register(t, "vault", probe(t, "secret", tool.Options{}))
	use := toolgroups.Of("door")
	if _, err := rt.CreateRole(t.Context(), tool.Call{By: operator}, org.RoleSpec{Name: "guide", Use: &use, Pattern: pattern}); err != nil {
		t.Fatal(err)
	}
	return rt
}

func work(t *testing.T, rt *runtime.Runtime, spec org.TaskSpec) {
	t.Helper()
	spec.Caller, spec.Role = operator, "guide"
	id, err := rt.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if task, err := rt.Wait(t.Context(), id); err != nil || task.Status != org.Done {
		t.Fatalf("the task is %+v, %v", task, err)
	}
}

func TestAnOrganizationAtWorkIsCounted(t *testing.T) {
	f := counting(t, metrics.Load{})
	rt := f.house(t, memory.New())
	door := toolgroups.Of("door")
	work(t, rt, org.TaskSpec{State: "shut", Groups: &door})
	work(t, rt, org.TaskSpec{State: "a state that nobody knows"})
	want := `agent_filtered_tools_count{} 12 of 18
agent_group_access_denied_total{} 2
agent_invalid_state_transition_total{} 4
agent_privilege_escalation_attempts_total{} 0
agent_state_transitions_total{from="shut",to="open",tool="open"} 1
agent_tool_group_requests_total{group="*"} 1
agent_tool_group_requests_total{group="door"} 1
rolecall_agents_total{status="spawned"} 2
rolecall_decisions_total{code="",decision="allowed"} 2
rolecall_decisions_total{code="tool_not_available",decision="denied"} 6
rolecall_decisions_total{code="unknown_tool",decision="denied"} 2
rolecall_tasks_total{status="done"} 2
rolecall_tasks_total{status="started"} 2
rolecall_tokens_total{kind="input",role="guide"} 100
rolecall_tokens_total{kind="output",role="guide"} 10
`
	if diff := cmp.Diff(want, f.text(t, familiesIn(want)...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if load := rt.Load(); load.Tasks != 0 || load.Delayed != 0 || load.Commits < 16 {
		t.Errorf("load afterwards: %+v", load)
	}
}

// language makes a language model of a brain: only such a one can plan.
type language struct{ brain }

// Window implements model.LanguageModel.
func (language) Window() int { return 100_000 }

// walker opens the door and enters, with a plan when it is asked for one.
func walker(r model.Request) model.Answer {
	done := 0
	for _, item := range r.Items {
		if item.Result != nil {
			done++
		}
	}
	switch {
	case strings.Contains(r.System, "make a plan"):
		return model.Answer{Finish: model.FinishEnd, Text: `{"plan":[{"tool":"open"},{"tool":"enter"}]}`}
	case done < 2:
		return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: []string{"open", "enter"}[done], Args: json.RawMessage(`{}`)}}}
	}
	return model.Answer{Finish: model.FinishEnd, Text: "done"}
}

func TestBothWorkingPatternsAreCountedTheSameWay(t *testing.T) {
	for pattern, answers := range map[org.Pattern]int{org.React: 3, org.Plan: 4} {
		t.Run(string(pattern), func(t *testing.T) {
			f := counting(t, metrics.Load{})
			rt := f.houseOf(t, memory.New(), language{walker}, pattern)
			work(t, rt, org.TaskSpec{State: "shut"})
			want := fmt.Sprintf(`agent_filtered_tools_count{} %d of %d
agent_invalid_state_transition_total{} 0
agent_state_transitions_total{from="shut",to="open",tool="open"} 1
rolecall_decisions_total{code="",decision="allowed"} 2
rolecall_tasks_total{status="done"} 1
rolecall_tasks_total{status="started"} 1
`, answers, 2*answers)
			if diff := cmp.Diff(want, f.text(t, familiesIn(want)...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
			for _, once := range []string{`rolecall_turn_duration_seconds{outcome="ended"} 1 of`, `agent_workflow_duration_seconds{state="shut"} 1 of`} {
				if text := f.text(t); !strings.Contains(text, once) {
					t.Errorf("no %s in\n%s", once, text)
				}
			}
		})
	}
}

// What is counted while it happens is what the journal comes to: there is no
// other source.
func TestTheJournalGivesTheSameFigures(t *testing.T) {
	live, store := counting(t, metrics.Load{}), memory.New()
	rt := live.house(t, store)
	work(t, rt, org.TaskSpec{State: "shut"})
	work(t, rt, org.TaskSpec{})
	again := counting(t, metrics.Load{})
	again.register(t, "vault", probe(t, "secret", tool.Options{}))
	for e, err := range store.Follow(t.Context(), 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		var stored journal.Event
		if err := json.Unmarshal(text, &stored); err != nil {
			t.Fatal(err)
		}
		again.Observe(stored)
	}
	if diff := cmp.Diff(live.text(t), again.text(t)); diff != "" {
		t.Errorf("(-live +from the journal):\n%s", diff)
	}
}

func TestTheHandlerServesTheTextFormat(t *testing.T) {
	f := counting(t, metrics.Load{Commits: 5})
	w := httptest.NewRecorder()
	metrics.Handler(f, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "\nrolecall_commits_total 5\n") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("got %d %v\n%s", w.Code, w.Header(), w.Body)
	}
}
