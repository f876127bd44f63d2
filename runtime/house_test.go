package runtime_test

import (
	"context"
	"encoding/json"
	"iter"
	"os"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var operator = identity.ByOperator("test")

// mind answers for all agents. An answer that says nothing of what it read
// has read everything.
type mind func(ctx context.Context, r model.Request) (model.Answer, error)

// Generate implements model.Model.
func (m mind) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a, err := m(ctx, r)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		if a.MessagesRead == 0 {
			a.MessagesRead = len(messages(r))
		}
		yield(model.Delta{Answer: &a}, nil)
	}
}

// brain is a mind that neither waits nor fails: a pure function of the request.
type brain func(r model.Request) model.Answer

// Generate implements model.Model.
func (b brain) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return mind(func(_ context.Context, r model.Request) (model.Answer, error) { return b(r), nil }).Generate(ctx, r)
}

// end is an answer that ends the turn.
func end(text string) model.Answer { return model.Answer{Finish: model.FinishEnd, Text: text} }

// wait is an answer that waits for a message.
func wait() model.Answer { return model.Answer{Finish: model.FinishWait} }

// do is an answer that calls tools: name, arguments, name, arguments …
func do(pairs ...any) model.Answer {
	a := model.Answer{Finish: model.FinishToolCalls}
	for i := 0; i < len(pairs); i += 2 {
		args, raw := pairs[i+1].(json.RawMessage)
		if !raw {
			args = encode(pairs[i+1])
		}
		a.Calls = append(a.Calls, model.Call{Name: pairs[i].(string), Args: args})
	}
	return a
}

func encode(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

type obj = map[string]any

// last gives the content of the last result, decoded.
func last(r model.Request) obj {
	list := results(r)
	if len(list) == 0 {
		return nil
	}
	return decode(list[len(list)-1].Content)
}

func decode(content json.RawMessage) obj {
	var v obj
	_ = json.Unmarshal(content, &v) // what is no object is nil
	return v
}

// results lists what the calls so far came to.
func results(r model.Request) []model.Result {
	var list []model.Result
	for _, item := range r.Items {
		if item.Result != nil {
			list = append(list, *item.Result)
		}
	}
	return list
}

// messages lists what was written to the agent so far.
func messages(r model.Request) []model.Message {
	var list []model.Message
	for _, item := range r.Items {
		if item.Message != nil {
			list = append(list, *item.Message)
		}
	}
	return list
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

// report gives the payload of the last message from another agent.
func report(r model.Request) json.RawMessage {
	list := messages(r)
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].From != runtime.User {
			return list[i].Payload
		}
	}
	return nil
}

func brief() obj {
	return obj{"objective": "o", "constraints": []string{}, "inputs": "i", "outputs": "o", "completion_criteria": "c"}
}

// manage is a root that makes a role with the given groups, spawns one agent
// of it with work, waits for its report and ends with that.
func manage(r model.Request, role string, groups ...string) model.Answer {
	switch answers(r) {
	case 0:
		return do("create_role", obj{"name": role, "rolePrompt": "work", "toolGroups": append([]string{}, groups...)})
	case 1:
		return do("spawn_agent_with_task", obj{"roleId": last(r)["id"], "taskBrief": brief(), "initialMessage": "go"})
	}
	if got := report(r); got != nil {
		return model.Answer{Finish: model.FinishEnd, Value: got}
	}
	return wait()
}

// plan says how a house is built; the zero plan is one on a new directory.
type plan struct {
	dir    string
	model  model.Model
	tools  []tool.Tool                       // the group probe
	store  func(journal.Store) journal.Store // what stands between runtime and store
	config func(*runtime.Config)             // further settings
}

// house is a runtime on a store, with the built-in groups.
type house struct {
	*runtime.Runtime
	store *persist.Store
}

func open(t *testing.T, dir string, m model.Model) *house { return plan{dir: dir, model: m}.open(t) }

