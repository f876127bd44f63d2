package runtime_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// unless returns a rule with bounds of arguments that need no approval.
func unless(t *testing.T, r approval.Rule, text string) approval.Rule {
	t.Helper()
	bound, err := bounds.ParseRule([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	r.Unless, r.Tools = bound, []string{"transfer"}
	return r
}

// transferModel transfers an amount and ends with the result.
func transferModel(amount int) model.Model {
	return answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return callTools("transfer", obj{"amount": amount})
		}
		return model.Answer{Finish: model.FinishEnd, Value: mustJSON(results(r)[0].Content)}
	})
}

// newAmountBank is a bank whose agents transfer an amount, with these rules.
func newAmountBank(t *testing.T, amount int, rules ...approval.Rule) *bank {
	t.Helper()
	b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: rules[0], model: transferModel(amount)}
	b.open(t)
	b.configure(t, rules...)
	return b
}

func edit(id, args string) runtime.ApprovalDecision {
	return runtime.ApprovalDecision{ID: id, Approve: true, Args: json.RawMessage(args)}
}

// noRequestLeft requires that no record of a request is left, and that all requests on record
// have ended.
func (b *bank) noRequestLeft(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"approval", "approvalArgs"} {
		for r, err := range b.store.ReadRecords(t.Context(), kind, "") {
			t.Errorf("%s left: %s, %v", kind, r.Key, err)
		}
	}
}

// A call within unless does not wait, and one outside waits for the rules that select it alone.
func TestApproval_Unless(t *testing.T) {
	small := unless(t, financeRule, `{"/amount": {"max": 1000}}`)
	b := newAmountBank(t, 1000, small)
	b.wantResult(t, b.wait(t, b.begin(t)), `1000`, "")
	if n := len(bodiesOf[journal.ApprovalRequested](t, b.fixture)); n != 0 {
		t.Errorf("%d requests", n)
	}
	security := approval.Rule{Tools: []string{"transfer"}, From: approval.Approvers{All: []approval.Quorum{{Role: "security"}}}}
	b = newAmountBank(t, 1000, small, security)
	task := b.begin(t)
	a := b.waiting(t, 1)[0]
	if len(a.Rules) != 1 || !a.Rules[0].Equal(&security) {
		t.Errorf("%v", a.Rules)
	}
	b.wantDecided(t, b.approvers["finance ann"], approve(a.ID), "approval_not_found")
	b.wantDecided(t, b.approvers["security ann"], approve(a.ID), "approved")
	b.wantResult(t, b.wait(t, task), `1000`, "")
	b.noRequestLeft(t)
}

// Edited arguments that no rule selects use the approval of the call: it is consumed, the agent
// reads them, and the same approval lets no other call run.
func TestApproval_EditedBelowUnless(t *testing.T) {
	b := newAmountBank(t, 5000, unless(t, financeRule, `{"/amount": {"max": 1000}}`))
	task := b.begin(t)
	a := b.waiting(t, 1)[0]
	b.wantDecided(t, b.approvers["finance ann"], edit(a.ID, `{"amount": 500}`), "approved")
	result := string(b.wait(t, task).Result)
	if !strings.Contains(result, `"approvedArguments":{"amount":500}`) || b.paid.Load() != 1 {
		t.Errorf("%s, %d transfers", result, b.paid.Load())
	}
	calls := bodiesOf[journal.ToolCall](t, b.fixture)
	if last := calls[len(calls)-1]; last.Approval != a.ID || string(last.Args) != `{"amount":500}` {
		t.Errorf("%+v", last)
	}
	for _, d := range bodiesOf[journal.ApprovalDecided](t, b.fixture) {
		if d.Outcome == journal.ApprovalVoid {
			t.Errorf("the used approval is void: %+v", d)
		}
	}
	b.noRequestLeft(t)
}

// Edited arguments need the approval of each rule that selects them, and of each that selected
// the call.
func TestApproval_EditedAboveUnless(t *testing.T) {
	large := unless(t, approval.Rule{From: approval.Approvers{All: []approval.Quorum{{Role: "security"}}}}, `{"/amount": {"max": 1000}}`)
	always := approval.Rule{Tools: []string{"transfer"}, From: financeRule.From, Self: true}
	for _, tt := range []struct {
		call  int
		args  string
		first string // by the role that the call waited for
	}{{5, `{"amount": 5000}`, "vote"}, {5, `{"amount": 6}`, "approved"}} {
		b := newAmountBank(t, tt.call, always, large)
		task := b.begin(t)
		a := b.waiting(t, 1)[0]
		b.wantDecided(t, b.approvers["security bob"], approve(a.ID), "approval_not_found")
		b.wantDecided(t, b.approvers["finance ann"], edit(a.ID, tt.args), tt.first)
		if tt.first == "vote" {
			b.wantDecided(t, b.approvers["security bob"], approve(a.ID), "approved")
		}
		if result := string(b.wait(t, task).Result); !strings.Contains(result, strings.ReplaceAll(tt.args, " ", "")) || b.paid.Load() != 1 {
			t.Errorf("%s: %s", tt.args, result)
		}
		b.noRequestLeft(t)
	}
}

