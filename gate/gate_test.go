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
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

func Example() {
	groups := toolgroups.NewManager()
	_, _ = groups.Register("demo", toolgroups.Group{ID: "clock", Tools: []tool.Tool{&fake{d: definition("now", tool.ReadOnly)}}})
	_, _ = groups.Register("demo", toolgroups.Group{ID: "disk", Tools: []tool.Tool{&fake{d: definition("format", tool.Mutating)}}})
	ann := identity.ByAgent("ann")
	desk := &desk{seats: map[identity.Principal]*toolgroups.ViewRef{ann: new(toolgroups.ViewRef)}}
	snapshot := groups.Snapshot()
	desk.seats[ann].Publish(snapshot.Compile(snapshot.Bind(toolgroups.Of("clock"))))
	g, err := gate.New(gate.Config{Groups: groups, Directory: desk, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, name := range []string{"now", "format", "fly"} {
		fmt.Println(g.Subject(ann).Authorize(name).Reason())
	}
	done, _ := g.Call(context.Background(), ann, []gate.Request{{Call: tool.Call{Name: "now"}}, {Call: tool.Call{Name: "format"}}}, &book{})
	for _, a := range done {
		fmt.Println(string(a.Result.JSON()))
	}
	// Output:
	// tool now is available through group clock
	// tool format is not available to this role
	// there is no tool fly
	// "now {}"
	// {"error":"tool_not_available","message":"tool format is not available to this role","toolName":"format"}
}

// definition makes one with an object schema that takes anything.
func definition(name string, e tool.Effect) tool.Definition {
	return tool.Definition{Name: name, Input: json.RawMessage(`{"type":"object"}`), Effect: e}
}

// fake is a tool that answers with its name and arguments unless run is set.
type fake struct {
	d   tool.Definition
	run func(ctx context.Context, c tool.Call) (tool.Result, error)
}

func (f *fake) Definition() tool.Definition { return f.d }

func (f *fake) Call(ctx context.Context, c tool.Call) (tool.Result, error) {
	if f.run != nil {
		return f.run(ctx, c)
	}
	return tool.Result{Text: c.Name + " " + string(c.Args)}, nil
}

// desk is a Directory.
type desk struct {
	mu    sync.Mutex
	seats map[identity.Principal]*toolgroups.ViewRef
	state string
}

func (d *desk) Resolve(p identity.Principal) (*toolgroups.ViewRef, string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if slot, ok := d.seats[p]; ok {
		return slot, d.state
	}
	return new(toolgroups.ViewRef), ""
}

func (d *desk) move(state string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.state = state
}

// book is a Recorder that keeps what it was told, in words.
type book struct {
	lines             []string
	started, finished func(calls []*gate.Admission) error // nil records
}

func (b *book) Started(_ context.Context, calls []*gate.Admission) error {
	b.note("start", calls, func(a *gate.Admission) string {
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

func (b *book) Finished(_ context.Context, calls []*gate.Admission) error {
	b.note("finish", calls, func(a *gate.Admission) string {
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

func (b *book) note(what string, calls []*gate.Admission, how func(*gate.Admission) string) {
	words := []string{what}
	for _, a := range calls {
		words = append(words, a.Request.Name+":"+how(a))
	}
	b.lines = append(b.lines, strings.Join(words, " "))
}

// house is a gate with one principal, who may use the group "mine".
type house struct {
	*gate.Gate
	t      testing.TB
	groups *toolgroups.Manager
	desk   *desk
	slot   *toolgroups.ViewRef
	log    *bytes.Buffer
}

var ann = identity.ByAgent("ann")

func open(t testing.TB, mine ...tool.Tool) *house {
	t.Helper()
	return openWith(t, gate.Config{}, mine...)
}

func openWith(t testing.TB, config gate.Config, mine ...tool.Tool) *house {
	t.Helper()
	h := &house{t: t, groups: toolgroups.NewManager(), slot: new(toolgroups.ViewRef), log: new(bytes.Buffer)}
	h.desk = &desk{seats: map[identity.Principal]*toolgroups.ViewRef{ann: h.slot}}
	config.Groups, config.Directory, config.Log = h.groups, h.desk, slog.New(slog.NewTextHandler(h.log, nil))
	g, err := gate.New(config)
	if err != nil {
		t.Fatal(err)
	}
	h.Gate = g
	h.register("mine", mine...)
	h.register("theirs", &fake{d: definition("theirs", tool.Mutating), run: mustNotRun(t)})
	h.grant("mine")
	return h
}

func mustNotRun(t testing.TB) func(context.Context, tool.Call) (tool.Result, error) {
	return func(_ context.Context, c tool.Call) (tool.Result, error) {
		t.Errorf("%s ran", c.Name)
		return tool.Result{}, nil
	}
}

func (h *house) register(id toolgroups.GroupID, tools ...tool.Tool) {
	h.t.Helper()
	if _, err := h.groups.Register("test", toolgroups.Group{ID: id, Tools: tools}); err != nil {
		h.t.Fatal(err)
	}
}

// grant puts a View of groups in force.
func (h *house) grant(ids ...toolgroups.GroupID) {
	s := h.groups.Snapshot()
	view := s.Compile(s.Bind(toolgroups.Of(ids...)))
	view.SetEpoch(h.slot.View().ForState("").Decide(nil).Epoch + 1)
	h.slot.Publish(view)
}

// call takes one call through the gate.
func (h *house) call(name, args string) *gate.Admission {
	h.t.Helper()
	return h.calls(&book{}, request(name, args))[0]
}

func (h *house) calls(b *book, requests ...gate.Request) []*gate.Admission {
	h.t.Helper()
	list, err := h.Call(h.t.Context(), ann, requests, b)
	if err != nil || len(list) != len(requests) {
		h.t.Fatalf("got %d outcomes of %d calls, %v", len(list), len(requests), err)
	}
	return list
}

func request(name, args string) gate.Request {
	return gate.Request{Call: tool.Call{ID: identity.CallID("id of " + name), Name: name, Args: json.RawMessage(args)}}
}

func wantLines(t *testing.T, got []string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("the record, got before want:\n%s", diff)
	}
}

func TestNewNamesTheFieldThatIsMissing(t *testing.T) {
	groups, log := toolgroups.NewManager(), slog.New(slog.DiscardHandler)
	tests := []struct {
		name   string
		config gate.Config
	}{
		{"Config.Groups", gate.Config{Directory: &desk{}, Log: log}},
		{"Config.Directory", gate.Config{Groups: groups, Log: log}},
		{"Config.Log", gate.Config{Groups: groups, Directory: &desk{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if g, err := gate.New(tt.config); g != nil || err == nil || !strings.Contains(err.Error(), tt.name) {
				t.Errorf("got %v, want an error with %s", err, tt.name)
			}
		})
	}
}

// Design §4: "what an agent sees is what it may call"; "Any failure to find
// out is a denial."
func TestAuthorize(t *testing.T) {
	limited := definition("limited", tool.ReadOnly)
	limited.States = []string{"review"}
	never := definition("never", tool.ReadOnly)
	never.States = []string{}
	h := open(t, &fake{d: definition("a", tool.ReadOnly)}, &fake{d: limited}, &fake{d: never})
	tests := []struct {
		name, state, tool string
		allowed           bool
		code              errcode.Code
		rule              toolgroups.Rule
		group             toolgroups.GroupID
		reason            string
	}{
		{"a tool of its own", "", "a", true, "", toolgroups.Granted, "mine", "tool a is available through group mine"},
		{"a tool of its own in another state", "review", "a", true, "", toolgroups.Granted, "mine", "tool a is available through group mine"},
		{"a tool of this state", "review", "limited", true, "", toolgroups.Granted, "mine", "tool limited is available through group mine"},
		{"a tool of another state", "", "limited", false, errcode.ToolNotAvailable, toolgroups.WrongState, "mine", "tool limited is not available in this workflow state"},
		{"a tool of no state", "review", "never", false, errcode.ToolNotAvailable, toolgroups.WrongState, "mine", "tool never is not available in this workflow state"},
		{"somebody else's tool", "", "theirs", false, errcode.ToolNotAvailable, toolgroups.NotGranted, "theirs", "tool theirs is not available to this role"},
		{"a tool nobody has", "", "nothing", false, errcode.UnknownTool, toolgroups.NoSuchTool, "", "there is no tool nothing"},
		{"a name in other letters", "", "A", false, errcode.UnknownTool, toolgroups.NoSuchTool, "", "there is no tool A"},
		{"no name", "", "", false, errcode.UnknownTool, toolgroups.NoSuchTool, "", "there is no tool "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h.desk.move(tt.state)
			seats := map[string]*gate.Subject{"bound": h.Subject(ann), "peeked": h.Preview(h.slot.View(), tt.state)}
			for name, seat := range seats {
				d := seat.Authorize(tt.tool)
				if d.Allowed() != tt.allowed || d.Code() != tt.code || d.Rule() != tt.rule || d.Group() != tt.group || d.Reason() != tt.reason || d.Tool != tt.tool || d.Epoch() != 1 {
					t.Errorf("%s: got %v %q %v %q %q at epoch %d", name, d.Allowed(), d.Code(), d.Rule(), d.Group(), d.Reason(), d.Epoch())
				}
				if seen := sees(seat, tt.tool); seen != tt.allowed {
					t.Errorf("%s: sees %v, may call %v", name, seen, tt.allowed)
				}
			}
		})
	}
}

// sees says whether a seat lists a tool, and lists it on the wire.
func sees(s *gate.Subject, name string) bool {
	listed := false
	for _, d := range s.Visible() {
		listed = listed || d.Name == name
	}
	if wire := strings.Contains(string(s.ToolJSON()), `"name":"`+name+`"`); wire != listed {
		panic("list and wire differ about " + name)
	}
	return listed
}

func TestZeroValuesDeny(t *testing.T) {
	h := open(t, &fake{d: definition("a", tool.ReadOnly)})
	h.desk.seats[identity.ByAgent("seatless")] = nil
	tests := map[string]*gate.Subject{
		"the zero Seat":                       {},
		"a Seat of a zero View":               h.Preview(&toolgroups.View{}, ""),
		"a Seat of a Slot without a View":     h.Subject(identity.ByAgent("unknown")),
		"a Seat of a Directory without Slots": h.Subject(identity.ByAgent("seatless")),
		"a Seat of nobody":                    h.Subject(identity.Principal{}),
	}
	for name, seat := range tests {
		t.Run(name, func(t *testing.T) {
			for _, tool := range []string{"a", "theirs", "nothing", ""} {
				if d := seat.Authorize(tool); d.Allowed() || d.Code() == "" {
					t.Errorf("%q: got allowed %v, code %q", tool, d.Allowed(), d.Code())
				}
			}
			if len(seat.Visible()) != 0 || string(seat.ToolJSON()) != "[]" {
				t.Errorf("sees %s", seat.ToolJSON())
			}
		})
	}
	t.Run("the zero Decision", func(t *testing.T) {
		var d gate.Decision
		if d.Allowed() || d.Code() != errcode.UnknownTool || d.Rule() != toolgroups.NotGranted || d.Epoch() != 0 || d.Group() != "" {
			t.Errorf("got %v %q %v", d.Allowed(), d.Code(), d.Rule())
		}
	})
}

// A Seat is asked anew with every question: it follows the View in force.
func TestASeatFollowsItsSlot(t *testing.T) {
	h := open(t, &fake{d: definition("a", tool.ReadOnly)})
	seat := h.Subject(ann)
	for i, ids := range [][]toolgroups.GroupID{{"mine"}, {}, {"theirs"}, {"mine", "theirs"}} {
		h.grant(ids...)
		for _, name := range []string{"mine", "theirs"} {
			tool := map[string]string{"mine": "a", "theirs": "theirs"}[name]
			want := strings.Contains(fmt.Sprint(ids), name)
			if got := seat.Authorize(tool).Allowed(); got != want || sees(seat, tool) != want {
				t.Errorf("step %d: %s allowed %v, want %v", i, tool, got, want)
			}
		}
	}
}

// Property: a handle that was looked up before its tool went away is never
// let through by a View in which another tool has its place.
func TestAPlaceThatIsUsedAgainOpensNothing(t *testing.T) {
	h := open(t)
	stop := make(chan struct{})
	var askers sync.WaitGroup
	for range 2 {
		askers.Go(func() {
			seat := h.Subject(ann)
			for {
				select {
				case <-stop:
					return
				default:
				}
				if d := seat.Authorize("danger"); d.Allowed() {
					t.Error("a tool of a group that was never granted is allowed")
					return
				}
			}
		})
	}
	danger := &fake{d: definition("danger", tool.Mutating)}
	harmless := &fake{d: definition("harmless", tool.ReadOnly)}
	for end := time.Now().Add(300 * time.Millisecond); time.Now().Before(end) && !t.Failed(); {
		h.register("other", danger)
		if err := h.groups.Unregister("test", "other"); err != nil {
			t.Error(err)
		}
		h.register("mine", harmless) // in danger's place
		h.grant("mine")
		h.register("mine")
		h.grant("mine")
	}
	close(stop)
	askers.Wait()
}

func TestAuthorizeAllocatesNothing(t *testing.T) {
	limited := definition("limited", tool.ReadOnly)
	limited.States = []string{"review"}
	h := open(t, &fake{d: definition("a", tool.ReadOnly)}, &fake{d: limited})
	seat := h.Subject(ann)
	for _, name := range []string{"a", "limited", "theirs", "nothing"} {
		t.Run(name, func(t *testing.T) {
			var d gate.Decision
			if got := testing.AllocsPerRun(100, func() { d = seat.Authorize(name) }); got != 0 {
				t.Errorf("got %v allocations for allowed %v, want 0", got, d.Allowed())
			}
		})
	}
}

func BenchmarkAuthorize(b *testing.B) {
	h := open(b, &fake{d: definition("a", tool.ReadOnly)})
	seat := h.Subject(ann)
	for _, name := range []string{"a", "theirs", "nothing"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				_ = seat.Authorize(name)
			}
		})
	}
}
