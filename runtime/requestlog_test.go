package runtime_test

import (
	"bytes"
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
	Groups      []string `json:"requested_groups"`
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

// paper is a log that is kept, and a clock that moves a second with each look.
type paper struct {
	mu   sync.Mutex // guards what follows
	text bytes.Buffer
	time time.Time
}

// Write implements io.Writer.
func (p *paper) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.text.Write(line)
}

func (p *paper) now() time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.time = p.time.Add(time.Second)
	return p.time
}

func newPaper() *paper { return &paper{time: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)} }

// config has a runtime write to p from a level on.
func (p *paper) config(level slog.Level) func(*runtime.Config) {
	return func(c *runtime.Config) {
		c.Log, c.Now = slog.New(slog.NewJSONHandler(p, &slog.HandlerOptions{Level: level})), p.now
	}
}

// requests lists the records of the request log, oldest first.
func (p *paper) requests(t *testing.T) (list []requestRecord) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	for line := range strings.Lines(p.text.String()) {
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

// one gives the only record, with its id, task and agent checked.
func (p *paper) one(t *testing.T, h *house, task org.Task, answers int) requestRecord {
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

func nothing(context.Context, obj) (any, error) { return "ok", nil }

func door(t *testing.T) []tool.Tool {
	return []tool.Tool{
		probe(t, "open", tool.Options{State: "open", States: []string{"shut"}}, nothing),
		probe(t, "enter", tool.Options{States: []string{"open"}}, nothing),
		probe(t, "look", tool.Options{Effect: tool.ReadOnly}, nothing),
	}
}

func TestARequestIsLoggedWithTheFieldsOfTheSeed(t *testing.T) {
	p := newPaper()
	h := plan{tools: door(t), config: p.config(slog.LevelInfo), model: once(do(
		"enter", obj{}, "read_file", obj{"path": "x"}, "open", obj{}, "made_up", obj{}, "enter", obj{}))}.open(t)
	spec := h.bound(t, "shut")
	spec.Groups = use("probe")
	r := p.one(t, h, h.run(t, spec), 2)
	moves := said[journal.StateTransition](t, h)
	if len(r.Transitions) != 1 || len(moves) != 1 || r.Transitions[0].Timestamp.IsZero() {
		t.Fatalf("transitions %+v, of %+v on record", r.Transitions, moves)
	}
	if r.ByGroupMore != 0 || !slices.IsSorted(r.ByGroup) || !slices.Contains(r.ByGroup, "run_command") || !slices.Contains(r.ByGroup, "put_artifact") {
		t.Errorf("filtered by group: %v and %d more", r.ByGroup, r.ByGroupMore)
	}
	if took, err := time.ParseDuration(r.Took); err != nil || took < 10*time.Second {
		t.Errorf("execution time %q, %v, though each event is a second after the one before", r.Took, err)
	}
	got := []any{r.Role, r.Groups, r.State, r.Tools, r.ByState, fmt.Sprint(r.Denied), r.Code,
		r.Transitions[0].Tool, r.Transitions[0].From, r.Transitions[0].To}
	want := []any{"worker", []string{"probe"}, "shut", []string{"open", "look"}, []string{"enter"},
		"[{enter tool_not_available} {read_file tool_not_available} {made_up unknown_tool}]", errcode.Code(""), "open", "shut", "open"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestEveryListOfARecordIsThereAndNoneIsNull(t *testing.T) {
	p := newPaper()
	h := plan{tools: door(t), config: p.config(slog.LevelInfo), model: brain(func(model.Request) model.Answer { return end("done") })}.open(t)
	spec := h.bound(t, "")
	spec.Groups = &toolgroups.Set{}
	r := p.one(t, h, h.run(t, spec), 1)
	got := []any{r.Groups, r.State, len(r.Transitions), r.Tools, r.ByState, len(r.Denied)}
	if diff := cmp.Diff([]any{[]string{}, "undefined", 0, []string{}, []string{}, 0}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if line := p.text.String(); strings.Contains(line, "null") {
		t.Errorf("the record has a null: %s", line)
	}
}

func TestATurnThatFailsIsLoggedWithItsCode(t *testing.T) {
	p := newPaper()
	h := plan{tools: door(t), config: p.config(slog.LevelInfo), model: mind(func(context.Context, model.Request) (model.Answer, error) {
		return model.Answer{}, errors.New("no connection")
	})}.open(t)
	r := p.one(t, h, h.run(t, h.bound(t, "open")), 1)
	if r.Code != errcode.LLMCallFailed || r.State != "open" || !slices.Contains(r.Tools, "enter") || !slices.Equal(r.ByState, []string{"open"}) || r.Groups[0] != "*" {
		t.Errorf("got %+v", r)
	}
	if strings.Contains(fmt.Sprint(p.requests(t)), "no connection") {
		t.Error("the record tells what a provider said")
	}
}

// A turn is a request: one that waits and goes on with the next message is two,
// and each begins where its own message was taken.
func TestEachTurnOfEachAgentIsARequestOfItsOwn(t *testing.T) {
	p := newPaper()
	waits := make(chan struct{}) // closed when root does
	h := plan{model: brain(func(r model.Request) model.Answer {
		if r.Self.Parent != "" {
			<-waits
			return end("done")
		}
		return manage(r, "clerk", "artifact")
	}), config: func(c *runtime.Config) {
		p.config(slog.LevelInfo)(c)
		c.Observe = func(e journal.Event) {
			if b, ok := e.Body.(journal.ModelAnswered); ok && b.Answer.Finish == model.FinishWait {
				close(waits)
			}
		}
	}}.open(t)
	h.run(t, org.TaskSpec{})
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

// Both working patterns are one request from the message to the end, with the
// same fields.
func TestBothWorkingPatternsAreLoggedTheSameWay(t *testing.T) {
	walk := brain(func(r model.Request) model.Answer {
		switch done := len(results(r)); {
		case strings.Contains(r.System, "make a plan"):
			return end(`{"plan":[{"tool":"open"},{"tool":"enter"}]}`)
		case done < 2:
			return do([]string{"open", "enter"}[done], obj{})
		}
		return end("done")
	})
	for pattern, answers := range map[org.Pattern]int{org.React: 3, org.Plan: 4} {
		t.Run(string(pattern), func(t *testing.T) {
			p := newPaper()
			h := plan{tools: door(t), config: p.config(slog.LevelInfo), model: fluent(100_000, walk)}.open(t)
			spec := h.worker(t, org.RoleSpec{Use: use("probe"), Pattern: pattern})
			spec.State = "shut"
			r := p.one(t, h, h.run(t, spec), answers)
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

// A brain that reads one message at a time begins its next turn without mail
// being taken.
func TestMailLeftUnreadBeginsTheNextRequest(t *testing.T) {
	p := newPaper()
	reached, more := make(chan struct{}), make(chan struct{})
	h := plan{config: p.config(slog.LevelInfo), model: mind(func(_ context.Context, r model.Request) (model.Answer, error) {
		if answers(r) == 0 {
			close(reached)
			<-more
			return model.Answer{Finish: model.FinishToolCalls, MessagesRead: 1, Calls: do("get_context_status", obj{}).Calls}, nil
		}
		return model.Answer{Finish: model.FinishEnd, MessagesRead: min(answers(r), len(messages(r)))}, nil
	})}.open(t)
	id := h.start(t, org.TaskSpec{})
	h.reach(t, id, reached)
	if _, err := h.Send(t.Context(), called(operator), string(h.top(t, id)), json.RawMessage(`"more"`), 0); err != nil {
		t.Fatal(err)
	}
	close(more)
	h.wait(t, id)
	list := p.requests(t)
	if len(list) != 2 {
		t.Fatalf("%d records", len(list))
	}
	if took, err := time.ParseDuration(list[1].Took); err != nil || took <= 0 {
		t.Errorf("the second took %q, %v", list[1].Took, err)
	}
}

func TestARecordIsBoundedWhateverAModelMakesUp(t *testing.T) {
	p := newPaper()
	var calls []any
	for i := range 500 {
		calls = append(calls, fmt.Sprintf("made-up-%d-%s", i, strings.Repeat("é\n", 10_000)), obj{})
	}
	tools := door(t)
	for i := range 300 {
		tools = append(tools, probe(t, fmt.Sprintf("tool%03d", i), tool.Options{}, nothing))
	}
	h := plan{tools: tools, config: p.config(slog.LevelInfo), model: once(do(calls...))}.open(t)
	r := p.one(t, h, h.run(t, h.bound(t, "shut")), 2)
	if len(r.Denied) != 100 || r.DeniedMore != 400 || len(r.Denied[0].Tool) > 140 {
		t.Errorf("%d denied calls and %d more, the first %q", len(r.Denied), r.DeniedMore, r.Denied[0].Tool)
	}
	if len(r.Tools) != 100 || r.ToolsMore != 204 { // 302 and those of artifact
		t.Errorf("%d tools and %d more", len(r.Tools), r.ToolsMore)
	}
	if n := p.text.Len(); n > 64<<10 {
		t.Errorf("the log has %d bytes", n)
	}
}

func TestNothingIsGatheredForALogThatDoesNotWantIt(t *testing.T) {
	p := newPaper()
	h := plan{tools: door(t), config: p.config(slog.LevelWarn), model: once(do("made_up", obj{}))}.open(t)
	h.run(t, h.bound(t, "shut"))
	if got := p.requests(t); len(got) != 0 {
		t.Errorf("logged below its level: %+v", got)
	}
}

func TestEveryCommittedEventIsObservedInOrderBeforeAnybodyActsOnIt(t *testing.T) {
	var mu sync.Mutex
	seen := map[uint64]journal.Event{}
	h := plan{tools: door(t), model: brain(func(r model.Request) model.Answer {
		if r.Self.Parent != "" {
			mu.Lock()
			defer mu.Unlock()
			spawned := false
			for _, e := range seen {
				_, is := e.Body.(journal.AgentSpawned)
				spawned = spawned || is && e.Agent == r.Self.ID
			}
			return end(fmt.Sprint("spawn observed: ", spawned))
		}
		return manage(r, "clerk", "artifact")
	}), config: func(c *runtime.Config) {
		c.Observe = func(e journal.Event) {
			mu.Lock()
			defer mu.Unlock()
			seen[e.Seq] = e
		}
	}}.open(t)
	h.want(t, h.run(t, org.TaskSpec{}), `{"text":"spawn observed: true"}`, "")
	stored := 0
	for e, err := range h.store.Follow(t.Context(), 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		stored++
		if got, ok := seen[e.Seq]; !ok || got.Body.Type() != e.Body.Type() || got.Agent != e.Agent || got.Stream != e.Stream {
			t.Errorf("event %d is %+v, observed was %+v", e.Seq, e, got)
		}
	}
	if stored != len(seen) || stored < 20 {
		t.Errorf("%d events are stored, %d were observed", stored, len(seen))
	}
}

func TestLoadCountsWhatThereIsToDo(t *testing.T) {
	asked, gone := make(chan struct{}), make(chan struct{})
	h := plan{model: mind(func(_ context.Context, r model.Request) (model.Answer, error) {
		if answers(r) == 0 {
			return do("send_message", obj{"to": r.Self.ID, "payload": "later", "delayMs": 3_600_000}), nil
		}
		close(asked)
		<-gone
		return end("done"), nil
	})}.open(t)
	before := h.Load()
	id := h.start(t, org.TaskSpec{})
	<-asked
	if got := h.Load(); got.Tasks != 1 || got.Working != 1 || got.Delayed != 1 || got.Commits < before.Commits+4 {
		t.Errorf("at work: %+v, before: %+v", got, before)
	}
	if err := h.Cancel(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	close(gone)
	h.Close()
	if got := h.Load(); got.Tasks != 0 || got.Working != 0 || got.Delayed != 0 {
		t.Errorf("afterwards: %+v", got)
	}
}
