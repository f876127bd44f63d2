package runtime_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// createCaller creates the role guest and returns the caller ann in it.
func (fx *fixture) createCaller(t *testing.T, ids ...toolgroups.GroupID) identity.Principal {
	t.Helper()
	role, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{Name: "guest", Use: groupSet(ids...)})
	if err != nil {
		t.Fatal(err)
	}
	return identity.ByCaller("ann", role.ID)
}

// invoke calls Invoke, which must succeed.
func (fx *fixture) invoke(t *testing.T, by identity.Principal, name string, args any) *gate.Admission {
	t.Helper()
	a, err := fx.InvokeTool(t.Context(), by, name, mustJSON(args))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return a
}

// invokeCode invokes a tool and returns the error code of the outcome, "" for
// success.
func (fx *fixture) invokeCode(t *testing.T, by identity.Principal, name string, args any) errcode.Code {
	t.Helper()
	return fx.invoke(t, by, name, args).Code()
}

// echoTool returns its arguments.
func echoTool(t *testing.T) tool.Tool {
	return newTool(t, "echo", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
}

// A call is recorded before it runs and after, also when it is denied or fails.
// Each event names the caller and the role.
func TestInvoke_RecordsCallAndOutcome(t *testing.T) {
	fail := newTool(t, "fail", tool.Options{}, func(context.Context, obj) (any, error) {
		return nil, errcode.New(errcode.PermissionDenied, "no")
	})
	fx := fixtureConfig{tools: []tool.Tool{echoTool(t), fail}}.open(t)
	ann := fx.createCaller(t, "probe")
	if a := fx.invoke(t, ann, "echo", obj{"a": 1}); string(a.Result.JSON()) != `{"a":1}` || a.Err != nil {
		t.Errorf("echo answered %s, %v", a.Result.JSON(), a.Err)
	}
	for name, want := range map[string]errcode.Code{"fail": errcode.PermissionDenied, "read_file": errcode.ToolNotAvailable, "no_such": errcode.UnknownTool} {
		if got := fx.invokeCode(t, ann, name, obj{}); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a, err := fx.InvokeTool(t.Context(), ann, "echo", nil); err != nil || string(a.Result.JSON()) != `{}` {
		t.Errorf("without arguments: %v, %v", a, err)
	}
	calls := bodiesOf[journal.ToolCall](t, fx)
	if len(calls) != 5 || len(bodiesOf[journal.ToolResult](t, fx)) != 2 || len(bodiesOf[journal.ToolError](t, fx)) != 3 {
		t.Errorf("recorded %d calls\n%s", len(calls), fx.eventLog(t))
	}
	if c := calls[0]; c.Tool != "echo" || string(c.Args) != `{"a":1}` || c.Decision != journal.Allowed || c.Group != "probe" || c.Epoch == 0 || c.Effect != tool.ReadOnly {
		t.Errorf("recorded %+v", c)
	}
	for _, e := range fx.events(t) {
		caller := "user:ann@" + string(ann.Role)
		switch b := e.Body.(type) {
		case journal.ToolCall:
			wantCaller(t, e, b.Caller, caller)
		case journal.ToolResult:
			wantCaller(t, e, b.Caller, caller)
		case journal.ToolError:
			wantCaller(t, e, b.Caller, caller)
		}
	}
}

func wantCaller(t *testing.T, e journal.Event, got, want string) {
	t.Helper()
	if got != want || e.Role != "guest" || e.Stream != journal.Org || e.Task != "" || e.Agent != "" {
		t.Errorf("caller %q in stream %q, %+v; want caller %q", got, e.Stream, e, want)
	}
}

// A principal that is not a caller starts nothing, and nothing is recorded. A
// missing or deleted role is denied by the gate.
func TestInvoke_RejectsOtherPrincipals(t *testing.T) {
	fx := fixtureConfig{tools: []tool.Tool{echoTool(t)}}.open(t)
	ann := fx.createCaller(t, "probe")
	for _, p := range []identity.Principal{{}, operator, identity.ByAgent("a"), {Kind: identity.Configuration}, identity.ByCaller("", ann.Role), identity.ByCaller("ann", "")} {
		if a, err := fx.InvokeTool(t.Context(), p, "echo", nil); errcode.CodeOf(err) != errcode.Unauthenticated || a != nil {
			t.Errorf("%s: %v, %v", p, a, err)
		}
	}
	if n := len(bodiesOf[journal.ToolCall](t, fx)); n != 0 {
		t.Errorf("%d calls are on record", n)
	}
	if got := fx.invokeCode(t, identity.ByCaller("ann", "nowhere"), "echo", obj{}); got != errcode.ToolNotAvailable {
		t.Errorf("in an unknown role: %q", got)
	}
	if _, err := fx.DeleteRole(operator, ann.Role, false); err != nil {
		t.Fatal(err)
	}
	if got := fx.invokeCode(t, ann, "echo", obj{}); got != errcode.ToolNotAvailable {
		t.Errorf("in a deleted role: %q", got)
	}
}

// Unknown names are recorded truncated, invalid arguments not at all, and large
// results as a preview. The caller gets the complete result, which is also
// stored as an artifact.
func TestInvoke_BoundsRecordedData(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	big := newTool(t, "big", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { return long, nil })
	fx := fixtureConfig{tools: []tool.Tool{echoTool(t), big}}.open(t)
	ann := fx.createCaller(t, "probe", "artifact")
	for _, name := range []string{long, "echo" + long, "echo\xff", ""} {
		if got := fx.invokeCode(t, ann, name, obj{}); got != errcode.UnknownTool {
			t.Errorf("%.20q: %q", name, got)
		}
	}
	a, err := fx.InvokeTool(t.Context(), ann, "echo", json.RawMessage("{"+long))
	if err != nil || a.Code() != errcode.InvalidArguments {
		t.Errorf("%v, %v", a, err)
	}
	if got := fx.invoke(t, ann, "big", obj{}).Result.JSON(); len(got) != len(long)+2 {
		t.Errorf("the caller got %d bytes", len(got))
	}
	for _, e := range fx.events(t) {
		if n := len(mustJSON(e)); n > 16<<10 {
			t.Errorf("%T has %d bytes", e.Body, n)
		}
	}
	results := bodiesOf[journal.ToolResult](t, fx)
	kept := decodeObject(results[len(results)-1].Result)
	_, content, err := fx.ArtifactStore().ReadArtifact(t.Context(), fmt.Sprint(kept["artifactRef"]))
	if err != nil || len(content) != len(long)+2 {
		t.Errorf("kept %d bytes, %v: %v", len(content), err, kept)
	}
	part := fx.invoke(t, ann, "get_artifact", obj{"ref": kept["artifactRef"], "length": 1})
	if part.Result.IsError || decodeObject(part.Result.JSON())["size"] == nil {
		t.Errorf("the caller cannot read the artifact: %s", part.Result.JSON())
	}
}

// openAndEnter returns two tools: open moves the state to open, enter is
// allowed in the state open.
func openAndEnter(t *testing.T, fn func(ctx context.Context, in obj) (any, error)) []tool.Tool {
	return []tool.Tool{
		newTool(t, "open", tool.Options{State: "open", States: []string{toolgroups.UndefinedState}}, fn),
		newTool(t, "enter", tool.Options{Effect: tool.ReadOnly, States: []string{"open"}}, func(context.Context, obj) (any, error) { return "in", nil }),
	}
}

// A successful call moves the caller's state, in the commit of its outcome and
// for this user and role only. The state survives a restart, and the operator
// can reset it.
func TestInvoke_MovesCallerState(t *testing.T) {
	cfg := fixtureConfig{dir: fastTempDir(t), tools: openAndEnter(t, func(_ context.Context, in obj) (any, error) {
		if in["fail"] != nil {
			return nil, errors.New("stuck")
		}
		return "opened", nil
	})}
	fx := cfg.open(t)
	ann := fx.createCaller(t, "probe")
	bob := identity.ByCaller("bob", ann.Role)
	want := func(by identity.Principal, name string, args obj, want errcode.Code) {
		t.Helper()
		if got := fx.invokeCode(t, by, name, args); got != want {
			t.Errorf("%s calls %s: %q, want %q", by.User, name, got, want)
		}
	}
	want(ann, "enter", obj{}, errcode.ToolNotAvailable)
	want(ann, "open", obj{"fail": true}, errcode.ToolExecutionFailed)
	want(ann, "enter", obj{}, errcode.ToolNotAvailable)
	want(ann, "open", obj{}, "")
	want(ann, "enter", obj{}, "")
	want(ann, "open", obj{}, errcode.ToolNotAvailable)
	want(bob, "enter", obj{}, errcode.ToolNotAvailable)
	names := []string{}
	for _, d := range fx.Gate().Subject(bob).ListableTools() {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff(names, []string{"open", "enter"}); diff != "" {
		t.Errorf("the listed tools depend on the state (-got +want):\n%s", diff)
	}
	fx.shutdown(t)
	fx = cfg.open(t)
	want(ann, "enter", obj{}, "")
	if err := fx.ResetCaller(t.Context(), bob, ann); errcode.CodeOf(err) != errcode.InsufficientPermissions {
		t.Errorf("another caller reset it: %v", err)
	}
	if err := fx.ResetCaller(t.Context(), operator, ann); err != nil {
		t.Fatal(err)
	}
	want(ann, "enter", obj{}, errcode.ToolNotAvailable)
	want(ann, "open", obj{}, "")
	caller := "user:ann@" + string(ann.Role)
	if diff := cmp.Diff(bodiesOf[journal.StateTransition](t, fx), []journal.StateTransition{
		{Tool: "open", To: "open", Caller: caller}, {From: "open", To: "undefined", Caller: caller}, {Tool: "open", From: "undefined", To: "open", Caller: caller},
	}); diff != "" {
		t.Errorf("recorded transitions (-got +want):\n%s", diff)
	}
}

// Of concurrent calls that would each move the state on, one starts. The others
// are decided after it has ended.
func TestInvoke_SerializesStateChanges(t *testing.T) {
	var ran, running atomic.Int32
	fx := fixtureConfig{tools: openAndEnter(t, func(context.Context, obj) (any, error) {
		if running.Add(1) > 1 {
			t.Error("two calls that move the state run concurrently")
		}
		ran.Add(1)
		running.Add(-1)
		return "opened", nil
	})}.open(t)
	ann := fx.createCaller(t, "probe")
	var all sync.WaitGroup
	var succeeded atomic.Int32
	for range 16 {
		all.Go(func() {
			if fx.invokeCode(t, ann, "open", obj{}) == "" {
				succeeded.Add(1)
			}
		})
	}
	all.Wait()
	if ran.Load() != 1 || succeeded.Load() != 1 {
		t.Errorf("%d ran, %d succeeded, want 1 and 1", ran.Load(), succeeded.Load())
	}
}

// A call that does not move the state runs concurrently with one that does, and
// the lock of one caller does not block other callers.
func TestInvoke_StateChangeBlocksNoOtherCall(t *testing.T) {
	inside, free := make(chan struct{}), make(chan struct{})
	moves := newTool(t, "move", tool.Options{State: "moved"}, func(_ context.Context, in obj) (any, error) {
		if in["wait"] != nil {
			close(inside)
			<-free
		}
		return "moved", nil
	})
	fx := fixtureConfig{tools: []tool.Tool{moves, echoTool(t)}}.open(t)
	ann := fx.createCaller(t, "probe")
	var slow sync.WaitGroup
	slow.Go(func() { fx.invoke(t, ann, "move", obj{"wait": true}) })
	<-inside
	fx.invoke(t, ann, "echo", obj{})
	fx.invoke(t, identity.ByCaller("bob", ann.Role), "move", obj{})
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := fx.InvokeTool(cancelled, ann, "move", nil); !errors.Is(err, context.Canceled) || a != nil {
		t.Errorf("%v, %v", a, err)
	}
	close(free)
	slow.Wait()
}

// A call ends when its caller's context does, and its outcome is recorded.
func TestInvoke_CancelledContextEndsCall(t *testing.T) {
	for effect, want := range map[tool.Effect]errcode.Code{tool.Mutating: errcode.ToolInterrupted, tool.ReadOnly: errcode.ToolTimeout} {
		inside := make(chan struct{})
		fx := fixtureConfig{tools: []tool.Tool{newTool(t, "slow", tool.Options{Effect: effect}, func(ctx context.Context, _ obj) (any, error) {
			close(inside)
			<-ctx.Done()
			return nil, ctx.Err()
		})}}.open(t)
		ann := fx.createCaller(t, "probe")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-inside; cancel() }()
		a, err := fx.InvokeTool(ctx, ann, "slow", nil)
		if err != nil || a.Code() != want {
			t.Errorf("%s: %v, %v, want %s", effect, a, err, want)
		}
		if got := bodiesOf[journal.ToolError](t, fx); len(got) != 1 || got[0].Code != want {
			t.Errorf("%s: recorded %+v", effect, got)
		}
		if _, err := fx.InvokeTool(ctx, ann, "slow", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a call with an ended context: %v", err)
		}
	}
}

// Close cancels running calls, waits until their outcomes are recorded, and
// rejects new calls.
func TestInvoke_CloseCancelsAndRecordsCalls(t *testing.T) {
	const many = 8
	inside := make(chan struct{}, many)
	fx := fixtureConfig{tools: []tool.Tool{newTool(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		inside <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})}}.open(t)
	ann := fx.createCaller(t, "probe")
	var calls sync.WaitGroup
	for range many {
		calls.Go(func() {
			if got := fx.invokeCode(t, ann, "slow", obj{}); got != errcode.ToolInterrupted {
				t.Errorf("got %q", got)
			}
		})
	}
	for range many {
		<-inside
	}
	fx.Close()
	if got := len(bodiesOf[journal.ToolError](t, fx)); got != many {
		t.Errorf("%d outcomes recorded when Close returned, want %d", got, many)
	}
	calls.Wait()
	if a, err := fx.InvokeTool(t.Context(), ann, "slow", nil); errcode.CodeOf(err) != errcode.ToolUnavailable || a != nil {
		t.Errorf("after Close: %v, %v", a, err)
	}
}

// A caller's task is recorded as its own and limited by its role. A caller
// lists only its own tasks, the operator all.
func TestTasksOf_CallerSeesOwnTasks(t *testing.T) {
	fx := openFixture(t, "", answerOnce(endWith("done")))
	ann := fx.createCaller(t, "artifact")
	bob := identity.ByCaller("bob", ann.Role)
	mine, theirs, own := fx.start(t, org.TaskSpec{Caller: ann, Text: "go"}), fx.start(t, org.TaskSpec{Caller: bob, Text: "go"}), fx.start(t, org.TaskSpec{Text: "go"})
	fx.wantResult(t, fx.wait(t, mine), `"done"`, "")
	fx.wantResult(t, fx.wait(t, theirs), `"done"`, "")
	fx.wantResult(t, fx.wait(t, own), `"done"`, "")
	for by, want := range map[identity.Principal][]identity.TaskID{
		ann: {mine}, bob: {theirs}, operator: {mine, theirs, own}, {}: nil, identity.ByAgent("a"): nil,
		identity.ByCaller("ann", "other"): nil,
	} {
		var got []identity.TaskID
		for _, task := range fx.TasksOf(by) {
			got = append(got, task.ID)
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("tasks of %s (-got +want):\n%s", by, diff)
		}
	}
}

// stateTask returns a task of a caller whose top agent has the caller's role. It calls
// tools without arguments and answers with their outcomes.
func stateTask(by identity.Principal) org.TaskSpec {
	return org.TaskSpec{Text: "go", Caller: by, Role: string(by.Role)}
}

// callInOneAnswer returns a model whose agents call some tools once, all in one answer.
func callInOneAnswer(names ...string) model.Model {
	return answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) > 0 {
			return model.Answer{Finish: model.FinishEnd, Value: mustJSON(outcomes(r))}
		}
		var calls []any
		for _, name := range names {
			calls = append(calls, name, obj{})
		}
		return callTools(calls...)
	})
}

