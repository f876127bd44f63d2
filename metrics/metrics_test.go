package metrics_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/metrics"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestHandler_ServesTextFormat(t *testing.T) {
	f := newFixture(t, metrics.Load{Commits: 5})
	w := httptest.NewRecorder()
	metrics.Handler(f, nil).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "\nrolecall_commits_total 5\n") || !strings.HasPrefix(w.Header().Get("Content-Type"), "text/plain") {
		t.Errorf("got %d %v\n%s", w.Code, w.Header(), w.Body)
	}
}

func TestObserve_EachEvent(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []journal.Event
		want   string // of the metrics named in it
	}{
		{"a task is a request of each of its groups", []journal.Event{
			at(0, journal.TaskStarted{Groups: []string{"door", "made up"}}),
			at(0, journal.TaskStarted{Groups: []string{"door"}}),
			at(0, journal.TaskStarted{}),
			at(0, journal.TaskStarted{Groups: []string{}}),
		}, `agent_tool_group_requests_total{group="*"} 1
agent_tool_group_requests_total{group="-"} 1
agent_tool_group_requests_total{group="door"} 2
agent_tool_group_requests_total{group="other"} 1
rolecall_tasks_total{status="started"} 4
`},
		{"a rejected request counts the groups that it named, or has by default", []journal.Event{
			at(0, journal.TaskDenied{Requested: []string{"door", "made up"}}),
			at(0, journal.TaskDenied{Requested: []string{"*"}, Defaults: []string{"door"}}),
			at(0, journal.TaskDenied{Requested: []string{}}),
			at(0, journal.TaskDenied{Defaults: []string{"door"}}),
			at(0, journal.TaskDenied{Defaults: []string{"default"}}), // no tool is in it
			at(0, journal.TaskDenied{Defaults: []string{"*"}}),
			at(0, journal.TaskDenied{Defaults: []string{}}),
			at(0, journal.TaskDenied{}), // its caller may ask no such role
		}, `agent_tool_group_requests_total{group="*"} 2
agent_tool_group_requests_total{group="-"} 2
agent_tool_group_requests_total{group="default"} 1
agent_tool_group_requests_total{group="door"} 2
agent_tool_group_requests_total{group="other"} 1
`},
		{"tools are counted at each answer, also if unchanged", taskEvents(),
			"agent_filtered_tools_count{} 2 of 4\n"},
		{"tools of an agent from another process are unknown until they change", []journal.Event{
			at(0, answer(model.FinishToolCalls)), at(1, answer(model.FinishToolCalls, "look")), at(2, answer(model.FinishEnd)),
		}, "agent_filtered_tools_count{} 2 of 2\n"},
		{"a transition and the end of a task end the time in a state", taskEvents(),
			`agent_state_transitions_total{from="shut",to="open",tool="open"} 1
agent_workflow_duration_seconds{state="open"} 1 of 6
agent_workflow_duration_seconds{state="shut"} 1 of 5
`},
		{"termination ends the time in a state", []journal.Event{
			at(0, journal.AgentSpawned{}), at(1, answer(model.FinishWait)), at(7, journal.AgentTerminated{}), at(9, journal.TaskEnded{Status: "cancelled"}),
		}, `agent_workflow_duration_seconds{state="shut"} 1 of 7
rolecall_agents_total{status="spawned"} 1
rolecall_agents_total{status="terminated"} 1
rolecall_tasks_total{status="cancelled"} 1
`},
		{"time that started in another process is not counted", []journal.Event{
			at(0, answer(model.FinishToolCalls)), at(1, journal.StateTransition{Tool: "open", From: "shut", To: "open"}), at(3, journal.TaskEnded{Status: "failed"}),
		}, "agent_workflow_duration_seconds{state=\"open\"} 1 of 2\n"},
		{"denials are counted by reason", []journal.Event{
			at(0, allowed("1", "look")),
			at(0, denied("look", errcode.ToolNotAvailable, "tool look is not available to this role")),
			at(0, denied("look", errcode.ToolNotAvailable, "tool look is not available to this role")),
			at(0, wrongStateCall("enter")),
			at(0, denied("made up", errcode.UnknownTool, "there is no tool made up")),
			at(0, denied("look", errcode.InvalidArguments, "arguments of look …")),
		}, `agent_group_access_denied_total{} 2
agent_invalid_state_transition_total{} 1
rolecall_decisions_total{code="",decision="allowed"} 1
rolecall_decisions_total{code="invalid_arguments",decision="denied"} 1
rolecall_decisions_total{code="tool_not_available",decision="denied"} 3
rolecall_decisions_total{code="unknown_tool",decision="denied"} 1
`},
		{"the text of a denial does not decide its metric", []journal.Event{
			at(0, denied("x is not available in this workflow state", errcode.UnknownTool, "there is no tool x is not available in this workflow state")),
			at(0, denied("x", errcode.ToolNotAvailable, "Access denied. This agent is not authorized to use the x is not available in this workflow state tool.")),
		}, `agent_group_access_denied_total{} 0
agent_invalid_state_transition_total{} 0
`},
		{"an escalation attempt is counted once", []journal.Event{
			at(0, allowed("1", "look")),
			at(0, journal.ToolError{Call: "1", Tool: "look", Code: errcode.InsufficientPermissions}),
			at(0, denied("look", errcode.InsufficientPermissions, "no")),
			at(0, journal.ToolError{Call: "c", Tool: "look", Code: errcode.InsufficientPermissions}),
			at(0, journal.ToolError{Call: "d", Tool: "look", Code: errcode.FileNotFound}),
			at(0, journal.TurnFailed{Code: errcode.InsufficientPermissions}),
			at(0, journal.TaskEnded{Status: "failed", Code: errcode.InsufficientPermissions}),
		}, "agent_privilege_escalation_attempts_total{} 3\n"},
		{"a turn lasts from the first message to its final answer", append([]journal.Event{
			eventOf("b", 20, journal.MessageReceived{}), eventOf("b", 21, answer(model.FinishToolCalls)), eventOf("b", 21, journal.MessageReceived{}),
			eventOf("b", 22, answer(model.FinishContinue)), eventOf("b", 24, answer(model.FinishWait)),
		}, taskEvents()...), `rolecall_turn_duration_seconds{outcome="ended"} 1 of 7
rolecall_turn_duration_seconds{outcome="waiting"} 1 of 4
`},
		{"a turn that another process started is not timed", []journal.Event{
			at(0, answer(model.FinishToolCalls)), at(1, answer(model.FinishEnd)), at(2, journal.MessageReceived{}), at(5, answer(model.FinishEnd)),
		}, "rolecall_turn_duration_seconds{outcome=\"ended\"} 1 of 3\n"},
		{"a turn that ends with unread messages starts the next", []journal.Event{
			at(0, journal.MessageReceived{}), at(0, journal.MessageReceived{}), at(2, answer(model.FinishEnd)), at(5, answer(model.FinishWait)),
			at(9, journal.MessageReceived{}), at(10, journal.TurnFailed{Code: errcode.LLMCallFailed}),
		}, `rolecall_turn_duration_seconds{outcome="ended"} 1 of 2
rolecall_turn_duration_seconds{outcome="failed"} 1 of 1
rolecall_turn_duration_seconds{outcome="waiting"} 1 of 3
`},
		{"a call lasts from its decision to its outcome", []journal.Event{
			at(0, allowed("1", "look")), at(0, allowed("2", "look")), at(0, allowed("3", "made up")),
			at(2, journal.ToolResult{Call: "2", Tool: "look"}), at(3, journal.ToolError{Call: "1", Tool: "look"}),
			at(4, journal.ToolResult{Call: "3", Tool: "made up"}), at(5, journal.ToolResult{Call: "4", Tool: "look"}),
		}, `rolecall_tool_call_duration_seconds{outcome="error",tool="look"} 1 of 3
rolecall_tool_call_duration_seconds{outcome="ok",tool="look"} 1 of 2
rolecall_tool_call_duration_seconds{outcome="ok",tool="other"} 1 of 4
`},
		{"a call that is started again is timed from the second start", []journal.Event{
			at(0, allowed("1", "look")), at(6, allowed("1", "look")), at(7, journal.ToolResult{Call: "1", Tool: "look"}),
		}, "rolecall_tool_call_duration_seconds{outcome=\"ok\",tool=\"look\"} 1 of 1\n"},
		{"tokens and cost are summed by role, also those of a summary", []journal.Event{
			at(0, journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishEnd, Usage: model.TokenUsage{Input: 7, Cached: 3, Output: 2, Cost: 5e8}}}),
			at(0, journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishEnd, Usage: model.TokenUsage{Input: 1}}}),
			at(0, journal.ContextCompressed{Usage: model.TokenUsage{Output: 4, Cost: 1e9}}),
		}, `rolecall_cost_total{role="guide"} 1.5
rolecall_tokens_total{kind="cached",role="guide"} 3
rolecall_tokens_total{kind="input",role="guide"} 8
rolecall_tokens_total{kind="output",role="guide"} 6
`},
		{"negative usage is ignored", []journal.Event{
			at(0, journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishEnd, Usage: model.TokenUsage{Input: -7, Cached: -3, Output: -2, Cost: -5}}}),
			at(0, journal.ModelAnswered{Answer: model.Answer{Finish: model.FinishEnd, Usage: model.TokenUsage{Input: 1}}}),
		}, "rolecall_tokens_total{kind=\"input\",role=\"guide\"} 1\n"},
		{"decisions about calls that wait are counted by outcome", []journal.Event{
			at(1, journal.ApprovalDecided{Outcome: journal.ApprovalVoted, Waited: time.Second}),
			at(2, journal.ApprovalDecided{Outcome: journal.ApprovalGiven, Waited: 2 * time.Second}),
			at(3, journal.ApprovalDecided{Outcome: journal.ApprovalGiven, Override: true, Waited: 3 * time.Second}),
			at(4, journal.ApprovalDecided{Outcome: journal.ApprovalRefused, Waited: 4 * time.Second}),
			at(5, journal.ApprovalDecided{Outcome: journal.ApprovalExpired, Waited: 5 * time.Second}),
			at(6, journal.ApprovalDecided{Outcome: journal.ApprovalVoid, Waited: -time.Second}),
		}, `rolecall_approval_duration_seconds{outcome="approved"} 1 of 2
rolecall_approval_duration_seconds{outcome="denied"} 1 of 4
rolecall_approval_duration_seconds{outcome="expired"} 1 of 5
rolecall_approval_duration_seconds{outcome="override"} 1 of 3
rolecall_approval_duration_seconds{outcome="void"} 1 of 0
rolecall_approvals_total{outcome="approved"} 1
rolecall_approvals_total{outcome="denied"} 1
rolecall_approvals_total{outcome="expired"} 1
rolecall_approvals_total{outcome="override"} 1
rolecall_approvals_total{outcome="void"} 1
rolecall_approvals_total{outcome="vote"} 1
`},
		{"a clock that goes back means durations of zero", []journal.Event{
			at(9, journal.AgentSpawned{}), at(9, journal.MessageReceived{}), at(5, allowed("1", "look")), at(4, journal.ToolResult{Call: "1"}), at(3, answer(model.FinishEnd)), at(1, journal.TaskEnded{Status: "done"}),
		}, `agent_workflow_duration_seconds{state="shut"} 1 of 0
rolecall_tool_call_duration_seconds{outcome="ok",tool="look"} 1 of 0
rolecall_turn_duration_seconds{outcome="ended"} 1 of 0
`},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, metrics.Load{})
			for _, e := range c.events {
				f.ObserveEvent(e)
			}
			if diff := cmp.Diff(c.want, f.text(t, familiesIn(c.want)...)); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestObserve_TracksAgentsAndMailboxes(t *testing.T) {
	f := newFixture(t, metrics.Load{RunningTasks: 3, WaitingTasks: 2, PausedTasks: 4, Thinking: 1, Delayed: 1, Commits: 9, DiskFree: 7, DiskReserve: 5, Recorded: 3, WaitingApprovals: 6, OldestApproval: 90 * time.Second})
	want := func(when string, waiting, unread int) {
		t.Helper()
		got := f.text(t, "rolecall_agents", "rolecall_tasks", "rolecall_mailbox_depth", "rolecall_commits_total", "rolecall_disk_bytes", "rolecall_recorded_bytes", "rolecall_not_ready", "rolecall_tool_service_up",
			"rolecall_approvals_waiting", "rolecall_approvals_oldest_seconds", "rolecall_notifications_total", "rolecall_notification_delay_seconds")
		text := fmt.Sprintf(`rolecall_agents{status="calling"} 0
rolecall_agents{status="starting"} 0
rolecall_agents{status="thinking"} 1
rolecall_agents{status="waiting"} %d
rolecall_approvals_oldest_seconds{} 90
rolecall_approvals_waiting{} 6
rolecall_commits_total{} 9
rolecall_disk_bytes{kind="free"} 7
rolecall_disk_bytes{kind="reserve"} 5
rolecall_mailbox_depth{status="delayed"} 1
rolecall_mailbox_depth{status="unread"} %d
rolecall_not_ready{reason="storage_low"} 1
rolecall_notification_delay_seconds{notification="oncall"} 4
rolecall_notifications_total{notification="oncall",outcome="delivered"} 3
rolecall_notifications_total{notification="oncall",outcome="dropped"} 1
rolecall_notifications_total{notification="oncall",outcome="retried"} 2
rolecall_recorded_bytes{} 3
rolecall_tasks{status="paused"} 4
rolecall_tasks{status="running"} 3
rolecall_tasks{status="waiting"} 2
rolecall_tool_service_up{service="joke"} 1
rolecall_tool_service_up{service="weather"} 0
`, waiting, unread)
		if diff := cmp.Diff(text, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", when, diff)
		}
	}
	for i, s := range []struct {
		event           journal.Event
		waiting, unread int
	}{
		{at(0, journal.AgentSpawned{}), 0, 0},
		{eventOf("b", 0, journal.AgentSpawned{}), 1, 0},
		{at(0, messageTo("a")), 1, 0}, // the delayed one
		{at(0, messageTo("a")), 1, 1},
		{at(0, messageTo("b")), 1, 2},
		{at(0, messageTo("user")), 1, 2},
		{at(0, journal.MessageReceived{}), 1, 1},
		{eventOf("c", 0, journal.MessageReceived{}), 2, 1}, // created by another process: its mailbox is unknown
		{at(0, messageTo("c")), 2, 1},
		{eventOf("b", 1, journal.AgentTerminated{}), 1, 0},
		{eventOf("b", 2, answer(model.FinishEnd)), 1, 0}, // committed before its end, observed after
		{at(3, messageTo("a")), 1, 1},
		{at(4, journal.TaskEnded{Status: "done"}), 0, 0},
		{at(4, messageTo("a")), 0, 0},
		{at(4, answer(model.FinishEnd)), 0, 0},
	} {
		f.ObserveEvent(s.event)
		want(fmt.Sprintf("after event %d", i), s.waiting, s.unread)
	}
}

