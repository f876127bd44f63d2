package metrics_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var operator = identity.ByOperator("test")

// modelFunc is a model that answers for all agents with a pure function of the
// request.
type modelFunc func(r model.Request) model.Answer

// Generate implements model.Model.
func (f modelFunc) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		a := f(r)
		for _, item := range r.Items {
			if item.Message != nil {
				a.MessagesRead++
			}
		}
		yield(model.AnswerDelta{Answer: &a}, nil)
	}
}

// deniedCallsModel calls one tool per answer. First comes a tool of another
// state, then the tool that leads to that state, then the first tool again. A
// tool of another role and a tool that does not exist follow.
func deniedCallsModel(r model.Request) model.Answer {
	step := 0
	for _, item := range r.Items {
		if item.Answer != nil {
			step++
		}
	}
	if names := []string{"enter", "open", "enter", "secret", "made_up"}; step < len(names) {
		return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: names[step], Args: json.RawMessage(`{}`)}}, Usage: model.TokenUsage{Input: 10, Output: 1}}
	}
	return model.Answer{Finish: model.FinishEnd, Text: "done"}
}

// newRuntime returns a runtime that f observes. Its role guide may use the
// group door.
func (f *fixture) newRuntime(t *testing.T, store journal.Store) *runtime.Runtime {
	t.Helper()
	return f.newRuntimeWith(t, store, modelFunc(deniedCallsModel), org.React)
}

func (f *fixture) newRuntimeWith(t *testing.T, store journal.Store, m model.Model, pattern org.CollaborationPattern) *runtime.Runtime {
	t.Helper()
	rt, err := runtime.New(runtime.Config{
		Store: store, Groups: f.groups, Observe: f.ObserveEvent,
		Model: func(string) (model.Model, error) { return m, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	f.register(t, "vault", newTool(t, "secret", tool.Options{}))
	use := toolgroups.SetOf("door")
	if _, err := rt.CreateRole(t.Context(), tool.Call{By: operator}, org.RoleSpec{Name: "guide", Use: &use, Pattern: pattern}); err != nil {
		t.Fatal(err)
	}
	return rt
}

func runTask(t *testing.T, rt *runtime.Runtime, spec org.TaskSpec) {
	t.Helper()
	spec.Caller, spec.Role = operator, "guide"
	id, err := rt.StartTask(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if task, err := rt.WaitTask(t.Context(), id); err != nil || task.Status != org.Done {
		t.Fatalf("the task is %+v, %v", task, err)
	}
}

// languageModel is a modelFunc that is a model.LanguageModel, so that it can
// plan.
type languageModel struct{ modelFunc }

// Window implements model.LanguageModel.
func (languageModel) Window() int { return 100_000 }

// twoStepModel calls open and enter, with a plan if it is asked for one.
func twoStepModel(r model.Request) model.Answer {
	done := 0
	for _, item := range r.Items {
		if item.Result != nil {
			done++
		}
	}
	switch {
	case strings.Contains(r.Note, "make a plan"):
		return model.Answer{Finish: model.FinishEnd, Text: `{"plan":[{"tool":"open"},{"tool":"enter"}]}`}
	case done < 2:
		return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: []string{"open", "enter"}[done], Args: json.RawMessage(`{}`)}}}
	}
	return model.Answer{Finish: model.FinishEnd, Text: "done"}
}

// fixture is Metrics with the registries of tools and metrics behind it.
type fixture struct {
	*metrics.Metrics
	*prometheus.Registry
	groups *toolgroups.Manager
}

// newFixture returns Metrics of a registry with a workflow: open moves from
// shut to open, enter needs open, and look is always available.
func newFixture(t testing.TB, load metrics.Load) *fixture {
	t.Helper()
	f := &fixture{Registry: prometheus.NewPedanticRegistry(), groups: toolgroups.NewManager(toolgroups.ReservedIDs()...)}
	var err error
	if f.Metrics, err = metrics.New(f, metrics.Config{Groups: f.groups, Load: func() metrics.Load { return load }, Unready: func() []string { return []string{"storage_low"} }, Services: func() map[string]bool { return map[string]bool{"joke": true, "weather": false} }, Notifications: func() map[string]metrics.DeliveryCounts {
		return map[string]metrics.DeliveryCounts{"oncall": {Delivered: 3, Retried: 2, Dropped: 1, Delay: 4 * time.Second}}
	}}); err != nil {
		t.Fatal(err)
	}
	f.register(t, "door", newTool(t, "open", tool.Options{State: "open", States: []string{"shut"}}),
		newTool(t, "enter", tool.Options{States: []string{"open"}}), newTool(t, "look", tool.Options{}))
	return f
}

func (f *fixture) register(t testing.TB, id toolgroups.GroupID, tools ...tool.Tool) {
	t.Helper()
	if _, err := grouptest.RegisterGroup(f.groups, "test", toolgroups.Group{ID: id, Tools: tools}); err != nil {
		t.Fatal(err)
	}
}

func newTool(t testing.TB, name string, o tool.Options) tool.Tool {
	t.Helper()
	made, err := tool.New(name, "is called", func(context.Context, struct{}) (string, error) { return "ok", nil }, &o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// text returns the gathered metrics, or those with the given names, without
// help texts and empty buckets.
func (f *fixture) text(t testing.TB, families ...string) string {
	t.Helper()
	list, err := f.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, family := range list {
		if len(families) > 0 && !contains(families, family.GetName()) {
			continue
		}
		for _, m := range family.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, fmt.Sprintf("%s=%q", l.GetName(), l.GetValue()))
			}
			value := fmt.Sprint(m.GetCounter().GetValue() + m.GetGauge().GetValue())
			if h := m.GetHistogram(); h != nil {
				value = fmt.Sprintf("%d of %v", h.GetSampleCount(), h.GetSampleSum())
			}
			fmt.Fprintf(&out, "%s{%s} %s\n", family.GetName(), strings.Join(labels, ","), value)
		}
	}
	return out.String()
}

