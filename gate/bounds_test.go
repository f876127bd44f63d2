package gate_test

import (
	"context"
	"encoding/json"
	"net/url"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// grantBound publishes a View of the group mine with bounds, each of a limit of its own.
func (f *fixture) grantBound(binds ...string) {
	f.t.Helper()
	s := f.groups.CurrentSnapshot()
	var limits []toolgroups.PinnedSet
	for _, text := range binds {
		b, err := bounds.ParseBind([]byte(text))
		if err != nil {
			f.t.Fatal(err)
		}
		limits = append(limits, toolgroups.PinnedSet{Set: toolgroups.AllGroups(), Bind: b})
	}
	f.ref.PublishView(s.Compile(s.PinOwners(toolgroups.SetOf("mine")), limits...))
}

// payTool returns a tool with a default for its currency.
func payTool(run func(context.Context, tool.Call) (tool.Result, error)) *fakeTool {
	d := definition("pay", tool.Mutating)
	d.Input = json.RawMessage(`{"type":"object","properties":{"amount":{"type":"number"},"currency":{"type":"string","default":"USD"}},"required":["amount"]}`)
	return &fakeTool{definition: d, run: run}
}

// All bounds must hold. A denial names the path, the operator and the bound. The schema is
// checked first.
func TestCall_ChecksBounds(t *testing.T) {
	f := newFixture(t, payTool(nil))
	f.grantBound(`{"pay": {"/amount": {"max": 1000}}}`, `{"pay": {"/amount": {"min": 0}, "/currency": {"equal": "USD"}}}`, `{"other": {"/x": {"equal": 1}}}`)
	for _, c := range []struct {
		args, path, operator string
		code                 errcode.Code
	}{
		{`{"amount": 1e3}`, "", "", ""},
		{`{"amount": 1000.0000000000001}`, "/amount", "max", errcode.ArgumentNotGranted},
		{`{"amount": -1}`, "/amount", "min", errcode.ArgumentNotGranted},
		{`{"amount": 1, "currency": "EUR"}`, "/currency", "equal", errcode.ArgumentNotGranted},
		{`{"amount": "2000"}`, "", "", errcode.InvalidArguments},
	} {
		a := f.call("pay", c.args)
		if a.Code() != c.code {
			t.Errorf("%s: got %q: %s", c.args, a.Code(), a.Result.JSON())
			continue
		}
		var detail struct{ Path, Operator, Bound string }
		if err := json.Unmarshal(a.Result.JSON(), &detail); c.path != "" && (err != nil || detail.Path != c.path || detail.Operator != c.operator || detail.Bound == "") {
			t.Errorf("%s: %s", c.args, a.Result.JSON())
		}
	}
}

// A call that started before a bound was narrowed is not repeated outside it.
func TestCall_ChecksBoundsOfRepeatedCall(t *testing.T) {
	d := definition("set", tool.Idempotent)
	f := newFixture(t, &fakeTool{definition: d, run: mustNotRun(t)})
	f.grantBound(`{"set": {"/x": {"max": 1}}}`)
	r := request("set", `{"x": 2}`)
	r.Started, r.Effect = true, tool.Idempotent
	if a := f.calls(&fakeRecorder{}, r)[0]; a.Code() != errcode.ArgumentNotGranted {
		t.Errorf("got %q", a.Code())
	}
}

// A value of the task's input is looked up for the principal that calls.
func TestCall_BoundsByTaskInput(t *testing.T) {
	inputs := func(_ context.Context, p identity.Principal, name string) (json.RawMessage, bool) {
		return json.RawMessage(`["a", "b"]`), p == ann && name == "recipients"
	}
	for _, c := range []struct {
		inputs func(context.Context, identity.Principal, string) (json.RawMessage, bool)
		bind   string
		args   string
		code   errcode.Code
	}{
		{inputs, `{"send": {"/to": {"input": "recipients"}}}`, `{"to": "b"}`, ""},
		{inputs, `{"send": {"/to": {"input": "recipients"}}}`, `{"to": "c"}`, errcode.ArgumentNotGranted},
		{inputs, `{"send": {"/to": {"input": "others"}}}`, `{"to": "b"}`, errcode.ArgumentNotGranted},
		{nil, `{"send": {"/to": {"input": "recipients"}}}`, `{"to": "b"}`, errcode.ArgumentNotGranted},
	} {
		f := newFixtureWith(t, gate.Config{Inputs: c.inputs}, &fakeTool{definition: definition("send", tool.Mutating)})
		f.grantBound(c.bind)
		if a := f.call("send", c.args); a.Code() != c.code {
			t.Errorf("%s with %s: got %q", c.bind, c.args, a.Code())
		}
	}
}

// A tool reads the bounds on its call from the context.
func TestCall_PassesBoundsToTool(t *testing.T) {
	var found []bool
	f := newFixture(t, payTool(func(ctx context.Context, _ tool.Call) (tool.Result, error) {
		u, err := url.Parse("https://b.example/")
		found = append(found, bounds.CheckRedirect(ctx, u) != nil)
		return tool.Result{}, err
	}))
	f.grantBound(`{"pay": {"/url": {"url": {"host": "a.example"}, "missing": "allow"}}}`)
	f.call("pay", `{"amount": 1}`)
	f.grant("mine")
	f.call("pay", `{"amount": 1}`)
	if len(found) != 2 || !found[0] || found[1] {
		t.Errorf("got %v", found)
	}
}

func TestCheckArguments(t *testing.T) {
	f := newFixture(t, payTool(mustNotRun(t)))
	f.grantBound(`{"pay": {"/amount": {"max": 1}}}`)
	for args, want := range map[string]errcode.Code{`{"amount": 1}`: "", `{"amount": 2}`: errcode.ArgumentNotGranted} {
		if err := f.CheckArguments(t.Context(), f.Subject(ann), "pay", json.RawMessage(args)); errcode.CodeOf(err) != want {
			t.Errorf("%s: %v", args, err)
		}
	}
	if err := f.CheckArguments(t.Context(), f.Subject(ann), "theirs", nil); err != nil {
		t.Errorf("a tool that is not visible: %v", err)
	}
}

// What a call costs with bounds, as a multiple of what it costs without. Calls of both kinds take
// turns, so that both meet the same machine. See the figures in docs/performance.md.
func BenchmarkAdmit(b *testing.B) {
	unbound := newAdmitLoop(b, `{"other": {"/x": {"equal": 1}}}`)
	bound := newAdmitLoop(b, `{"pay": {"/amount": {"max": 1000}, "/currency": {"any": [{"equal": "EUR"}, {"equal": "USD"}]}}}`)
	b.ReportAllocs()
	var without, with time.Duration
	for b.Loop() {
		without += unbound()
		with += bound()
	}
	calls := float64(b.N * callsPerTurn)
	b.ReportMetric(float64(without)/calls, "ns/unbound")
	b.ReportMetric(float64(with)/calls, "ns/bound")
	b.ReportMetric(float64(with)/float64(without), "ratio")
}

// callsPerTurn is how many calls of one kind BenchmarkAdmit makes at once.
const callsPerTurn = 100

// newAdmitLoop returns a function that returns the time of callsPerTurn calls under a bound.
func newAdmitLoop(b *testing.B, bind string) func() time.Duration {
	f := newFixture(b, payTool(nil))
	f.grantBound(bind)
	r := request("pay", `{"amount": 250, "currency": "USD"}`)
	return func() time.Duration {
		start := time.Now()
		for range callsPerTurn {
			if a := f.Admit(b.Context(), ann, r); !a.Allowed() {
				b.Fatal(a.Err)
			}
		}
		return time.Since(start)
	}
}
