package gate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func Example() {
	groups := toolgroups.NewManager()
	_, _ = grouptest.RegisterGroup(groups, "demo", toolgroups.Group{ID: "clock", Tools: []tool.Tool{&fakeTool{definition: definition("now", tool.ReadOnly)}}})
	_, _ = grouptest.RegisterGroup(groups, "demo", toolgroups.Group{ID: "disk", Tools: []tool.Tool{&fakeTool{definition: definition("format", tool.Mutating)}}})
	ann := identity.ByAgent("ann")
	directory := &fakeDirectory{refs: map[identity.Principal]*toolgroups.ViewRef{ann: new(toolgroups.ViewRef)}}
	snapshot := groups.CurrentSnapshot()
	directory.refs[ann].PublishView(snapshot.Compile(snapshot.PinOwners(toolgroups.SetOf("clock"))))
	g, err := gate.New(gate.Config{Groups: groups, Directory: directory, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"now", "format", "fly"} {
		fmt.Println(g.Subject(ann).AuthorizeTool(name).Reason())
	}
	done, _ := g.Call(context.Background(), ann, []gate.CallRequest{{Call: tool.Call{Name: "now"}}, {Call: tool.Call{Name: "format"}}}, &fakeRecorder{})
	for _, a := range done {
		fmt.Println(string(a.Result.JSON()))
	}
	// Output:
	// tool now is available through group clock
	// tool format is not available to this role
	// there is no tool fly
	// "now {}"
	// {"error":"tool_not_available","message":"tool format is not available to this role. It cannot be granted during this task: work without it, or say in your answer what you could not do.","toolName":"format"}
}

// definition returns a definition with a schema that accepts any object.
func definition(name string, e tool.Effect) tool.Definition {
	return tool.Definition{Name: name, Input: json.RawMessage(`{"type":"object"}`), Effect: e}
}

// fakeTool is a tool that returns its name and arguments unless run is set.
type fakeTool struct {
	definition tool.Definition
	run        func(ctx context.Context, c tool.Call) (tool.Result, error)
}

func (f *fakeTool) Definition() tool.Definition { return f.definition }

func (f *fakeTool) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if f.run != nil {
		return f.run(ctx, c)
	}
	return tool.Result{Text: c.Name + " " + string(c.Args)}, nil
}

// fakeDirectory is a gate.ViewResolver; all of its principals are in one state.
type fakeDirectory struct {
	resolving func() // called before each answer; nil does nothing

	mu    sync.Mutex
	refs  map[identity.Principal]*toolgroups.ViewRef
	state string
}

