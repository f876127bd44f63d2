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
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/persist/persisttest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// operator is the principal of calls that tests make themselves.
var operator = identity.ByOperator("test")

// modelFunc is a model that answers for all agents. An answer that leaves
// MessagesRead unset has read all messages.
type modelFunc func(ctx context.Context, r model.Request) (model.Answer, error)

// Generate implements model.Model.
func (m modelFunc) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		a, err := m(ctx, r)
		if err != nil {
			yield(model.AnswerDelta{}, err)
			return
		}
		if a.MessagesRead == 0 {
			a.MessagesRead = len(messages(r))
		}
		yield(model.AnswerDelta{Answer: &a}, nil)
	}
}

// answerFunc is a modelFunc that neither blocks nor fails.
type answerFunc func(r model.Request) model.Answer

// Generate implements model.Model.
func (b answerFunc) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) { return b(r), nil }).Generate(ctx, r)
}

// endWith returns an answer that ends the turn with a text.
func endWith(text string) model.Answer { return model.Answer{Finish: model.FinishEnd, Text: text} }

// waitForMessage returns an answer that waits for a message.
func waitForMessage() model.Answer { return model.Answer{Finish: model.FinishWait} }

// callTools returns an answer that calls tools: name, arguments, name,
// arguments …
func callTools(pairs ...any) model.Answer {
	a := model.Answer{Finish: model.FinishToolCalls}
	for i := 0; i < len(pairs); i += 2 {
		args, raw := pairs[i+1].(json.RawMessage)
		if !raw {
			args = mustJSON(pairs[i+1])
		}
		a.Calls = append(a.Calls, model.Call{Name: pairs[i].(string), Args: args})
	}
	return a
}

func mustJSON(v any) json.RawMessage {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return text
}

// obj is a JSON object.
type obj = map[string]any

// lastResult returns the content of the last result, decoded.
func lastResult(r model.Request) obj {
	list := results(r)
	if len(list) == 0 {
		return nil
	}
	return decodeObject(list[len(list)-1].Content)
}

// decodeObject decodes a JSON object; it returns nil for other values.
func decodeObject(content json.RawMessage) obj {
	var v obj
	_ = json.Unmarshal(content, &v) // nil for a value that is not an object
	return v
}

// results lists the results of the calls so far.
func results(r model.Request) []model.CallResult {
	var list []model.CallResult
	for _, item := range r.Items {
		if item.Result != nil {
			list = append(list, *item.Result)
		}
	}
	return list
}

// messages lists the messages that the agent has received so far.
func messages(r model.Request) []model.Message {
	var list []model.Message
	for _, item := range r.Items {
		if item.Message != nil {
			list = append(list, *item.Message)
		}
	}
	return list
}

// answerCount counts the answers returned so far.
func answerCount(r model.Request) int {
	n := 0
	for _, item := range r.Items {
		if item.Answer != nil {
			n++
		}
	}
	return n
}

// lastReport returns the payload of the last message from another agent.
func lastReport(r model.Request) json.RawMessage {
	list := messages(r)
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].From != runtime.User {
			return list[i].Payload
		}
	}
	return nil
}

// taskBrief returns a complete task brief.
func taskBrief() obj {
	return obj{"objective": "o", "constraints": []string{}, "inputs": "i", "outputs": "o", "completion_criteria": "c"}
}

// delegate is a root that creates a role with the given groups, spawns one
// agent of it, waits for its report and ends with that.
func delegate(r model.Request, role string, groups ...string) model.Answer {
	switch answerCount(r) {
	case 0:
		return callTools("create_role", obj{"name": role, "rolePrompt": "work", "toolGroups": append([]string{}, groups...)})
	case 1:
		return callTools("spawn_agent_with_task", obj{"roleId": lastResult(r)["id"], "taskBrief": taskBrief(), "initialMessage": "go"})
	}
	if got := lastReport(r); got != nil {
		return model.Answer{Finish: model.FinishEnd, Value: got}
	}
	return waitForMessage()
}

// fixtureConfig describes a fixture. The zero value is one on a new directory.
type fixtureConfig struct {
	dir       string
	model     model.Model
	tools     []tool.Tool                       // registered as the group probe
	wrapStore func(journal.Store) journal.Store // wraps the store of the runtime
	configure func(*runtime.Config)             // further settings
}

// fixture is a runtime on a store, with the built-in groups registered.
type fixture struct {
	*runtime.Runtime
	store *persist.Store
}

// openFixture opens a fixture on a data directory; "" is a new one.
func openFixture(t *testing.T, dir string, m model.Model) *fixture {
	return fixtureConfig{dir: dir, model: m}.open(t)
}

