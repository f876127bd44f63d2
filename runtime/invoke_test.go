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
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// visitor makes a role and gives ann in it.
func (h *house) visitor(t *testing.T, ids ...toolgroups.GroupID) identity.Principal {
	t.Helper()
	role, err := h.CreateRole(t.Context(), called(operator), org.RoleSpec{Name: "guest", Use: use(ids...)})
	if err != nil {
		t.Fatal(err)
	}
	return identity.ByCaller("ann", role.ID)
}

// invoke is Invoke that has to reach the gate.
func (h *house) invoke(t *testing.T, by identity.Principal, name string, args any) *gate.Admission {
	t.Helper()
	a, err := h.Invoke(t.Context(), by, name, encode(args))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return a
}

// code gives the code of what a call came to, "" for a success.
func (h *house) code(t *testing.T, by identity.Principal, name string, args any) errcode.Code {
	t.Helper()
	return h.invoke(t, by, name, args).Code()
}

// echo answers its arguments.
func echo(t *testing.T) tool.Tool {
	return probe(t, "echo", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
}

// A call is on record before it acts and after; a refusal and a failure too.
// Each event names the caller and the role.
func TestACallFromOutsideIsOnRecord(t *testing.T) {
	fail := probe(t, "fail", tool.Options{}, func(context.Context, obj) (any, error) {
		return nil, errcode.New(errcode.PermissionDenied, "no")
	})
	h := plan{tools: []tool.Tool{echo(t), fail}}.open(t)
	ann := h.visitor(t, "probe")
	if a := h.invoke(t, ann, "echo", obj{"a": 1}); string(a.Result.JSON()) != `{"a":1}` || a.Err != nil {
		t.Errorf("echo answered %s, %v", a.Result.JSON(), a.Err)
	}
	for name, want := range map[string]errcode.Code{"fail": errcode.PermissionDenied, "read_file": errcode.ToolNotAvailable, "no_such": errcode.UnknownTool} {
		if got := h.code(t, ann, name, obj{}); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if a, err := h.Invoke(t.Context(), ann, "echo", nil); err != nil || string(a.Result.JSON()) != `{}` {
		t.Errorf("without arguments: %v, %v", a, err)
	}
	calls := said[journal.ToolCall](t, h)
	if len(calls) != 5 || len(said[journal.ToolResult](t, h)) != 2 || len(said[journal.ToolError](t, h)) != 3 {
		t.Errorf("recorded %d calls\n%s", len(calls), h.story(t))
	}
	if c := calls[0]; c.Tool != "echo" || string(c.Args) != `{"a":1}` || c.Decision != journal.Allowed || c.Group != "probe" || c.Epoch == 0 || c.Effect != tool.ReadOnly {
		t.Errorf("recorded %+v", c)
	}
	for _, e := range h.events(t) {
		who := "user:ann@" + string(ann.Role)
		switch b := e.Body.(type) {
		case journal.ToolCall:
			wantCaller(t, e, b.Caller, who)
		case journal.ToolResult:
			wantCaller(t, e, b.Caller, who)
		case journal.ToolError:
			wantCaller(t, e, b.Caller, who)
		}
	}
}

func wantCaller(t *testing.T, e journal.Event, got, want string) {
	t.Helper()
	if got != want || e.Role != "guest" || e.Stream != journal.Org || e.Task != "" || e.Agent != "" {
		t.Errorf("of %q in stream %q, %+v; want %q", got, e.Stream, e, want)
	}
}

// Whoever is no caller starts nothing, and nothing is recorded of it; a role
// that is not there, or not any more, is refused at the gate.
func TestWhoMayNotInvoke(t *testing.T) {
	h := plan{tools: []tool.Tool{echo(t)}}.open(t)
	ann := h.visitor(t, "probe")
	for _, p := range []identity.Principal{{}, operator, identity.ByAgent("a"), {Kind: identity.Configuration}, identity.ByCaller("", ann.Role), identity.ByCaller("ann", "")} {
		if a, err := h.Invoke(t.Context(), p, "echo", nil); errcode.Of(err) != errcode.Unauthenticated || a != nil {
			t.Errorf("%s: %v, %v", p, a, err)
		}
	}
	if n := len(said[journal.ToolCall](t, h)); n != 0 {
		t.Errorf("%d calls are on record", n)
	}
	if got := h.code(t, identity.ByCaller("ann", "nowhere"), "echo", obj{}); got != errcode.ToolNotAvailable {
		t.Errorf("in a role that is not there: %q", got)
	}
	if _, err := h.DeleteRole(operator, ann.Role, false); err != nil {
		t.Fatal(err)
	}
	if got := h.code(t, ann, "echo", obj{}); got != errcode.ToolNotAvailable {
		t.Errorf("in a role that was deleted: %q", got)
	}
}

// Names that are no tool's are recorded short, arguments that are no JSON not
// at all, and a large result by its beginning: the caller gets all of it, and
// so does whoever reads the artifact.
func TestWhatIsKeptOfACallIsBounded(t *testing.T) {
	long := strings.Repeat("x", 1<<20)
	big := probe(t, "big", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { return long, nil })
	h := plan{tools: []tool.Tool{echo(t), big}}.open(t)
	ann := h.visitor(t, "probe", "artifact")
	for _, name := range []string{long, "echo" + long, "echo\xff", ""} {
		if got := h.code(t, ann, name, obj{}); got != errcode.UnknownTool {
			t.Errorf("%.20q: %q", name, got)
		}
	}
	a, err := h.Invoke(t.Context(), ann, "echo", json.RawMessage("{"+long))
	if err != nil || a.Code() != errcode.InvalidArguments {
		t.Errorf("%v, %v", a, err)
	}
	if got := h.invoke(t, ann, "big", obj{}).Result.JSON(); len(got) != len(long)+2 {
		t.Errorf("the caller got %d bytes", len(got))
	}
	for _, e := range h.events(t) {
		if n := len(encode(e)); n > 16<<10 {
			t.Errorf("%T has %d bytes", e.Body, n)
		}
	}
	results := said[journal.ToolResult](t, h)
	kept := decode(results[len(results)-1].Result)
	_, content, err := h.Artifact(t.Context(), fmt.Sprint(kept["artifactRef"]))
	if err != nil || len(content) != len(long)+2 {
		t.Errorf("kept %d bytes, %v: %v", len(content), err, kept)
	}
	part := h.invoke(t, ann, "get_artifact", obj{"ref": kept["artifactRef"], "length": 1})
	if part.Result.IsError || decode(part.Result.JSON())["size"] == nil {
		t.Errorf("the caller does not find it: %s", part.Result.JSON())
	}
}

// lock gives two tools: open moves from shut to open, enter is for open.
func lock(t *testing.T, fn func(ctx context.Context, in obj) (any, error)) []tool.Tool {
	return []tool.Tool{
		probe(t, "open", tool.Options{State: "open", States: []string{toolgroups.Undefined}}, fn),
		probe(t, "enter", tool.Options{Effect: tool.ReadOnly, States: []string{"open"}}, func(context.Context, obj) (any, error) { return "in", nil }),
	}
}

// Success moves the caller's state, in the commit of its outcome and for this
// user and role alone; it lasts over a restart, and the operator takes it back.
func TestACallersStateMovesWithItsCalls(t *testing.T) {
	p := plan{dir: scratch(t), tools: lock(t, func(_ context.Context, in obj) (any, error) {
		if in["fail"] != nil {
			return nil, errors.New("stuck")
		}
		return "opened", nil
	})}
	h := p.open(t)
	ann := h.visitor(t, "probe")
	bob := identity.ByCaller("bob", ann.Role)
	want := func(by identity.Principal, name string, args obj, want errcode.Code) {
		t.Helper()
		if got := h.code(t, by, name, args); got != want {
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
	for _, d := range h.Gate().Subject(bob).Listable() {
		names = append(names, d.Name)
	}
	if diff := cmp.Diff(names, []string{"open", "enter"}); diff != "" {
		t.Errorf("what is offered varies with the state, got before want:\n%s", diff)
	}
	h.leave(t)
	h = p.open(t)
	want(ann, "enter", obj{}, "")
	if err := h.ResetCaller(t.Context(), bob, ann); errcode.Of(err) != errcode.InsufficientPermissions {
		t.Errorf("another caller reset it: %v", err)
	}
	if err := h.ResetCaller(t.Context(), operator, ann); err != nil {
		t.Fatal(err)
	}
	want(ann, "enter", obj{}, errcode.ToolNotAvailable)
	want(ann, "open", obj{}, "")
	who := "user:ann@" + string(ann.Role)
	if diff := cmp.Diff(said[journal.StateTransition](t, h), []journal.StateTransition{
		{Tool: "open", To: "open", Caller: who}, {From: "open", To: "undefined", Caller: who}, {Tool: "open", From: "undefined", To: "open", Caller: who},
	}); diff != "" {
		t.Errorf("transitions on record, got before want:\n%s", diff)
	}
}

// Of many calls at once that each move the state away from what offers them,
// one is started. The others are decided about when it is done.
func TestCallsThatMoveTheStateHaveTheirTurn(t *testing.T) {
	var ran, beside atomic.Int32
	h := plan{tools: lock(t, func(context.Context, obj) (any, error) {
		if beside.Add(1) > 1 {
			t.Error("two calls that move the state run side by side")
		}
		ran.Add(1)
		beside.Add(-1)
		return "opened", nil
	})}.open(t)
	ann := h.visitor(t, "probe")
	var all sync.WaitGroup
	var let atomic.Int32
	for range 16 {
		all.Go(func() {
			if h.code(t, ann, "open", obj{}) == "" {
				let.Add(1)
			}
		})
	}
	all.Wait()
	if ran.Load() != 1 || let.Load() != 1 {
		t.Errorf("%d ran, %d succeeded, of one that may", ran.Load(), let.Load())
	}
}

// A call that does not move the state runs beside one that does, and one
// caller's turn keeps nobody else waiting.
func TestATurnHoldsUpNobodyElse(t *testing.T) {
	inside, free := make(chan struct{}), make(chan struct{})
	moves := probe(t, "move", tool.Options{State: "moved"}, func(_ context.Context, in obj) (any, error) {
		if in["wait"] != nil {
			close(inside)
			<-free
		}
		return "moved", nil
	})
	h := plan{tools: []tool.Tool{moves, echo(t)}}.open(t)
	ann := h.visitor(t, "probe")
	var slow sync.WaitGroup
	slow.Go(func() { h.invoke(t, ann, "move", obj{"wait": true}) })
	<-inside
	h.invoke(t, ann, "echo", obj{})
	h.invoke(t, identity.ByCaller("bob", ann.Role), "move", obj{})
	impatient, cancel := context.WithCancel(t.Context())
	cancel()
	if a, err := h.Invoke(impatient, ann, "move", nil); !errors.Is(err, context.Canceled) || a != nil {
		t.Errorf("%v, %v", a, err)
	}
	close(free)
	slow.Wait()
}

// A caller that goes away ends its call; what came of it is on record.
func TestACallerThatGoesAwayEndsItsCall(t *testing.T) {
	for effect, want := range map[tool.Effect]errcode.Code{tool.Mutating: errcode.ToolInterrupted, tool.ReadOnly: errcode.ToolTimeout} {
		inside := make(chan struct{})
		h := plan{tools: []tool.Tool{probe(t, "slow", tool.Options{Effect: effect}, func(ctx context.Context, _ obj) (any, error) {
			close(inside)
			<-ctx.Done()
			return nil, ctx.Err()
		})}}.open(t)
		ann := h.visitor(t, "probe")
		ctx, cancel := context.WithCancel(t.Context())
		go func() { <-inside; cancel() }()
		a, err := h.Invoke(ctx, ann, "slow", nil)
		if err != nil || a.Code() != want {
			t.Errorf("%s: %v, %v, want %s", effect, a, err, want)
		}
		if got := said[journal.ToolError](t, h); len(got) != 1 || got[0].Code != want {
			t.Errorf("%s: recorded %+v", effect, got)
		}
		if _, err := h.Invoke(ctx, ann, "slow", nil); !errors.Is(err, context.Canceled) {
			t.Errorf("a call of who is gone: %v", err)
		}
	}
}

// Close cuts calls short, waits until their outcomes are on record, and lets
// nobody in any more.
func TestNoCallOutlivesTheRuntime(t *testing.T) {
	const many = 8
	inside := make(chan struct{}, many)
	h := plan{tools: []tool.Tool{probe(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		inside <- struct{}{}
		<-ctx.Done()
		return nil, ctx.Err()
	})}}.open(t)
	ann := h.visitor(t, "probe")
	var calls sync.WaitGroup
	for range many {
		calls.Go(func() {
			if got := h.code(t, ann, "slow", obj{}); got != errcode.ToolInterrupted {
				t.Errorf("got %q", got)
			}
		})
	}
	for range many {
		<-inside
	}
	h.Close()
	if got := len(said[journal.ToolError](t, h)); got != many {
		t.Errorf("when Close returned %d outcomes were on record, of %d", got, many)
	}
	calls.Wait()
	if a, err := h.Invoke(t.Context(), ann, "slow", nil); errcode.Of(err) != errcode.ToolUnavailable || a != nil {
		t.Errorf("after Close: %v, %v", a, err)
	}
}

// A caller's task is on record as its own, bounded by its role, and it lists
// no other's; the operator lists all.
func TestACallersTasksAreItsOwn(t *testing.T) {
	h := open(t, "", once(end("done")))
	ann := h.visitor(t, "artifact")
	bob := identity.ByCaller("bob", ann.Role)
	mine, theirs, own := h.start(t, org.TaskSpec{Caller: ann, Text: "go"}), h.start(t, org.TaskSpec{Caller: bob, Text: "go"}), h.start(t, org.TaskSpec{Text: "go"})
	h.want(t, h.wait(t, mine), `"done"`, "")
	h.want(t, h.wait(t, theirs), `"done"`, "")
	h.want(t, h.wait(t, own), `"done"`, "")
	for by, want := range map[identity.Principal][]identity.TaskID{
		ann: {mine}, bob: {theirs}, operator: {mine, theirs, own}, {}: nil, identity.ByAgent("a"): nil,
		identity.ByCaller("ann", "other"): nil,
	} {
		var got []identity.TaskID
		for _, task := range h.TasksOf(by) {
			got = append(got, task.ID)
		}
		if diff := cmp.Diff(got, want); diff != "" {
			t.Errorf("%s lists, got before want:\n%s", by, diff)
		}
	}
}