func (d *fakeDirectory) ResolveView(p identity.Principal) (*toolgroups.ViewRef, string) {
	if d.resolving != nil {
		d.resolving()
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if ref, ok := d.refs[p]; ok {
		return ref, d.state
	}
	return new(toolgroups.ViewRef), ""
}

func (d *fakeDirectory) setState(state string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = state
}

// fakeRecorder is a gate.CallRecorder that keeps one line of text for each batch.
type fakeRecorder struct {
	lines             []string
	started, finished func(calls []*gate.Admission) error // nil records
}

// CallPending implements gate.CallRecorder.
func (*fakeRecorder) CallPending(context.Context, []gate.CallRequest) error { return nil }

func (b *fakeRecorder) CallStarted(_ context.Context, calls []*gate.Admission) error {
	b.add("start", calls, func(a *gate.Admission) string {
		if a.Allowed() {
			return "allowed"
		}
		return string(a.Code())
	})
	if b.started != nil {
		return b.started(calls)
	}
	for _, a := range calls {
		if a.Superseded() {
			return fmt.Errorf("commit: %w", gate.ErrSuperseded)
		}
	}
	return nil
}

func (b *fakeRecorder) CallFinished(_ context.Context, calls []*gate.Admission) error {
	b.add("finish", calls, func(a *gate.Admission) string {
		if code := a.Code(); code != "" {
			return string(code)
		}
		return "ok"
	})
	if b.finished != nil {
		return b.finished(calls)
	}
	return nil
}

func (b *fakeRecorder) add(what string, calls []*gate.Admission, how func(*gate.Admission) string) {
	words := []string{what}
	for _, a := range calls {
		words = append(words, a.Request.Name+":"+how(a))
	}
	b.lines = append(b.lines, strings.Join(words, " "))
}

// fixture is a gate with one principal, ann, who may use the group "mine".
type fixture struct {
	*gate.Gate
	t         testing.TB
	groups    *toolgroups.Manager
	directory *fakeDirectory
	ref       *toolgroups.ViewRef
	log       *bytes.Buffer
}

var ann = identity.ByAgent("ann")

func newFixture(t testing.TB, mine ...tool.Tool) *fixture {
	t.Helper()
	return newFixtureWith(t, gate.Config{}, mine...)
}

func newFixtureWith(t testing.TB, config gate.Config, mine ...tool.Tool) *fixture {
	t.Helper()
	f := &fixture{t: t, groups: toolgroups.NewManager(), ref: new(toolgroups.ViewRef), log: new(bytes.Buffer)}
	f.directory = &fakeDirectory{refs: map[identity.Principal]*toolgroups.ViewRef{ann: f.ref}}
	config.Groups, config.Directory, config.Log = f.groups, f.directory, slog.New(slog.NewTextHandler(f.log, nil))
	g, err := gate.New(config)
	if err != nil {
		t.Fatal(err)
	}
	f.Gate = g
	f.register("mine", mine...)
	f.register("theirs", &fakeTool{definition: definition("theirs", tool.Mutating), run: mustNotRun(t)})
	f.grant("mine")
	return f
}

func mustNotRun(t testing.TB) func(context.Context, tool.Call) (tool.Result, error) {
	return func(_ context.Context, c tool.Call) (tool.Result, error) {
		t.Errorf("%s ran", c.Name)
		return tool.Result{}, nil
	}
}

func (f *fixture) register(id toolgroups.GroupID, tools ...tool.Tool) {
	f.t.Helper()
	if _, err := grouptest.RegisterGroup(f.groups, "test", toolgroups.Group{ID: id, Tools: tools}); err != nil {
		f.t.Fatal(err)
	}
}

// grant publishes a View that allows groups and nothing else.
func (f *fixture) grant(ids ...toolgroups.GroupID) {
	s := f.groups.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf(ids...)))
	view.SetEpoch(f.ref.CurrentView().ForState("").EvaluateTool(nil).Epoch + 1)
	f.ref.PublishView(view)
}

// call takes one call of ann through the gate.
func (f *fixture) call(name, args string) *gate.Admission {
	f.t.Helper()
	return f.calls(&fakeRecorder{}, request(name, args))[0]
}

func (f *fixture) calls(b *fakeRecorder, requests ...gate.CallRequest) []*gate.Admission {
	f.t.Helper()
	list, err := f.Call(f.t.Context(), ann, requests, b)
	if err != nil || len(list) != len(requests) {
		f.t.Fatalf("got %d outcomes of %d calls, %v", len(list), len(requests), err)
	}
	return list
}

func request(name, args string) gate.CallRequest {
	return gate.CallRequest{Call: tool.Call{ID: identity.CallID("id of " + name), Name: name, Args: json.RawMessage(args)}}
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("the record, got before want:\n%s", diff)
	}
}