// What the caller may call once, all agents of its tasks together may call once.
func TestTask_OneTimeCallRunsOnceForCallerAndItsTasks(t *testing.T) {
	var ran atomic.Int32
	fx := fixtureConfig{model: callInOneAnswer("open", "enter"), tools: openAndEnter(t, func(context.Context, obj) (any, error) {
		ran.Add(1)
		return "opened", nil
	})}.open(t)
	ann := fx.createCaller(t, "probe")
	var tasks []identity.TaskID
	for range 8 {
		tasks = append(tasks, fx.start(t, stateTask(ann)))
	}
	for _, id := range tasks {
		if task := fx.wait(t, id); task.Status != org.Done {
			t.Errorf("task %+v", task)
		}
	}
	if ran.Load() != 1 {
		t.Errorf("the one-time tool ran %d times, want 1", ran.Load())
	}
	if got := fx.invokeCode(t, ann, "open", obj{}); got != errcode.ToolNotAvailable {
		t.Errorf("the caller calls it after its agents: %q", got)
	}
	if got := fx.invokeCode(t, ann, "enter", obj{}); got != "" {
		t.Errorf("the caller is not in the state that its agents led to: %q", got)
	}
	bob := identity.ByCaller("bob", ann.Role)
	fx.wantResult(t, fx.run(t, stateTask(bob)), `["\"opened\"","\"in\""]`, "")
}

