package gate_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// fakeApprovals is a gate.ApprovalLookup with one verdict for all calls.
type fakeApprovals struct {
	verdict gate.ApprovalVerdict
	needs   []gate.ApprovalNeed
}

func (d *fakeApprovals) FindApproval(_ identity.Principal, _ tool.Call, need gate.ApprovalNeed) gate.ApprovalVerdict {
	d.needs = append(d.needs, need)
	return d.verdict
}

var approvalRule = approval.Rule{Tools: []string{"transfer"}, From: approval.Approvers{Any: []approval.Quorum{{Operator: true}}}}

// newApprovalFixture is a fixture whose tool transfer waits for the verdict of approvals.
func newApprovalFixture(t *testing.T, lookup gate.ApprovalLookup, tools ...tool.Tool) *fixture {
	f := newFixtureWith(t, gate.Config{Approvals: lookup}, tools...)
	s := f.groups.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf("mine")))
	s.SetApprovalRules(view, []approval.Rule{approvalRule, approvalRule})
	f.ref.PublishView(view)
	return f
}

// A call that waits has no outcome and does not run. The calls around it go on.
func TestApprove_WaitsAlone(t *testing.T) {
	approvals := &fakeApprovals{verdict: gate.ApprovalVerdict{ID: "7"}}
	f := newApprovalFixture(t, approvals, &fakeTool{definition: definition("transfer", tool.Mutating), run: mustNotRun(t)}, &fakeTool{definition: definition("look", tool.ReadOnly)}, &fakeTool{definition: definition("write", tool.Mutating)})
	rec := &fakeRecorder{}
	list := f.calls(rec, request("look", "{}"), request("transfer", `{"b":1, "a":2}`), request("write", "{}"))
	waits := list[1]
	if need, ok := waits.Need(); !waits.Waiting() || waits.Allowed() || waits.Superseded() || waits.Code() != "" || waits.Approval() != "7" || !ok || len(need.Rules) != 1 {
		t.Errorf("%+v, need %+v", waits, need)
	}
	if _, ok := list[0].Need(); ok || list[0].Waiting() || !list[0].Allowed() || !list[2].Allowed() {
		t.Error("another call waits, too")
	}
	f.calls(rec, request("transfer", `{"a":2,"b":1}`))
	f.calls(rec, request("transfer", `{"a":2,"b":3}`))
	if approvals.needs[0].Args != approvals.needs[1].Args || approvals.needs[1].Args == approvals.needs[2].Args || approvals.needs[0].Definition != approvals.needs[2].Definition {
		t.Errorf("%+v", approvals.needs)
	}
}

// Only a verdict that is granted, has an id and denies nothing lets a call run.
func TestApprove_Verdicts(t *testing.T) {
	denied := errcode.New(errcode.ApprovalDenied, "no")
	tests := []struct {
		name    string
		verdict gate.ApprovalVerdict
		allowed bool
		code    errcode.Code
	}{
		{"none", gate.ApprovalVerdict{}, false, ""},
		{"granted", gate.ApprovalVerdict{ID: "1", Granted: true}, true, ""},
		{"granted without id", gate.ApprovalVerdict{Granted: true}, false, ""},
		{"denied", gate.ApprovalVerdict{ID: "1", Denied: denied}, false, errcode.ApprovalDenied},
		{"granted and denied", gate.ApprovalVerdict{ID: "1", Granted: true, Denied: denied}, false, errcode.ApprovalDenied},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := newApprovalFixture(t, &fakeApprovals{verdict: tt.verdict}, &fakeTool{definition: definition("transfer", tool.Mutating)})
			a := f.call("transfer", "{}")
			if a.Allowed() != tt.allowed || a.Code() != tt.code || a.Waiting() != (!tt.allowed && tt.code == "") {
				t.Errorf("allowed %v, waiting %v, code %q", a.Allowed(), a.Waiting(), a.Code())
			}
			if ran := a.Result.Text != ""; ran != tt.allowed {
				t.Errorf("ran: %v", ran)
			}
		})
	}
}

// People are not asked about a call that another step denies, nor about one that was started: it
// is not repeated, though its tool is ReadOnly.
func TestApprove_IsTheLastStep(t *testing.T) {
	approvals := &fakeApprovals{verdict: gate.ApprovalVerdict{ID: "1", Granted: true}}
	f := newApprovalFixture(t, approvals, &fakeTool{definition: tool.Definition{Name: "transfer", Input: json.RawMessage(`{"type":"object","required":["to"]}`), Effect: tool.ReadOnly}, run: mustNotRun(t)})
	if code := f.call("transfer", "{}").Code(); code != errcode.InvalidArguments {
		t.Errorf("%q", code)
	}
	started := request("transfer", `{"to":1}`)
	started.Started, started.Effect = true, tool.ReadOnly
	if code := f.calls(&fakeRecorder{}, started)[0].Code(); code != errcode.ToolInterrupted {
		t.Errorf("%q", code)
	}
	if len(approvals.needs) != 0 {
		t.Errorf("asked about %+v", approvals.needs)
	}
}

