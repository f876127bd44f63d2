package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// requestRecord is a record of the request log.
type requestRecord struct {
	Level       string
	Msg         string
	ID          string   `json:"request_id"`
	Task        string   `json:"task"`
	Agent       string   `json:"agent"`
	Role        string   `json:"role"`
	Caller      string   `json:"caller"`
	Groups      []string `json:"requested_groups"`
	Granted     []string `json:"granted_groups"`
	State       string   `json:"initial_state"`
	Transitions []struct {
		Tool, From, To string
		Timestamp      time.Time
	} `json:"state_transitions"`
	Tools       []string `json:"available_tools"`
	ToolsMore   int      `json:"available_tools_more"`
	ByGroup     []string `json:"filtered_by_group"`
	ByGroupMore int      `json:"filtered_by_group_more"`
	ByState     []string `json:"filtered_by_state"`
	Denied      []struct {
		Tool string
		Code errcode.Code
	} `json:"denied"`
	DeniedMore int          `json:"denied_more"`
	Took       string       `json:"execution_time"`
	Code       errcode.Code `json:"code"`
}

// logRecorder keeps the log, and is a clock that advances by a second at each
// reading.
type logRecorder struct {
	buffer.SyncBuffer
	mu   sync.Mutex
	time time.Time // guarded by mu
}

func (p *logRecorder) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.time = p.time.Add(time.Second)
	return p.time
}

func newLogRecorder() *logRecorder {
	return &logRecorder{time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
}

// configure makes a runtime log to p from a level on and use its clock.
func (p *logRecorder) configure(level slog.Level) func(*runtime.Config) {
	return func(c *runtime.Config) {
		c.Log, c.Now = slog.New(slog.NewJSONHandler(p, &slog.HandlerOptions{Level: level})), p.now
	}
}

// requests lists the records of the request log, oldest first.
func (p *logRecorder) requests(t *testing.T) (list []requestRecord) {
	t.Helper()
	for line := range strings.Lines(p.String()) {
		var r requestRecord
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		if r.Msg == "agent request" {
			list = append(list, r)
		}
	}
	return list
}

// onlyRequest returns the only record after checking its id, task and agent.
func (p *logRecorder) onlyRequest(t *testing.T, fx *fixture, task org.Task, answers int) requestRecord {
	t.Helper()
	list := p.requests(t)
	if len(list) != 1 {
		t.Fatalf("%d records: %+v", len(list), list)
	}
	r := list[0]
	if want := fmt.Sprintf("%s/%s/%d", task.ID, task.Top, answers); r.ID != want || r.Task != string(task.ID) || r.Agent != string(task.Top) || r.Level != "INFO" {
		t.Errorf("got %+v, want the request %s", r, want)
	}
	return r
}

// returnOK is a tool function with a constant result.
func returnOK(context.Context, obj) (any, error) { return "ok", nil }

// stateTools returns a tool that moves the state from shut to open, one for the
// state open, and one for every state.
func stateTools(t *testing.T) []tool.Tool {
	return []tool.Tool{
		newTool(t, "open", tool.Options{State: "open", States: []string{"shut"}}, returnOK),
		newTool(t, "enter", tool.Options{States: []string{"open"}}, returnOK),
		newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, returnOK),
	}
}