// A caller whose state forbids a tool does not reach it through a task.
func TestTask_IsInWorkflowStateOfCaller(t *testing.T) {
	dir := fastTempDir(t)
	cfg := fixtureConfig{dir: dir, model: callInOneAnswer("open"), tools: openAndEnter(t, func(context.Context, obj) (any, error) { return "opened", nil })}
	fx := cfg.open(t)
	ann := fx.createCaller(t, "probe")
	fx.invoke(t, ann, "open", obj{})
	fx.wantResult(t, fx.run(t, stateTask(ann)), `["tool_not_available"]`, "")
	fx.shutdown(t)
	fx = cfg.open(t)
	fx.wantResult(t, fx.run(t, stateTask(ann)), `["tool_not_available"]`, "")
	if _, err := fx.StartTask(t.Context(), org.TaskSpec{Text: "go", Caller: ann, State: toolgroups.UndefinedState}); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("a caller chooses the workflow state of its task: %v", err)
	}
	if err := fx.ResetCaller(t.Context(), operator, ann); err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.run(t, stateTask(ann)), `["\"opened\""]`, "")
}

// An agent's call that was decided before its caller's state moved does not start.
func TestTask_CallIsDecidedAgainWhenCallerMoves(t *testing.T) {
	var fx *fixture
	var ann identity.Principal
	var once sync.Once
	tools := append(openAndEnter(t, func(context.Context, obj) (any, error) { return "opened", nil }),
		newTool(t, "early", tool.Options{States: []string{toolgroups.UndefinedState}}, func(context.Context, obj) (any, error) { return "ran", nil }))
	fx = fixtureConfig{model: callInOneAnswer("early"), tools: tools, wrapStore: func(s journal.Store) journal.Store {
		return hookedStore{Store: s, before: func(b *journal.Batch) {
			for _, e := range b.Events {
				if call, ok := e.Body.(journal.ToolCall); ok && call.Tool == "early" && call.Decision == journal.Allowed {
					once.Do(func() { fx.invoke(t, ann, "open", obj{}) })
				}
			}
		}}
	}}.open(t)
	ann = fx.createCaller(t, "probe")
	fx.wantResult(t, fx.run(t, stateTask(ann)), `["tool_not_available"]`, "")
}

// hookedStore calls functions before each commit and after it, if they are set.
type hookedStore struct {
	journal.Store
	before, after func(*journal.Batch)
}

// Commit implements journal.Log.
func (s hookedStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	if s.before != nil {
		s.before(b)
	}
	seq, err := s.Store.Commit(ctx, b)
	if err == nil && s.after != nil {
		s.after(b)
	}
	return seq, err
}