// Without approvals, calls that need an approval are denied. CheckEdited decides without an approval
// and runs nothing.
func TestApprove_WithoutLookup(t *testing.T) {
	f := newApprovalFixture(t, nil, &fakeTool{definition: definition("transfer", tool.Mutating), run: mustNotRun(t)})
	if code := f.call("transfer", "{}").Code(); code != errcode.ApprovalRequired {
		t.Errorf("%q", code)
	}
	f = newApprovalFixture(t, &fakeApprovals{}, &fakeTool{definition: definition("transfer", tool.Mutating), run: mustNotRun(t)})
	if need, err := f.CheckEdited(t.Context(), ann, request("transfer", "{}").Call, "7"); err != nil || need.Edited != "7" || len(need.Rules) != 1 {
		t.Errorf("%+v, %v", need, err)
	}
	if _, err := f.CheckEdited(t.Context(), ann, request("transfer", "[]").Call, "7"); errcode.CodeOf(err) != errcode.InvalidArguments {
		t.Error(err)
	}
}

// CheckCall asks what a call would be told, without the call.
func TestCheckCall(t *testing.T) {
	pay := payTool(mustNotRun(t))
	f := newApprovalFixture(t, &fakeApprovals{verdict: gate.ApprovalVerdict{ID: "7", Granted: true}}, pay, &fakeTool{definition: definition("transfer", tool.Mutating), run: mustNotRun(t)})
	check := func(name, args string) errcode.Code {
		t.Helper()
		return errcode.CodeOf(f.CheckCall(t.Context(), f.Subject(ann), name, json.RawMessage(args)))
	}
	if code := check("pay", `{"amount": 1}`); code != "" {
		t.Errorf("pay: %q", code)
	}
	if code := check("transfer", `{}`); code != errcode.ToolNotAvailable {
		t.Errorf("a call that needs an approval: %q", code)
	}
	if code := check("absent", `{}`); code != errcode.UnknownTool {
		t.Errorf("an unknown tool: %q", code)
	}
	f.grantBound(`{"pay": {"/amount": {"max": 1}}}`)
	for args, want := range map[string]errcode.Code{`{"amount": 1}`: "", `{"amount": 2}`: errcode.ArgumentNotGranted} {
		if code := check("pay", args); code != want {
			t.Errorf("pay %s: %q, want %q", args, code, want)
		}
	}
	f.grant("theirs")
	if code := check("pay", `{"amount": 1}`); code != errcode.ToolNotAvailable {
		t.Errorf("a tool without permission: %q", code)
	}
}

// What a caller sends besides the arguments is no part of them, and the tool acts on it. So
// an approval is for the same secure arguments and the same user of each auth service.
func TestApprove_BindsWhatIsSentBesidesArguments(t *testing.T) {
	needOf := func(claims string, sent tool.Credentials) string {
		approvals, authn := &fakeApprovals{verdict: gate.ApprovalVerdict{ID: "1"}}, newFakeAuthn()
		authn.tokens["one"]["good"] = gate.VerifiedToken{Claims: json.RawMessage(claims)}
		d := definition("transfer", tool.Mutating)
		d.Auth = &tool.Auth{AnyOf: []string{"one"}, SecureArgs: true}
		f := newFixtureWith(t, gate.Config{Approvals: approvals, Authn: authn}, &fakeTool{definition: d})
		s := f.groups.CurrentSnapshot()
		view := s.Compile(s.PinOwners(toolgroups.SetOf("mine")))
		s.SetApprovalRules(view, []approval.Rule{approvalRule})
		f.ref.PublishView(view)
		if _, err := f.Call(tool.WithCredentials(t.Context(), sent), ann, []gate.CallRequest{request("transfer", "{}")}, &fakeRecorder{}); err != nil || len(approvals.needs) != 1 {
			t.Fatalf("%v, %d needs", err, len(approvals.needs))
		}
		return approvals.needs[0].Sender
	}
	tokens := map[string]string{"one": "good"}
	first := needOf(`{"sub":"ann","iat":1}`, tool.Credentials{Tokens: tokens, Secure: json.RawMessage(`{"account":1}`)})
	if same := needOf(`{"sub":"ann","iat":2}`, tool.Credentials{Tokens: tokens, Secure: json.RawMessage(`{"account":1}`)}); same != first || first == "" {
		t.Errorf("the same is %q and %q", first, same)
	}
	for name, other := range map[string]string{
		"secure arguments": needOf(`{"sub":"ann"}`, tool.Credentials{Tokens: tokens, Secure: json.RawMessage(`{"account":2}`)}),
		"user":             needOf(`{"sub":"eve"}`, tool.Credentials{Tokens: tokens, Secure: json.RawMessage(`{"account":1}`)}),
		"claims":           needOf(`{"sub":"ann","email":"eve"}`, tool.Credentials{Tokens: tokens, Secure: json.RawMessage(`{"account":1}`)}),
	} {
		if other == first {
			t.Errorf("other %s have the same need", name)
		}
	}
}