// Who started the task does not approve arguments that a rule without self selects, though the
// call itself was selected by rules with self alone.
func TestApproval_EditedAboveUnlessByStarter(t *testing.T) {
	large := unless(t, financeRule, `{"/amount": {"max": 1000}}`)
	always := approval.Rule{Tools: []string{"transfer"}, From: financeRule.From, Self: true}
	b := newAmountBank(t, 5, always, large)
	ann := identity.ByCaller("ann", b.clerk.ID)
	if code := b.invokeCode(t, ann, "transfer", obj{"amount": 5}); code != errcode.ApprovalRequired {
		t.Fatal(code)
	}
	a := b.waiting(t, 1)[0]
	b.wantDecided(t, b.approvers["finance ann"], edit(a.ID, `{"amount": 5000}`), "insufficient_permissions")
	b.wantDecided(t, b.approvers["finance ann"], edit(a.ID, `{"amount": 6}`), "approved")
}

// The call of a caller runs with the edited arguments, once. A call that is made with these
// arguments is another call, which leaves the approval alone.
func TestApproval_EditedForCallerBelowUnless(t *testing.T) {
	b := newAmountBank(t, 5, unless(t, financeRule, `{"/amount": {"max": 1000}}`))
	ann := identity.ByCaller("ann", b.clerk.ID)
	if code := b.invokeCode(t, ann, "transfer", obj{"amount": 5000}); code != errcode.ApprovalRequired {
		t.Fatal(code)
	}
	a := b.waiting(t, 1)[0]
	b.wantDecided(t, b.approvers["finance bob"], edit(a.ID, `{"amount":"much"}`), "invalid_arguments")
	b.wantDecided(t, b.approvers["finance bob"], edit(a.ID, `{"amount":500}`), "approved")
	for _, tt := range []struct {
		call     int
		approval string
	}{{500, ""}, {5000, a.ID}} {
		got := b.invoke(t, ann, "transfer", obj{"amount": tt.call})
		if !got.Allowed() || got.Approval() != tt.approval || string(got.Request.Args) != `{"amount":500}` {
			t.Errorf("call with %d: %s, approval %q, %s", tt.call, got.Result.JSON(), got.Approval(), got.Request.Args)
		}
	}
	b.noRequestLeft(t)
	if code := b.invokeCode(t, ann, "transfer", obj{"amount": 5000}); code != errcode.ApprovalRequired || b.paid.Load() != 2 {
		t.Errorf("%q, %d transfers", code, b.paid.Load())
	}
}

// A change of unless between the approval of edited arguments and their use makes the approval
// void, also after a restart. People are asked about the call of the agent, not about the edited
// arguments.
func TestApproval_EditedThenRulesChange(t *testing.T) {
	for _, restart := range []bool{false, true} {
		b := newAmountBank(t, 5000, unless(t, financeRule, `{"/amount": {"max": 1000}}`))
		task := b.begin(t)
		a := b.waiting(t, 1)[0]
		b.shutdown(t)
		b.open(t) // no process works on the task
		b.wantDecided(t, b.approvers["finance ann"], edit(a.ID, `{"amount":500}`), "approved")
		b.rule = unless(t, financeRule, `{"/amount": {"max": 100}}`)
		if restart {
			b.shutdown(t)
			b.open(t)
		} else {
			b.configure(t, b.rule)
		}
		b.resume(t, task)
		again := b.waiting(t, 1)[0]
		_, args, err := b.FindApprovalRequest(t.Context(), operator, again.ID)
		if err != nil || again.ID == a.ID || string(args.Asked) != `{"amount":5000}` || args.Edited != nil || b.paid.Load() != 0 {
			t.Fatalf("%+v, %s, %v", again, args.Asked, err)
		}
		b.wantDecided(t, b.approvers["finance ann"], approve(again.ID), "approved")
		b.wantResult(t, b.wait(t, task), `5000`, "")
		b.noRequestLeft(t)
	}
}

// A condition by the input of the task leaves out the calls with this value. A caller's own call
// has no task.
func TestApproval_UnlessInput(t *testing.T) {
	b := newAmountBank(t, 70, unless(t, financeRule, `{"/amount": {"input": "price"}}`))
	task := b.start(t, org.TaskSpec{Text: "pay", Role: "clerk", Input: json.RawMessage(`{"price": 70}`)})
	b.wantResult(t, b.wait(t, task), `70`, "")
	task = b.start(t, org.TaskSpec{Text: "pay", Role: "clerk", Input: json.RawMessage(`{"price": 71}`)})
	if err := b.CancelTask(t.Context(), b.waiting(t, 1)[0].Task, "enough"); err != nil || task == "" {
		t.Fatal(err)
	}
	if code := b.invokeCode(t, identity.ByCaller("ann", b.clerk.ID), "transfer", obj{"amount": 70}); code != errcode.ApprovalRequired {
		t.Error(code)
	}
}