// IsBusy reports whether an agent has a goroutine, also after its end.
func (fx *fixture) IsBusy(id identity.AgentID) bool {
	switch fx.AgentStatus(org.Agent{ID: id, Status: org.Active}) {
	case org.AgentStarting, org.AgentThinking, org.AgentCalling:
		return true
	}
	return false
}

func (cfg fixtureConfig) open(t *testing.T) *fixture {
	t.Helper()
	if cfg.dir == "" {
		cfg.dir = fastTempDir(t)
	}
	fx := &fixture{store: persisttest.OpenIn(t, cfg.dir)}
	config := runtime.Config{
		Store: fx.store, Groups: toolgroups.NewManager(toolgroups.ReservedIDs()...), Workspaces: cfg.dir,
		Model: func(string) (model.Model, error) { return cfg.model, nil },
	}
	if cfg.wrapStore != nil {
		config.Store = cfg.wrapStore(fx.store)
	}
	if cfg.configure != nil {
		cfg.configure(&config)
	}
	err := config.Groups.UpdateWith(func(c toolgroups.Change) error { c.Publish(); return nil }, func(tx *toolgroups.Tx) error {
		tx.DeclareGroups(map[toolgroups.GroupID]toolgroups.GroupOwner{"probe": "test"}) // roles may name it also where no test registers it
		return nil
	})
	if err == nil && cfg.tools != nil {
		_, err = grouptest.RegisterGroup(config.Groups, "test", toolgroups.Group{ID: "probe", Tools: cfg.tools})
	}
	if err != nil {
		t.Fatal(err)
	}
	if fx.Runtime, err = runtime.New(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { fx.Close() })
	if err := builtin.RegisterGroups(config.Groups, fx.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	return fx
}

// fastTempDir returns a directory for stores that are opened and closed often.
// It is in memory if possible, since these tests do not depend on the disk.
func fastTempDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/dev/shm", "rolecall")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// shutdown closes the runtime and its store.
func (fx *fixture) shutdown(t *testing.T) {
	t.Helper()
	fx.Close()
	persisttest.Close(t, fx.store)
}

func (fx *fixture) start(t *testing.T, spec org.TaskSpec) identity.TaskID {
	t.Helper()
	if spec.Caller.Kind == identity.None {
		spec.Caller = operator
	}
	id, err := fx.StartTask(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func (fx *fixture) resume(t *testing.T, id identity.TaskID) {
	t.Helper()
	if err := fx.ResumeTask(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func (fx *fixture) wait(t *testing.T, id identity.TaskID) org.Task {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	task, err := fx.WaitTask(ctx, id)
	if err != nil {
		t.Fatalf("wait for task %s: %v\n%s", id, err, fx.eventLog(t))
	}
	return task
}

// waitReached waits until a channel is closed. The test fails if the task ends
// before.
func (fx *fixture) waitReached(t *testing.T, id identity.TaskID, reached <-chan struct{}) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := fx.WaitTask(ctx, id)
		ended <- err
	}()
	select {
	case <-reached:
	case err := <-ended:
		t.Fatalf("task %s ended too early: %v\n%s", id, err, fx.eventLog(t))
	}
}

func (fx *fixture) run(t *testing.T, spec org.TaskSpec) org.Task {
	t.Helper()
	return fx.wait(t, fx.start(t, spec))
}

// wantResult checks how a task ended: its result as JSON, or the code of its
// error.
func (fx *fixture) wantResult(t *testing.T, task org.Task, result string, code errcode.Code) {
	t.Helper()
	var got errcode.Code
	if task.Error != nil {
		got = task.Error.Code
	}
	if string(task.Result) != result || got != code {
		t.Errorf("task %s: %s, error %v; want %s, error %q\n%s", task.Status, task.Result, task.Error, result, code, fx.eventLog(t))
	}
}

// wantPaused requires that a task is paused for a reason with this code.
func (fx *fixture) wantPaused(t *testing.T, task org.Task, code errcode.Code) {
	t.Helper()
	if task.Status != org.Paused || task.Pause == nil || task.Pause.Code != code {
		t.Errorf("task %s: pause %v, error %v, result %s; want paused, %q\n%s", task.Status, task.Pause, task.Error, task.Result, code, fx.eventLog(t))
	}
}

func (fx *fixture) topAgent(t *testing.T, id identity.TaskID) identity.AgentID {
	t.Helper()
	task, ok := fx.Org().TaskByID(id)
	if !ok {
		t.Fatalf("task %s not found", id)
	}
	return task.Top
}

// spawnAgent creates a role as an agent and spawns an agent of it.
func (fx *fixture) spawnAgent(t *testing.T, by identity.AgentID, spec org.RoleSpec, collaborators ...identity.AgentID) identity.AgentID {
	t.Helper()
	role, err := fx.CreateRole(t.Context(), newCall(identity.ByAgent(by)), spec)
	if err != nil {
		t.Fatal(err)
	}
	return fx.spawnRole(t, by, role.ID, collaborators...)
}

// spawnRole spawns an agent of a role as an agent.
func (fx *fixture) spawnRole(t *testing.T, by identity.AgentID, role identity.RoleID, collaborators ...identity.AgentID) identity.AgentID {
	t.Helper()
	s := org.SpawnSpec{Role: role, Brief: org.TaskBrief{Objective: "o", Constraints: org.TextLines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}}
	for _, c := range collaborators {
		s.Brief.Collaborators = append(s.Brief.Collaborators, org.Collaborator{Agent: c, Role: "r"})
	}
	spawned, err := fx.SpawnAgent(t.Context(), newCall(identity.ByAgent(by)), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	return spawned.ID
}

// send sends a message to an agent as the operator.
func (fx *fixture) send(t *testing.T, to identity.AgentID, payload string) {
	t.Helper()
	if _, err := fx.SendMessage(t.Context(), newCall(operator), string(to), json.RawMessage(payload), 0); err != nil {
		t.Fatal(err)
	}
}

// newCall returns a call of an unnamed tool by a principal.
func newCall(by identity.Principal) tool.Call {
	return tool.Call{ID: identity.CallID(identity.NewID()), By: by}
}

func groupSet(ids ...toolgroups.GroupID) *toolgroups.GroupSet {
	set := toolgroups.SetOf(ids...)
	return &set
}

func (fx *fixture) events(t *testing.T) []journal.Event {
	t.Helper()
	_ = fx.Flush() // the store is read even if a test has stopped it
	var list []journal.Event
	for e, err := range fx.store.FollowEvents(context.WithoutCancel(t.Context()), 0, journal.StoredOnly) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, e)
	}
	return list
}

// eventLog returns the events as text, for failure messages.
func (fx *fixture) eventLog(t *testing.T) string {
	var text []byte
	for _, e := range fx.events(t) {
		line := mustJSON(e)
		text = append(append(text, line[:min(len(line), 400)]...), '\n')
	}
	return string(text)
}

// eventsOf lists the events of one type.
func eventsOf[B journal.EventBody](t *testing.T, fx *fixture) []journal.Event {
	t.Helper()
	var list []journal.Event
	for _, e := range fx.events(t) {
		if _, ok := e.Body.(B); ok {
			list = append(list, e)
		}
	}
	return list
}

// bodiesOf lists the bodies of the events of one type.
func bodiesOf[B journal.EventBody](t *testing.T, fx *fixture) []B {
	t.Helper()
	var list []B
	for _, e := range eventsOf[B](t, fx) {
		list = append(list, e.Body.(B))
	}
	return list
}

// received lists the payloads of the messages an agent received, in order.
func (fx *fixture) received(t *testing.T, id identity.AgentID) []string {
	t.Helper()
	var list []string
	for _, e := range eventsOf[journal.MessageReceived](t, fx) {
		if e.Agent == id {
			list = append(list, string(e.Body.(journal.MessageReceived).Message.Payload))
		}
	}
	return list
}

// waitEvent waits for an event and returns it.
func (fx *fixture) waitEvent(t *testing.T, is func(journal.Event) bool) journal.Event {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for e, err := range fx.store.FollowEvents(ctx, 0, journal.WaitForMore) {
		if err != nil {
			t.Fatal(err)
		}
		if is(e) {
			return e
		}
	}
	t.Fatalf("no such event\n%s", fx.eventLog(t))
	return journal.Event{}
}

// newTool creates a tool for the group probe.
func newTool(t *testing.T, name string, o tool.Options, fn func(ctx context.Context, in obj) (any, error)) tool.Tool {
	t.Helper()
	tl, err := tool.New(name, "For tests.", fn, &o)
	if err != nil {
		t.Fatal(err)
	}
	return tl
}

// hookStore is a store with hooks: commit replaces Commit, record is called
// before ReadRecord and read after it.
type hookStore struct {
	journal.Store
	commit func(ctx context.Context, b *journal.Batch) (uint64, error)
	record func(kind, key string)
	read   func(kind, key string)
}

// Commit implements journal.Log.
func (s *hookStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if s.commit == nil {
		return s.Store.Commit(ctx, b)
	}
	return s.commit(ctx, b)
}

// ReadRecord implements journal.RecordReader.
func (s *hookStore) ReadRecord(ctx context.Context, kind, key string) ([]byte, error) {
	if s.record != nil {
		s.record(kind, key)
	}
	if s.read != nil {
		defer s.read(kind, key)
	}
	return s.Store.ReadRecord(ctx, kind, key)
}