func TestNew_NamesMissingField(t *testing.T) {
	groups, log := toolgroups.NewManager(), slog.New(slog.DiscardHandler)
	tests := []struct {
		name   string
		config gate.Config
	}{
		{"Config.Groups", gate.Config{Directory: &fakeDirectory{}, Log: log}},
		{"Config.Directory", gate.Config{Groups: groups, Log: log}},
		{"Config.Log", gate.Config{Groups: groups, Directory: &fakeDirectory{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if g, err := gate.New(tt.config); g != nil || err == nil || !strings.Contains(err.Error(), tt.name) {
				t.Errorf("got %v, want an error with %s", err, tt.name)
			}
		})
	}
}

// An agent may call exactly the tools that it sees.
func TestSubject_Authorize(t *testing.T) {
	limited := definition("limited", tool.ReadOnly)
	limited.States = []string{"review"}
	never := definition("never", tool.ReadOnly)
	never.States = []string{}
	f := newFixture(t, &fakeTool{definition: definition("a", tool.ReadOnly)}, &fakeTool{definition: limited}, &fakeTool{definition: never})
	tests := []struct {
		name, state, tool string
		allowed           bool
		code              errcode.Code
		rule              toolgroups.DecisionRule
		group             toolgroups.GroupID
		reason            string
	}{
		{"own tool", "", "a", true, "", toolgroups.Granted, "mine", "tool a is available through group mine"},
		{"own tool in another state", "review", "a", true, "", toolgroups.Granted, "mine", "tool a is available through group mine"},
		{"tool of this state", "review", "limited", true, "", toolgroups.Granted, "mine", "tool limited is available through group mine"},
		{"tool of another state", "", "limited", false, errcode.ToolNotAvailable, toolgroups.WrongState, "mine", "tool limited is not available in this workflow state"},
		{"tool of no state", "review", "never", false, errcode.ToolNotAvailable, toolgroups.WrongState, "mine", "tool never is not available in this workflow state"},
		{"tool of another group", "", "theirs", false, errcode.ToolNotAvailable, toolgroups.NotGranted, "theirs", "tool theirs is not available to this role"},
		{"unknown tool", "", "nothing", false, errcode.UnknownTool, toolgroups.NoSuchTool, "", "there is no tool nothing"},
		{"name in another case", "", "A", false, errcode.UnknownTool, toolgroups.NoSuchTool, "", "there is no tool A"},
		{"empty name", "", "", false, errcode.UnknownTool, toolgroups.NoSuchTool, "", "there is no tool "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f.directory.setState(tt.state)
			subjects := map[string]*gate.Subject{"resolved": f.Subject(ann), "preview": f.PreviewSubject(f.ref.CurrentView(), tt.state)}
			for name, subject := range subjects {
				d := subject.AuthorizeTool(tt.tool)
				if d.Allowed() != tt.allowed || d.Code() != tt.code || d.Rule() != tt.rule || d.Group() != tt.group || d.Reason() != tt.reason || d.Tool != tt.tool || d.Epoch() != 1 {
					t.Errorf("%s: got %v %q %v %q %q at epoch %d", name, d.Allowed(), d.Code(), d.Rule(), d.Group(), d.Reason(), d.Epoch())
				}
				if seen := sees(subject, tt.tool); seen != tt.allowed {
					t.Errorf("%s: sees %v, may call %v", name, seen, tt.allowed)
				}
			}
		})
	}
}

// sees reports whether a tool is visible. It panics if the list of definitions and
// the JSON disagree.
func sees(s *gate.Subject, name string) bool {
	listed := false
	for _, d := range s.VisibleTools() {
		listed = listed || d.Name == name
	}
	if inJSON := strings.Contains(string(s.ToolJSON()), `"name":"`+name+`"`); inJSON != listed {
		panic("list and JSON differ for " + name)
	}
	return listed
}