func contains(list []string, s string) bool {
	for _, l := range list {
		if l == s {
			return true
		}
	}
	return false
}

var began = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// at returns an event of agent a in task t, some seconds after began.
func at(seconds float64, body journal.EventBody) journal.Event { return eventOf("a", seconds, body) }

func eventOf(agent identity.AgentID, seconds float64, body journal.EventBody) journal.Event {
	return journal.Event{
		At: began.Add(time.Duration(seconds * float64(time.Second))), Task: "t", Agent: agent, Stream: agent, Role: "guide", Body: body,
	}
}

func messageTo(to string) journal.MessageSent {
	return journal.MessageSent{Message: model.Message{Task: "t", To: to}}
}

func answer(finish model.FinishReason, tools ...string) journal.ModelAnswered {
	return journal.ModelAnswered{Answer: model.Answer{Finish: finish, Tools: tools, State: "shut"}}
}

func allowed(id, name string) journal.ToolCall {
	return journal.ToolCall{Call: identity.CallID(id), Tool: name, Decision: journal.Allowed}
}

func denied(name string, code errcode.Code, reason string) journal.ToolCall {
	return journal.ToolCall{Call: "c", Tool: name, Decision: journal.Denied, Code: code, Reason: reason}
}

// wrongStateCall returns a call that was denied because of the workflow state.
func wrongStateCall(name string) journal.ToolCall {
	c := denied(name, errcode.ToolNotAvailable, "tool "+name+" is not available in this workflow state")
	c.Rule = toolgroups.WrongState.String()
	return c
}

// taskEvents returns the events of a task in which the agent opens the door.
func taskEvents() []journal.Event {
	return []journal.Event{
		at(0, journal.TaskStarted{State: "shut", Groups: []string{"door"}}),
		at(0, journal.AgentSpawned{}),
		at(0, messageTo("a")),
		at(1, journal.MessageReceived{}),
		at(2, answer(model.FinishToolCalls, "open", "look")),
		at(2, allowed("1", "open")),
		at(5, journal.ToolResult{Call: "1", Tool: "open"}),
		at(5, journal.StateTransition{Tool: "open", From: "shut", To: "open"}),
		at(6, journal.ApprovalDecided{Outcome: journal.ApprovalVoted, Waited: time.Second}),
		at(7, journal.ApprovalDecided{Outcome: journal.ApprovalGiven, Waited: 2 * time.Second}),
		at(7, journal.ApprovalDecided{Outcome: journal.ApprovalGiven, Override: true, Waited: 3 * time.Second}),
		at(8, answer(model.FinishEnd)),
		at(11, journal.TaskEnded{Status: "done"}),
	}
}

func familiesIn(text string) (list []string) {
	for line := range strings.Lines(text) {
		name, _, _ := strings.Cut(line, "{")
		list = append(list, name)
	}
	return list
}

// maxSeries is the limit in docs/metrics.md.
const maxSeries = 1000