func (p plan) open(t *testing.T) *house {
	t.Helper()
	if p.dir == "" {
		p.dir = scratch(t)
	}
	h := &house{store: persisttest.OpenIn(t, p.dir)}
	config := runtime.Config{
		Store: h.store, Groups: toolgroups.NewManager(toolgroups.Reserved()...), Workspaces: p.dir,
		Model: func(string) (model.Model, error) { return p.model, nil },
	}
	if p.store != nil {
		config.Store = p.store(h.store)
	}
	if p.config != nil {
		p.config(&config)
	}
	var err error
	if h.Runtime, err = runtime.New(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	if err := builtin.Register(config.Groups, h, builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	if p.tools != nil {
		if _, err := config.Groups.Register("test", toolgroups.Group{ID: "probe", Tools: p.tools}); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

// scratch is a directory for stores that are opened and closed often: in
// memory where there is such a place, since no test here is about the disk.
func scratch(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "rolecall")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// leave ends the house as a process does that is told to.
func (h *house) leave(t *testing.T) {
	t.Helper()
	h.Close()
	persisttest.Close(t, h.store)
}

func (h *house) start(t *testing.T, spec org.TaskSpec) identity.TaskID {
	t.Helper()
	if spec.Caller.Kind == identity.None {
		spec.Caller = operator
	}
	id, err := h.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (h *house) resume(t *testing.T, id identity.TaskID) {
	t.Helper()
	if err := h.Resume(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func (h *house) wait(t *testing.T, id identity.TaskID) org.Task {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	task, err := h.Wait(ctx, id)
	if err != nil {
		t.Fatalf("wait for task %s: %v\n%s", id, err, h.story(t))
	}
	return task
}

// reach waits until what a task does says so; a task that ends before has
// failed the test.
func (h *house) reach(t *testing.T, id identity.TaskID, reached <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := h.Wait(ctx, id)
		ended <- err
	}()
	select {
	case <-reached:
	case err := <-ended:
		t.Fatalf("task %s ended too early: %v\n%s", id, err, h.story(t))
	}
}

func (h *house) run(t *testing.T, spec org.TaskSpec) org.Task {
	t.Helper()
	return h.wait(t, h.start(t, spec))
}

// want checks how a task ended: the result as JSON, or the code of its error.
func (h *house) want(t *testing.T, task org.Task, result string, code errcode.Code) {
	t.Helper()
	var got errcode.Code
	if task.Error != nil {
		got = task.Error.Code
	}
	if string(task.Result) != result || got != code {
		t.Errorf("task %s: %s, error %v; want %s, error %q\n%s", task.Status, task.Result, task.Error, result, code, h.story(t))
	}
}

func (h *house) top(t *testing.T, id identity.TaskID) identity.AgentID {
	t.Helper()
	task, ok := h.Org().Task(id)
	if !ok {
		t.Fatalf("there is no task %s", id)
	}
	return task.Top
}

// hire has an agent make a role and spawn one of it.
func (h *house) hire(t *testing.T, by identity.AgentID, spec org.RoleSpec, collaborators ...identity.AgentID) identity.AgentID {
	t.Helper()
	role, err := h.CreateRole(t.Context(), called(identity.ByAgent(by)), spec)
	if err != nil {
		t.Fatal(err)
	}
	s := org.Spawn{Role: role.ID, Brief: org.TaskBrief{Objective: "o", Constraints: org.Lines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}}
	for _, c := range collaborators {
		s.Brief.Collaborators = append(s.Brief.Collaborators, org.Collaborator{Agent: c, Role: "r"})
	}
	spawned, err := h.Spawn(t.Context(), called(identity.ByAgent(by)), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return spawned.ID
}

// tell writes to an agent as the operator.
func (h *house) tell(t *testing.T, to identity.AgentID, payload string) {
	t.Helper()
	if _, err := h.Send(t.Context(), called(operator), string(to), json.RawMessage(payload), 0); err != nil {
		t.Fatal(err)
	}
}

// called is a call of nobody knows which tool.
func called(by identity.Principal) tool.Call {
	return tool.Call{ID: identity.CallID(identity.NewID()), By: by}
}

func use(ids ...toolgroups.GroupID) *toolgroups.Set {
	set := toolgroups.Of(ids...)
	return &set
}

func (h *house) events(t *testing.T) []journal.Event {
	t.Helper()
	_ = h.Flush() // a store that a test broke is read all the same
	var list []journal.Event
	for e, err := range h.store.Follow(context.WithoutCancel(t.Context()), 0, false) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// story is the log as text, for who reads a failure.
func (h *house) story(t *testing.T) string {
	var text []byte
	for _, e := range h.events(t) {
		line := encode(e)
		text = append(append(text, line[:min(len(line), 400)]...), '\n')
	}
	return string(text)
}

// happened lists the events of one type.
func happened[B journal.Body](t *testing.T, h *house) []journal.Event {
	t.Helper()
	var list []journal.Event
	for _, e := range h.events(t) {
		if _, ok := e.Body.(B); ok {
			list = append(list, e)
		}
	}
	return list
}

// said lists the bodies of one type.
func said[B journal.Body](t *testing.T, h *house) []B {
	t.Helper()
	var list []B
	for _, e := range happened[B](t, h) {
		list = append(list, e.Body.(B))
	}
	return list
}

// taken lists the payloads of the messages an agent took, in order.
func (h *house) taken(t *testing.T, id identity.AgentID) []string {
	t.Helper()
	var list []string
	for _, e := range happened[journal.MessageReceived](t, h) {
		if e.Agent == id {
			list = append(list, string(e.Body.(journal.MessageReceived).Message.Payload))
		}
	}
	return list
}

// until waits for an event; there must be one or t fails.
func (h *house) until(t *testing.T, is func(journal.Event) bool) journal.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range h.store.Follow(ctx, 0, true) {
		if err != nil {
			t.Fatal(err)
		}
		if is(e) {
			return e
		}
	}
	t.Fatalf("what was waited for did not happen\n%s", h.story(t))
	return journal.Event{}
}

// probe makes a tool of the group probe.
func probe(t *testing.T, name string, o tool.Options, fn func(ctx context.Context, in obj) (any, error)) tool.Tool {
	t.Helper()
	tl, err := tool.New(name, "For tests.", fn, &o)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// between is a store that shows each commit to a function before it is made.
type between struct {
	journal.Store
	commit func(ctx context.Context, b *journal.Batch) (uint64, error)
	record func(kind, key string)
}

// Commit implements journal.Log.
func (s *between) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if s.commit == nil {
		return s.Store.Commit(ctx, b)
	}
	return s.commit(ctx, b)
}

// Record implements journal.Records.
func (s *between) Record(ctx context.Context, kind, key string) ([]byte, error) {
	if s.record != nil {
		s.record(kind, key)
	}
	return s.Store.Record(ctx, kind, key)
}