// newUnlessFixture is newApprovalFixture with two rules, of which each leaves out some calls.
func newUnlessFixture(t *testing.T, lookup gate.ApprovalLookup, unless ...string) *fixture {
	tl := &fakeTool{definition: tool.Definition{Name: "transfer", Input: json.RawMessage(`{"type":"object","properties":{"amount":{"default":5}}}`)}}
	f := newFixtureWith(t, gate.Config{
		Approvals: lookup,
		Inputs: func(_ context.Context, _ identity.Principal, name string) (json.RawMessage, bool) {
			return json.RawMessage(`7`), name == "seven"
		},
	}, tl)
	var rules []approval.Rule
	for i, text := range unless {
		r := approvalRule
		r.From.Any = []approval.Quorum{{Operator: true, Count: i + 1}}
		if text != "" {
			_ = json.Unmarshal([]byte(text), &r.Unless) // never fails
		}
		rules = append(rules, r)
	}
	s := f.groups.CurrentSnapshot()
	view := s.Compile(s.PinOwners(toolgroups.SetOf("mine")))
	s.SetApprovalRules(view, rules)
	f.ref.PublishView(view)
	return f
}

// A rule with unless selects the calls whose arguments are not certainly within it. Each rule
// decides for itself. Defaults of the schema do not count.
func TestApprove_Unless(t *testing.T) {
	const small, seven = `{"/amount": {"max": 1000}}`, `{"/amount": {"input": "seven"}}`
	for _, tt := range []struct {
		name   string
		unless []string
		args   string
		want   int // rules that select the call
	}{
		{"within", []string{small}, `{"amount":1e3}`, 0},
		{"outside", []string{small}, `{"amount":1000.5}`, 1},
		{"missing, with a default", []string{small}, `{}`, 1},
		{"null", []string{small}, `{"amount":null}`, 1},
		{"a text", []string{small}, `{"amount":"5"}`, 1},
		{"nested", []string{small}, `{"amount":{"amount":5}}`, 1},
		{"a list", []string{small}, `{"amount":[5]}`, 1},
		{"one rule of two", []string{small, ""}, `{"amount":5}`, 1},
		{"both rules", []string{small, ""}, `{"amount":5000}`, 2},
		{"the input of the task", []string{seven}, `{"amount":7}`, 0},
		{"another than the input", []string{seven}, `{"amount":8}`, 1},
		{"no such input", []string{`{"/amount": {"input": "eight"}}`}, `{"amount":7}`, 1},
		{"no such argument", []string{`{"/amont": {"max": 1000}}`}, `{"amount":5}`, 1},
		{"may be missing", []string{`{"/amont": {"max": 1000, "missing": "allow"}}`}, `{"amount":5}`, 1},
		{"unreadable", []string{`{"/amount": {"most": 1000}}`}, `{"amount":5}`, 1},
		{"no path", []string{`{}`}, `{"amount":5}`, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			approvals := &fakeApprovals{}
			f := newUnlessFixture(t, approvals, tt.unless...)
			a := f.call("transfer", tt.args)
			need, asks := a.Need()
			if asks != (tt.want > 0) || len(need.Rules) != tt.want || a.Allowed() == asks || a.Waiting() != asks {
				t.Errorf("needs %+v, allowed %v", need, a.Allowed())
			}
			if asks && len(need.All) != len(tt.unless) {
				t.Errorf("all rules: %+v", need.All)
			}
			shown := f.ApprovalRules(t.Context(), f.Subject(ann), "transfer", json.RawMessage(tt.args))
			if len(shown) != tt.want || len(f.ApprovalRules(t.Context(), f.Subject(ann), "transfer", nil)) != len(tt.unless) || f.ApprovalRules(t.Context(), f.Subject(ann), "none", nil) != nil {
				t.Errorf("shown: %+v", shown)
			}
		})
	}
}

// Arguments that an approver has set use their approval, also if no rule selects them.
func TestApprove_EditedArgumentsUseTheirApproval(t *testing.T) {
	approvals := &fakeApprovals{verdict: gate.ApprovalVerdict{ID: "7", Granted: true}}
	f := newUnlessFixture(t, approvals, `{"/amount": {"max": 1000}}`)
	r := request("transfer", `{"amount":5}`)
	r.Edited = "7"
	a := f.calls(&fakeRecorder{}, r)[0]
	if need, ok := a.Need(); !ok || need.Edited != "7" || len(need.Rules) != 0 || a.Approval() != "7" || !a.Allowed() {
		t.Errorf("%+v, approval %q", need, a.Approval())
	}
	approvals.verdict = gate.ApprovalVerdict{}
	if a := f.calls(&fakeRecorder{}, r)[0]; a.Allowed() || !a.Waiting() {
		t.Error("runs without its approval")
	}
}