func TestRequestLog_HasAllFields(t *testing.T) {
	p := newLogRecorder()
	fx := fixtureConfig{tools: stateTools(t), configure: p.configure(slog.LevelInfo), model: answerOnce(callTools(
		"enter", obj{}, "read_file", obj{"path": "x"}, "open", obj{}, "made_up", obj{}, "enter", obj{}))}.open(t)
	spec := fx.workerTask(t, "shut")
	spec.Groups = groupSet("probe")
	r := p.onlyRequest(t, fx, fx.run(t, spec), 2)
	moves := bodiesOf[journal.StateTransition](t, fx)
	if len(r.Transitions) != 1 || len(moves) != 1 || r.Transitions[0].Timestamp.IsZero() {
		t.Fatalf("transitions %+v, of %+v on record", r.Transitions, moves)
	}
	if r.ByGroupMore != 0 || !slices.IsSorted(r.ByGroup) || !slices.Contains(r.ByGroup, "run_command") || !slices.Contains(r.ByGroup, "put_artifact") {
		t.Errorf("filtered by group: %v and %d more", r.ByGroup, r.ByGroupMore)
	}
	if took, err := time.ParseDuration(r.Took); err != nil || took < 10*time.Second {
		t.Errorf("execution time %q, %v, want at least 10s", r.Took, err)
	}
	got := []any{r.Role, r.Caller, r.Groups, r.Granted, r.State, r.Tools, r.ByState, fmt.Sprint(r.Denied), r.Code,
		r.Transitions[0].Tool, r.Transitions[0].From, r.Transitions[0].To}
	want := []any{"worker", "operator", []string{"probe"}, []string{"probe"}, "shut", []string{"open", "look"}, []string{"enter"},
		"[{enter tool_not_available} {read_file tool_not_available} {made_up unknown_tool}]", errcode.Code(""), "open", "shut", "open"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestRequestLog_ListsAreNeverNull(t *testing.T) {
	p := newLogRecorder()
	fx := fixtureConfig{tools: stateTools(t), configure: p.configure(slog.LevelInfo), model: answerFunc(func(model.Request) model.Answer { return endWith("done") })}.open(t)
	spec := fx.workerTask(t, "")
	spec.Groups = &toolgroups.GroupSet{}
	r := p.onlyRequest(t, fx, fx.run(t, spec), 1)
	got := []any{r.Groups, r.Granted, r.State, len(r.Transitions), r.Tools, r.ByState, len(r.Denied)}
	if diff := cmp.Diff([]any{[]string{}, []string{}, "undefined", 0, []string{}, []string{}, 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if line := p.String(); strings.Contains(line, "null") {
		t.Errorf("the record has a null: %s", line)
	}
}

func TestRequestLog_FailedTurnHasCode(t *testing.T) {
	p := newLogRecorder()
	fx := fixtureConfig{tools: stateTools(t), configure: p.configure(slog.LevelInfo), model: modelFunc(func(context.Context, model.Request) (model.Answer, error) {
		return model.Answer{}, errors.New("no connection")
	})}.open(t)
	r := p.onlyRequest(t, fx, fx.run(t, fx.workerTask(t, "open")), 1)
	if r.Code != errcode.LLMCallFailed || r.State != "open" || !slices.Contains(r.Tools, "enter") || !slices.Equal(r.ByState, []string{"open"}) || r.Groups[0] != "*" {
		t.Errorf("got %+v", r)
	}
	if strings.Contains(fmt.Sprint(p.requests(t)), "no connection") {
		t.Error("the record has the error text of the provider")
	}
}

// Each turn is a request: a turn that waits and the turn of the next message
// are two, each beginning with its own message.
func TestRequestLog_OneRecordPerTurn(t *testing.T) {
	p := newLogRecorder()
	waiting := make(chan struct{}) // closed when root waits
	fx := fixtureConfig{model: answerFunc(func(r model.Request) model.Answer {
		if r.Self.Parent != "" {
			<-waiting
			return endWith("done")
		}
		return delegate(r, "clerk", "artifact")
	}), configure: func(c *runtime.Config) {
		p.configure(slog.LevelInfo)(c)
		c.Observe = func(e journal.Event) {
			if b, ok := e.Body.(journal.ModelAnswered); ok && b.Answer.Finish == model.FinishWait {
				close(waiting)
			}
		}
	}}.open(t)
	fx.run(t, org.TaskSpec{})
	var roles []string
	ids := map[string]bool{}
	for _, r := range p.requests(t) {
		roles, ids[r.ID] = append(roles, r.Role), true
	}
	slices.Sort(roles)
	if diff := cmp.Diff([]string{"clerk", "root", "root"}, roles); diff != "" || len(ids) != 3 {
		t.Errorf("requests of (-want +got):\n%s\nwith the ids %v", diff, ids)
	}
}

// With both working patterns a request lasts from the message to the end and
// has the same fields.
func TestRequestLog_SameForBothPatterns(t *testing.T) {
	planOrCall := answerFunc(func(r model.Request) model.Answer {
		switch done := len(results(r)); {
		case strings.Contains(r.Note, "make a plan"):
			return endWith(`{"plan":[{"tool":"open"},{"tool":"enter"}]}`)
		case done < 2:
			return callTools([]string{"open", "enter"}[done], obj{})
		}
		return endWith("done")
	})
	for pattern, answers := range map[org.CollaborationPattern]int{org.React: 3, org.Plan: 4} {
		t.Run(string(pattern), func(t *testing.T) {
			p := newLogRecorder()
			fx := fixtureConfig{tools: stateTools(t), configure: p.configure(slog.LevelInfo), model: withWindow(100_000, planOrCall)}.open(t)
			spec := fx.roleTask(t, org.RoleSpec{Use: groupSet("probe"), Pattern: pattern})
			spec.State = "shut"
			r := p.onlyRequest(t, fx, fx.run(t, spec), answers)
			if len(r.Transitions) != 1 {
				t.Fatalf("transitions %+v", r.Transitions)
			}
			got := []any{r.State, r.Transitions[0].From, r.Transitions[0].To, r.Tools, r.ByState, len(r.Denied), r.Code}
			want := []any{"shut", "shut", "open", []string{"open", "look"}, []string{"enter"}, 0, errcode.Code("")}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A model that reads one message at a time starts its next turn with a message
// that is in the journal already.
func TestRequestLog_UnreadMessageStartsNextRequest(t *testing.T) {
	p := newLogRecorder()
	reached, more := make(chan struct{}), make(chan struct{})
	fx := fixtureConfig{configure: p.configure(slog.LevelInfo), model: modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		if answerCount(r) == 0 {
			close(reached)
			<-more
			return model.Answer{Finish: model.FinishToolCalls, MessagesRead: 1, Calls: callTools("get_context_status", obj{}).Calls}, nil
		}
		return model.Answer{Finish: model.FinishEnd, MessagesRead: min(answerCount(r), len(messages(r)))}, nil
	})}.open(t)
	id := fx.start(t, org.TaskSpec{})
	fx.waitReached(t, id, reached)
	if _, err := fx.SendMessage(t.Context(), newCall(operator), string(fx.topAgent(t, id)), json.RawMessage(`"more"`), 0); err != nil {
		t.Fatal(err)
	}
	close(more)
	fx.wait(t, id)
	list := p.requests(t)
	if len(list) != 2 {
		t.Fatalf("%d records", len(list))
	}
	if took, err := time.ParseDuration(list[1].Took); err != nil || took <= 0 {
		t.Errorf("the second took %q, %v", list[1].Took, err)
	}
}

func TestRequestLog_IsBounded(t *testing.T) {
	p := newLogRecorder()
	var calls []any
	for i := range 500 {
		calls = append(calls, fmt.Sprintf("made-up-%d-%s", i, strings.Repeat("é\n", 10_000)), obj{})
	}
	tools := stateTools(t)
	for i := range 300 {
		tools = append(tools, newTool(t, fmt.Sprintf("tool%03d", i), tool.Options{}, returnOK))
	}
	configure := func(c *runtime.Config) {
		p.configure(slog.LevelInfo)(c)
		c.Limits.Calls = 500
	}
	fx := fixtureConfig{tools: tools, configure: configure, model: answerOnce(callTools(calls...))}.open(t)
	r := p.onlyRequest(t, fx, fx.run(t, fx.workerTask(t, "shut")), 2)
	if len(r.Denied) != 100 || r.DeniedMore != 400 || len(r.Denied[0].Tool) > 140 {
		t.Errorf("%d denied calls and %d more, the first %q", len(r.Denied), r.DeniedMore, r.Denied[0].Tool)
	}
	if len(r.Tools) != 100 || r.ToolsMore != 204 { // 302 and those of artifact
		t.Errorf("%d tools and %d more", len(r.Tools), r.ToolsMore)
	}
	if n := len(p.String()); n > 64<<10 {
		t.Errorf("the log has %d bytes", n)
	}
}

func TestRequestLog_DisabledBelowLevel(t *testing.T) {
	p := newLogRecorder()
	fx := fixtureConfig{tools: stateTools(t), configure: p.configure(slog.LevelWarn), model: answerOnce(callTools("made_up", obj{}))}.open(t)
	fx.run(t, fx.workerTask(t, "shut"))
	if got := p.requests(t); len(got) != 0 {
		t.Errorf("logged below its level: %+v", got)
	}
}

func TestObserve_SeesEventsBeforeTheyTakeEffect(t *testing.T) {
	var mu sync.Mutex
	seen := map[uint64]journal.Event{}
	fx := fixtureConfig{tools: stateTools(t), model: answerFunc(func(r model.Request) model.Answer {
		if r.Self.Parent != "" {
			mu.Lock()
			defer mu.Unlock()
			spawned := false
			for _, e := range seen {
				_, is := e.Body.(journal.AgentSpawned)
				spawned = spawned || is && e.Agent == r.Self.ID
			}
			return endWith(fmt.Sprint("spawn observed: ", spawned))
		}
		return delegate(r, "clerk", "artifact")
	}), configure: func(c *runtime.Config) {
		c.Observe = func(e journal.Event) {
			mu.Lock()
			defer mu.Unlock()
			seen[e.Seq] = e
		}
	}}.open(t)
	fx.wantResult(t, fx.run(t, org.TaskSpec{}), `{"text":"spawn observed: true"}`, "")
	stored := 0
	for e, err := range fx.store.FollowEvents(t.Context(), 0, journal.StoredOnly) {
		if err != nil {
			t.Fatal(err)
		}
		stored++
		if got, ok := seen[e.Seq]; !ok || got.Body.EventType() != e.Body.EventType() || got.Agent != e.Agent || got.Stream != e.Stream {
			t.Errorf("event %d is %+v, observed was %+v", e.Seq, e, got)
		}
	}
	if stored != len(seen) || stored < 20 {
		t.Errorf("%d events are stored, %d were observed", stored, len(seen))
	}
}

func TestLoad_CountsWork(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan struct{})
	fx := fixtureConfig{model: modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
		if answerCount(r) == 0 {
			return callTools("send_message", obj{"to": r.Self.ID, "payload": "later", "delayMs": 3_600_000}), nil
		}
		close(asked)
		<-gone
		return endWith("done"), nil
	})}.open(t)
	before := fx.CurrentLoad()
	id := fx.start(t, org.TaskSpec{})
	<-asked
	if got := fx.CurrentLoad(); got.RunningTasks != 1 || got.Thinking != 1 || got.Delayed != 1 || got.Commits < before.Commits+4 {
		t.Errorf("during the task: %+v, before: %+v", got, before)
	}
	if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	close(gone)
	fx.Close()
	if got := fx.CurrentLoad(); got.RunningTasks+got.WaitingTasks+got.Starting+got.Thinking+got.Calling+got.Delayed != 0 {
		t.Errorf("afterwards: %+v", got)
	}
}