func TestRegistryCollector_ShowsCurrentRegistry(t *testing.T) {
	f := newFixture(t, metrics.Load{})
	gauges := []string{"agent_tool_group_availability", "agent_state_availability"}
	want := `agent_state_availability{state="open"} 2
agent_state_availability{state="shut"} 2
agent_state_availability{state="undefined"} 1
agent_tool_group_availability{group="door"} 3
`
	if diff := cmp.Diff(want, f.text(t, gauges...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	f.register(t, "hall", newTool(t, "greet", tool.Options{States: []string{"*"}}), newTool(t, "leave", tool.Options{State: "undefined", States: []string{"open", "undefined"}}))
	if err := grouptest.ReplaceTools(f.groups, "test", "door", nil); err != nil {
		t.Fatal(err)
	}
	want = `agent_state_availability{state="open"} 2
agent_state_availability{state="undefined"} 2
agent_tool_group_availability{group="door"} 0
agent_tool_group_availability{group="hall"} 2
`
	if diff := cmp.Diff(want, f.text(t, gauges...)); diff != "" {
		t.Errorf("after a change (-want +got):\n%s", diff)
	}
}

func TestRefused_CountsPermissionErrorsOnly(t *testing.T) {
	f := newFixture(t, metrics.Load{})
	for _, code := range []errcode.Code{"", errcode.RoleNotFound, errcode.InsufficientPermissions, errcode.Internal} {
		f.CountRefused(code)
	}
	if got, want := f.text(t, "agent_privilege_escalation_attempts_total"), "agent_privilege_escalation_attempts_total{} 1\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// Names that models, callers or servers invent must not become series: each
// series stays forever, here and in the database that scrapes it.
func TestObserve_LimitsSeriesOfInventedNames(t *testing.T) {
	const names = 10_000
	f := newFixture(t, metrics.Load{})
	var many []tool.Tool
	for i := range names { // registered, as by a server that keeps listing new tools
		many = append(many, newTool(t, fmt.Sprintf("listed%d", i), tool.Options{State: fmt.Sprintf("s%d", i)}))
	}
	f.register(t, "many", many...)
	for i := range 2 * maxSeries {
		f.register(t, toolgroups.GroupID(fmt.Sprintf("g%d", i)))
	}
	for i := range names {
		made := fmt.Sprintf("made-up-%d", i)
		if i%3 == 0 {
			made = fmt.Sprintf("\xff%d", i)
		}
		listed := fmt.Sprintf("listed%d", i)
		for _, body := range []journal.EventBody{
			journal.TaskStarted{Groups: []string{made, fmt.Sprintf("g%d", i)}, State: made},
			denied(made, errcode.UnknownTool, "there is no tool "+made),
			denied(made, errcode.Code(made), made),
			journal.ToolCall{Tool: made, Decision: made},
			allowed(made, made), journal.ToolError{Call: identity.CallID(made), Tool: made, Code: errcode.Code(made)},
			allowed(listed, listed), journal.ToolResult{Call: identity.CallID(listed), Tool: listed},
			journal.StateTransition{Tool: made, From: made, To: made},
			journal.StateTransition{Tool: listed, From: fmt.Sprintf("s%d", i), To: fmt.Sprintf("s%d", i+1)},
			journal.ModelAnswered{Answer: model.Answer{State: made, Finish: model.FinishReason(made), Usage: model.TokenUsage{Input: 1, Cost: 1}}},
			journal.TurnFailed{Code: errcode.Code(made)},
			journal.TaskEnded{Status: made},
		} {
			e := eventOf(identity.AgentID("agent"+made), float64(i), body)
			e.Task, e.Role = identity.TaskID(made), made
			f.ObserveEvent(e)
		}
	}
	list, err := f.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range list {
		if n := len(family.GetMetric()); n > maxSeries+1 {
			t.Errorf("%s has %d series", family.GetName(), n)
		}
	}
	for _, name := range []string{"agent_tool_group_requests_total", "rolecall_tool_call_duration_seconds", "agent_state_transitions_total"} {
		if text := f.text(t, name); strings.Contains(text, "made-up") || !strings.Contains(text, `"other"`) {
			t.Errorf("%s has labels of invented names, or no label other", name)
		}
	}
	sum := 0.0
	for _, family := range list {
		if family.GetName() == "rolecall_tokens_total" {
			for _, m := range family.GetMetric() {
				sum += m.GetCounter().GetValue()
			}
		}
	}
	if sum != names {
		t.Errorf("%v tokens were counted, want %d, including those under other", sum, names)
	}
}

// The same events produce the same metrics, however streams are interleaved.
func TestObserve_IndependentOfStreamOrder(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var streams [][]journal.Event
	for i := range 20 {
		var stream []journal.Event
		for _, e := range taskEvents() {
			e.Task, e.Agent = identity.TaskID(fmt.Sprint("t", i)), identity.AgentID(fmt.Sprint("a", i))
			e.At = e.At.Add(time.Duration(i) * time.Second)
			stream = append(stream, e)
		}
		streams = append(streams, stream)
	}
	inTurn := newFixture(t, metrics.Load{})
	for _, stream := range streams {
		for _, e := range stream {
			inTurn.ObserveEvent(e)
		}
	}
	mixed := newFixture(t, metrics.Load{})
	for left := streams; len(left) > 0; {
		i := random.IntN(len(left))
		mixed.ObserveEvent(left[i][0])
		if left[i] = left[i][1:]; len(left[i]) == 0 {
			left[i] = left[len(left)-1]
			left = left[:len(left)-1]
		}
	}
	if diff := cmp.Diff(inTurn.text(t), mixed.text(t)); diff != "" {
		t.Errorf("(-in turn +mixed):\n%s", diff)
	}
}

func TestMetrics_ConcurrentObserveAndGather(t *testing.T) {
	f := newFixture(t, metrics.Load{})
	var work sync.WaitGroup
	for i := range 8 {
		work.Go(func() {
			for j := range 200 {
				for _, e := range taskEvents() {
					e.Task = identity.TaskID(fmt.Sprint(i, ".", j))
					f.ObserveEvent(e)
				}
				f.CountRefused(errcode.InsufficientPermissions)
			}
		})
		work.Go(func() {
			for range 20 {
				if _, err := f.Gather(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	work.Wait()
	want := `agent_privilege_escalation_attempts_total{} 1600
rolecall_tasks_total{status="done"} 1600
rolecall_tasks_total{status="started"} 1600
`
	if diff := cmp.Diff(want, f.text(t, familiesIn(want)...)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestNew_RejectsInvalidConfig(t *testing.T) {
	groups, load := toolgroups.NewManager(), func() metrics.Load { return metrics.Load{} }
	taken := prometheus.NewRegistry()
	if _, err := metrics.New(taken, metrics.Config{Groups: groups, Load: load}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		reg    prometheus.Registerer
		config metrics.Config
		says   string
	}{
		{"no groups", prometheus.NewRegistry(), metrics.Config{Load: load}, "Config.Groups"},
		{"no load", prometheus.NewRegistry(), metrics.Config{Groups: groups}, "Config.Load"},
		{"already registered", taken, metrics.Config{Groups: groups, Load: load}, "duplicate"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if _, err := metrics.New(c.reg, c.config); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("got %v, want an error that says %s", err, c.says)
			}
		})
	}
}

func TestMetrics_NamesFollowPrometheusRules(t *testing.T) {
	f := newFixture(t, metrics.Load{})
	problems, err := testutil.GatherAndLint(f)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		if !strings.HasPrefix(p.Metric, "agent_") { // these names are given by the specification
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
}

func BenchmarkObserve(b *testing.B) {
	f := newFixture(b, metrics.Load{})
	events := taskEvents()
	ids := make([]identity.TaskID, 10_000)
	for i := range ids {
		ids[i] = identity.TaskID(fmt.Sprint("task", i))
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for _, e := range events {
			e.Task = ids[i%len(ids)]
			f.ObserveEvent(e)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(events)), "ns/event")
}