func TestSubject_ZeroValueDenies(t *testing.T) {
	f := newFixture(t, &fakeTool{definition: definition("a", tool.ReadOnly)})
	f.directory.refs[identity.ByAgent("without ref")] = nil
	tests := map[string]*gate.Subject{
		"zero Subject":      {},
		"zero View":         f.PreviewSubject(&toolgroups.View{}, ""),
		"unknown principal": f.Subject(identity.ByAgent("unknown")),
		"nil ViewRef":       f.Subject(identity.ByAgent("without ref")),
		"zero Principal":    f.Subject(identity.Principal{}),
	}
	for name, subject := range tests {
		t.Run(name, func(t *testing.T) {
			for _, tool := range []string{"a", "theirs", "nothing", ""} {
				if d := subject.AuthorizeTool(tool); d.Allowed() || d.Code() == "" {
					t.Errorf("%q: got allowed %v, code %q", tool, d.Allowed(), d.Code())
				}
			}
			if len(subject.VisibleTools()) != 0 || string(subject.ToolJSON()) != "[]" {
				t.Errorf("sees %s", subject.ToolJSON())
			}
		})
	}
	t.Run("zero Decision", func(t *testing.T) {
		var d gate.Decision
		if d.Allowed() || d.Code() != errcode.UnknownTool || d.Rule() != toolgroups.NotGranted || d.Epoch() != 0 || d.Group() != "" {
			t.Errorf("got %v %q %v", d.Allowed(), d.Code(), d.Rule())
		}
	})
}

// Every method of a Subject reads the current View.
func TestSubject_FollowsViewRef(t *testing.T) {
	f := newFixture(t, &fakeTool{definition: definition("a", tool.ReadOnly)})
	subject := f.Subject(ann)
	for i, ids := range [][]toolgroups.GroupID{{"mine"}, {}, {"theirs"}, {"mine", "theirs"}} {
		f.grant(ids...)
		for _, name := range []string{"mine", "theirs"} {
			tool := map[string]string{"mine": "a", "theirs": "theirs"}[name]
			want := strings.Contains(fmt.Sprint(ids), name)
			if got := subject.AuthorizeTool(tool).Allowed(); got != want || sees(subject, tool) != want {
				t.Errorf("step %d: %s allowed %v, want %v", i, tool, got, want)
			}
		}
	}
}

// Indexes of removed handles are used again. A View that allows the new tool of an
// index must never allow a ToolHandle that was looked up before the old tool was removed.
func TestSubject_ReusedIndexDenies(t *testing.T) {
	f := newFixture(t)
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 2 {
		wg.Go(func() {
			subject := f.Subject(ann)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if d := subject.AuthorizeTool("danger"); d.Allowed() {
					t.Error("a tool of a group that was never granted is allowed")
					return
				}
			}
		})
	}
	danger := &fakeTool{definition: definition("danger", tool.Mutating)}
	harmless := &fakeTool{definition: definition("harmless", tool.ReadOnly)}
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end) && !t.Failed(); {
		f.register("other", danger)
		if err := grouptest.UnregisterGroup(f.groups, "test", "other"); err != nil {
			t.Error(err)
		}
		f.register("mine", harmless) // with the index of danger
		f.grant("mine")
		f.register("mine")
		f.grant("mine")
	}
	close(stop)
	wg.Wait()
}

func TestAuthorize_DoesNotAllocate(t *testing.T) {
	limited := definition("limited", tool.ReadOnly)
	limited.States = []string{"review"}
	f := newFixture(t, &fakeTool{definition: definition("a", tool.ReadOnly)}, &fakeTool{definition: limited})
	subject := f.Subject(ann)
	for _, name := range []string{"a", "limited", "theirs", "nothing"} {
		t.Run(name, func(t *testing.T) {
			var d gate.Decision
			if got := testing.AllocsPerRun(100, func() { d = subject.AuthorizeTool(name) }); got != 0 {
				t.Errorf("got %v allocations for allowed %v, want 0", got, d.Allowed())
			}
		})
	}
}

func BenchmarkAuthorize(b *testing.B) {
	f := newFixture(b, &fakeTool{definition: definition("a", tool.ReadOnly)})
	subject := f.Subject(ann)
	for _, name := range []string{"a", "theirs", "nothing"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = subject.AuthorizeTool(name)
			}
		})
	}
}
