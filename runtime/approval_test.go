package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// bank is an organization whose clerks may transfer money when people have approved it.
type bank struct {
	*fixture
	dir       string
	paid      *atomic.Int64 // effects of transfer
	rule      approval.Rule
	model     model.Model
	approvers map[string]identity.Principal // by role and name
	clerk     org.Role
	now       func() time.Time // nil is time.Now
	oversight *approval.Oversight
	look      func(context.Context) // called by balance; nil is nothing
}

var bothRoles = approval.Approvers{All: []approval.Quorum{{Role: "finance"}, {Role: "security"}}}

// clerkModel transfers money, looks at the balance in the same answer, and ends with both results.
var clerkModel = answerFunc(func(r model.Request) model.Answer {
	if answerCount(r) == 0 {
		a := callTools("transfer", obj{"amount": 5}, "balance", obj{})
		a.Text = "The invoice of May is due."
		return a
	}
	end := model.Answer{Finish: model.FinishEnd}
	var list []json.RawMessage
	for _, result := range results(r) {
		list = append(list, result.Content)
	}
	end.Value = mustJSON(list)
	return end
})

func newBank(t *testing.T, rule approval.Rule) *bank { return newBankAt(t, rule, nil) }

// newBankAt is newBank with a clock.
func newBankAt(t *testing.T, rule approval.Rule, now func() time.Time) *bank {
	b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: rule, model: clerkModel, now: now}
	if b.rule.Tools == nil {
		b.rule.Tools = []string{"transfer"}
	}
	b.open(t)
	return b
}

// open opens the data directory as a new process.
func (b *bank) open(t *testing.T) {
	t.Helper()
	b.openWith(t, nil)
}

func (b *bank) openWith(t *testing.T, wrap func(journal.Store) journal.Store) {
	t.Helper()
	transfer, err := tool.New("transfer", "Transfer money.", func(_ context.Context, in struct {
		Amount int    `json:"amount"`
		Payee  string `json:"payee,omitempty"`
	}) (any, error) {
		b.paid.Add(1)
		return in.Amount, nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	balance := newTool(t, "balance", tool.Options{Effect: tool.ReadOnly}, func(ctx context.Context, _ obj) (any, error) {
		if b.look != nil {
			b.look(ctx)
		}
		return 100, nil
	})
	b.fixture = fixtureConfig{dir: b.dir, model: b.model, tools: []tool.Tool{transfer, balance}, wrapStore: wrap, configure: func(c *runtime.Config) { c.Now = b.now }}.open(t)
	b.configure(t, b.rule)
}

// configure applies the roles, of which that of the clerks has the rules.
func (b *bank) configure(t *testing.T, rules ...approval.Rule) {
	t.Helper()
	b.configureRoles(t, org.RoleSpec{Name: "clerk", Use: groupSet("probe"), Grant: groupSet(), Approval: rules})
}

// configureRoles applies a role and those of the approvers.
func (b *bank) configureRoles(t *testing.T, clerk org.RoleSpec) {
	t.Helper()
	none, roles := groupSet(), []org.RoleSpec{clerk}
	for _, name := range []string{"finance", "security", "oncall"} {
		roles = append(roles, org.RoleSpec{Name: name, Use: none, Grant: none})
	}
	all := toolgroups.AllGroups()
	if err := b.ApplyConfig(runtime.OrgConfig{Roles: roles, Default: &all, Grant: &all, Oversight: b.oversight}); err != nil {
		t.Fatal(err)
	}
	b.approvers = map[string]identity.Principal{}
	for _, name := range []string{"finance", "security", "oncall"} {
		role, _ := b.Org().RoleByName(name)
		for _, user := range []string{"ann", "bob", "eve"} {
			b.approvers[name+" "+user] = identity.ByCaller(identity.UserName(user), role.ID)
		}
	}
	b.clerk, _ = b.Org().RoleByName("clerk")
}

// waiting waits until n requests wait, and returns them.
func (b *bank) waiting(t *testing.T, n int) []runtime.Approval {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		changed := b.ApprovalsChanged()
		if list := b.ListApprovals(operator); len(list) == n {
			return list
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("%d requests wait, want %d\n%s", len(b.ListApprovals(operator)), n, b.eventLog(t))
		}
	}
}

// decide decides about a request and returns the outcome, or the code of the error.
func (b *bank) decide(t *testing.T, by identity.Principal, d runtime.ApprovalDecision) string {
	t.Helper()
	out, err := b.DecideApprovals(t.Context(), by, runtime.ApproverAuth{How: "test"}, []runtime.ApprovalDecision{d})
	if err != nil {
		t.Fatal(err)
	}
	if out[0].Err != nil {
		return string(errcode.CodeOf(out[0].Err))
	}
	return out[0].Outcome
}

func (b *bank) wantDecided(t *testing.T, by identity.Principal, d runtime.ApprovalDecision, want string) {
	t.Helper()
	if got := b.decide(t, by, d); got != want {
		t.Errorf("%s decides %+v: %s, want %s", by, d, got, want)
	}
}

func approve(id string) runtime.ApprovalDecision {
	return runtime.ApprovalDecision{ID: id, Approve: true}
}

func (b *bank) begin(t *testing.T) identity.TaskID {
	t.Helper()
	return b.start(t, org.TaskSpec{Text: "pay", Role: "clerk"})
}

// The call of an agent waits until a person of each role has approved it. The other calls of the
// answer go on, and the agent has no goroutine meanwhile.
func TestApproval_TwoRoles(t *testing.T) {
	b := newBank(t, approval.Rule{From: bothRoles})
	task := b.begin(t)
	b.waitEvent(t, func(e journal.Event) bool { r, ok := e.Body.(journal.ToolResult); return ok && r.Tool == "balance" })
	a := b.waiting(t, 1)[0]
	if a.Tool != "transfer" || a.Reason != "The invoice of May is due." || a.Task != task || b.paid.Load() != 0 {
		t.Errorf("%+v, %d transfers", a, b.paid.Load())
	}
	b.wantDecided(t, b.approvers["oncall eve"], approve(a.ID), "approval_not_found")
	b.wantDecided(t, b.approvers["finance ann"], approve(a.ID), "vote")
	b.wantDecided(t, b.approvers["finance ann"], approve(a.ID), "conflict")
	b.wantDecided(t, b.approvers["security ann"], approve(a.ID), "conflict") // one person has one vote, in whatever role
	b.wantDecided(t, b.approvers["security bob"], approve(a.ID), "approved")
	b.wantResult(t, b.wait(t, task), `[100,5]`, "")
	b.wantDecided(t, b.approvers["security bob"], approve(a.ID), "approval_not_found")
	if n := b.paid.Load(); n != 1 {
		t.Errorf("%d transfers", n)
	}
	calls := bodiesOf[journal.ToolCall](t, b.fixture)
	if last := calls[len(calls)-1]; last.Approval != a.ID || last.Decision != journal.Allowed {
		t.Errorf("the call does not name its approval: %+v", last)
	}
}

// financeRule asks one person of finance.
var financeRule = approval.Rule{From: approval.Approvers{Any: []approval.Quorum{{Role: "finance"}}}}

func deny(id, reason string) runtime.ApprovalDecision {
	return runtime.ApprovalDecision{ID: id, Reason: reason}
}

// wantDenied requires that a task ended with a transfer that failed with this code and text.
func (b *bank) wantDenied(t *testing.T, task identity.TaskID, code errcode.Code, text string) {
	t.Helper()
	ended := b.wait(t, task)
	result := string(ended.Result)
	if !strings.Contains(result, `"error":"`+string(code)+`"`) || !strings.Contains(result, text) || b.paid.Load() != 0 {
		t.Errorf("%s: %s %v, %d transfers; want %s, %q", ended.Status, result, ended.Error, b.paid.Load(), code, text)
	}
	if list := b.ListApprovals(operator); len(list) > 0 {
		t.Errorf("still waiting: %+v", list)
	}
}

// The reason of a denial reaches the agent. The first decision wins.
func TestApproval_Denied(t *testing.T) {
	b := newBank(t, financeRule)
	task := b.begin(t)
	a := b.waiting(t, 1)[0]
	b.wantDecided(t, b.approvers["security bob"], deny(a.ID, "mine"), "approval_not_found")
	b.wantDecided(t, b.approvers["finance bob"], deny(a.ID, "the invoice is a copy"), "denied")
	b.wantDecided(t, b.approvers["finance ann"], approve(a.ID), "approval_not_found")
	b.wantDenied(t, task, errcode.ApprovalDenied, "the invoice is a copy")
}

// A call that no person decides about is denied at its deadline, also after a restart.
func TestApproval_Deadline(t *testing.T) {
	for _, restart := range []bool{false, true} {
		b := newBank(t, approval.Rule{From: financeRule.From, Deadline: 50 * time.Millisecond})
		task := b.begin(t)
		b.waitEvent(t, func(e journal.Event) bool { _, asked := e.Body.(journal.ApprovalRequested); return asked })
		if restart {
			b.shutdown(t)
			b.open(t)
			b.resume(t, task)
		}
		b.wantDenied(t, task, errcode.ApprovalDenied, `"reason":"deadline"`)
	}
}

// A request that waits for long escalates once, also after a restart. The people of the other
// role then see it.
func TestApproval_Escalates(t *testing.T) {
	for _, restart := range []bool{false, true} {
		rule := approval.Rule{From: bothRoles, Escalate: &approval.Escalation{After: 50 * time.Millisecond, To: approval.Quorum{Role: "oncall"}}}
		b := newBank(t, rule)
		task := b.begin(t)
		isEscalated := func(e journal.Event) bool { _, is := e.Body.(journal.ApprovalEscalated); return is }
		if restart {
			b.waiting(t, 1)
			b.shutdown(t)
			b.open(t)
			b.resume(t, task)
		}
		b.waitEvent(t, isEscalated)
		if l := b.CurrentLoad(); l.WaitingApprovals != 1 || l.OldestApproval < 50*time.Millisecond {
			t.Errorf("%d wait, the oldest for %s", l.WaitingApprovals, l.OldestApproval)
		}
		if restart {
			b.shutdown(t)
			b.open(t)
			b.resume(t, task)
		}
		b.wantDecided(t, b.approvers["oncall eve"], approve(b.waiting(t, 1)[0].ID), "approved")
		b.wantResult(t, b.wait(t, task), `[100,5]`, "")
		list := bodiesOf[journal.ApprovalEscalated](t, b.fixture)
		if len(list) != 1 || list[0].To != "oncall" || list[0].Tool != "transfer" || list[0].Digest == "" {
			t.Errorf("%+v", list)
		}
	}
}

// The person who started a task may not approve its calls, in whatever role, unless the rule
// says so.
func TestApproval_OwnTask(t *testing.T) {
	for _, self := range []bool{false, true} {
		rule := approval.Rule{From: approval.Approvers{Any: []approval.Quorum{{Role: "finance"}, {Operator: true}}}, Self: self}
		b := newBank(t, rule)
		id := b.start(t, org.TaskSpec{Text: "pay", Role: "clerk"})
		a := b.waiting(t, 1)[0]
		if refusal := b.ApproverRefusal(operator, &a); (refusal == "") != self {
			t.Errorf("self %v: the refusal is %q", self, refusal)
		}
		want := map[bool]string{false: "insufficient_permissions", true: "approved"}[self]
		b.wantDecided(t, operator, approve(a.ID), want)
		if !self {
			b.wantDecided(t, operator, runtime.ApprovalDecision{ID: a.ID, Approve: true, Override: true}, "insufficient_permissions")
			b.wantDecided(t, b.approvers["finance ann"], runtime.ApprovalDecision{ID: a.ID, Approve: true, Override: true, Reason: "r"}, "insufficient_permissions")
			b.wantDecided(t, operator, runtime.ApprovalDecision{ID: a.ID, Approve: true, Override: true, Reason: "nobody of finance is here"}, "approved")
		}
		b.wantResult(t, b.wait(t, id), `[100,5]`, "")
	}
}

// A caller's call waits, too: the same call is made again when it is approved, and uses the
// approval. Who calls may not approve.
func TestApproval_Caller(t *testing.T) {
	b := newBank(t, financeRule)
	ann := identity.ByCaller("ann", b.clerk.ID)
	first := b.invoke(t, ann, "transfer", obj{"amount": 7})
	if first.Allowed() || first.Code() != errcode.ApprovalRequired {
		t.Fatalf("%s", first.Result.JSON())
	}
	if again := b.invoke(t, ann, "transfer", json.RawMessage(`{ "amount":  7}`)); again.Approval() != first.Approval() {
		t.Error("the same call is asked about twice")
	}
	a := b.waiting(t, 1)[0]
	b.wantDecided(t, b.approvers["finance ann"], approve(a.ID), "insufficient_permissions")
	b.wantDecided(t, b.approvers["finance bob"], approve(a.ID), "approved")
	if code := b.invokeCode(t, identity.ByCaller("eve", b.clerk.ID), "transfer", obj{"amount": 7}); code != errcode.ApprovalRequired {
		t.Errorf("another caller: %q", code)
	}
	if code := b.invokeCode(t, ann, "transfer", obj{"amount": 8}); code != errcode.ApprovalRequired {
		t.Errorf("other arguments: %q", code)
	}
	for _, want := range []errcode.Code{"", errcode.ApprovalRequired} {
		if code := b.invokeCode(t, ann, "transfer", obj{"amount": 7}); code != want {
			t.Errorf("%q, want %q", code, want)
		}
	}
	if n := b.paid.Load(); n != 1 {
		t.Errorf("%d transfers", n)
	}
}

// Edited arguments pass the gate again, take the place of those of the call, and are told to the
// agent. Votes for other arguments do not count.
func TestApproval_EditedArguments(t *testing.T) {
	b := newBank(t, approval.Rule{From: bothRoles})
	task := b.begin(t)
	a := b.waiting(t, 1)[0]
	edit := func(args string) runtime.ApprovalDecision {
		return runtime.ApprovalDecision{ID: a.ID, Approve: true, Args: json.RawMessage(args)}
	}
	b.wantDecided(t, b.approvers["security bob"], approve(a.ID), "vote")
	for _, args := range []string{`{"amount":"much"}`, `{"amount":1`, `{"sum":1}`, `[]`} {
		b.wantDecided(t, b.approvers["finance ann"], edit(args), "invalid_arguments")
	}
	b.wantDecided(t, b.approvers["finance ann"], edit(`{"amount": 3}`), "vote")
	seen := approve(a.ID)
	seen.Digest = a.Digest
	b.wantDecided(t, b.approvers["security bob"], seen, "conflict") // it saw other arguments
	b.wantDecided(t, b.approvers["security bob"], approve(a.ID), "approved")
	result := string(b.wait(t, task).Result)
	if !strings.Contains(result, `"result":3`) || !strings.Contains(result, `"approvedArguments":{"amount":3}`) || b.paid.Load() != 1 {
		t.Errorf("%s", result)
	}
}

// A change of the role or of the rules makes an approval void: people are asked again.
func TestApproval_ChangedMeanwhile(t *testing.T) {
	t.Run("rule changed", func(t *testing.T) {
		b := newBank(t, financeRule)
		task := b.begin(t)
		a := b.waiting(t, 1)[0]
		b.configure(t, b.rule, approval.Rule{Effect: "mutating", From: approval.Approvers{All: []approval.Quorum{{Role: "security"}}}})
		b.wantDecided(t, b.approvers["finance bob"], approve(a.ID), "approved")
		again := b.waiting(t, 1)[0]
		if again.ID == a.ID || b.paid.Load() != 0 {
			t.Fatalf("%+v", again)
		}
		b.wantDecided(t, b.approvers["finance bob"], approve(again.ID), "vote")
		b.wantDecided(t, b.approvers["security eve"], approve(again.ID), "approved")
		b.wantResult(t, b.wait(t, task), `[100,5]`, "")
	})
}

// The vote of a person whose role is gone does not count when another person decides.
func TestApproval_RemovedApprover(t *testing.T) {
	b := newBank(t, approval.Rule{From: bothRoles})
	b.begin(t)
	a := b.waiting(t, 1)[0]
	b.wantDecided(t, b.approvers["finance ann"], approve(a.ID), "vote")
	role, _ := b.Org().RoleByName("finance")
	if _, _, err := b.PauseRole(operator, role.ID, ""); err != nil {
		t.Fatal(err)
	}
	b.wantDecided(t, b.approvers["finance bob"], approve(a.ID), "approval_not_found")
	b.wantDecided(t, b.approvers["security bob"], approve(a.ID), "vote")
	if b.paid.Load() != 0 {
		t.Error("the vote of a suspended role counts")
	}
}

// After a time the people of another role may approve alone, and not before.
func TestApproval_Escalation(t *testing.T) {
	rule := approval.Rule{From: bothRoles, Escalate: &approval.Escalation{After: 30 * time.Minute, To: approval.Quorum{Role: "oncall"}}}
	now := new(atomic.Int64)
	now.Store(time.Now().UnixNano())
	b := newBankAt(t, rule, func() time.Time { return time.Unix(0, now.Load()) })
	task := b.begin(t)
	a := b.waiting(t, 1)[0]
	b.wantDecided(t, b.approvers["oncall eve"], approve(a.ID), "approval_not_found")
	now.Add(int64(31 * time.Minute))
	b.wantDecided(t, b.approvers["oncall eve"], approve(a.ID), "approved")
	b.wantResult(t, b.wait(t, task), `[100,5]`, "")
}

// newBankBelow returns a bank whose clerk lets the agent of a role that it creates transfer money.
func newBankBelow(t *testing.T) *bank {
	b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: financeRule}
	b.rule.Tools = []string{"transfer"}
	b.model = answerFunc(func(r model.Request) model.Answer {
		if first := messages(r)[0]; first.From == runtime.User {
			return delegate(r, "helper", "probe")
		}
		return clerkModel(r)
	})
	b.open(t)
	all := toolgroups.SetOf("probe", toolgroups.OrgManagement)
	b.configureRoles(t, org.RoleSpec{Name: "clerk", Use: &all, Grant: &all, Approval: []approval.Rule{b.rule}})
	return b
}

// The agents of a role created below have the rules of their creators, whatever their own role
// says, and so do the agents of the tasks of a caller.
func TestApproval_Inherited(t *testing.T) {
	b := newBankBelow(t)
	task := b.begin(t)
	a := b.waiting(t, 1)[0]
	if a.Role != "helper" {
		t.Errorf("%+v", a)
	}
	b.wantDecided(t, b.approvers["finance ann"], approve(a.ID), "approved")
	b.wait(t, task)
	if b.paid.Load() != 1 {
		t.Errorf("%d transfers\n%s", b.paid.Load(), b.eventLog(t))
	}
}

// The requests of a task that was cancelled, and those of a terminated agent, are void. A retry
// asks again.
func TestApproval_TaskEnded(t *testing.T) {
	b := newBank(t, financeRule)
	task := b.begin(t)
	a := b.waiting(t, 1)[0]
	if err := b.CancelTask(t.Context(), task, "enough"); err != nil {
		t.Fatal(err)
	}
	b.waiting(t, 0)
	b.wantDecided(t, b.approvers["finance ann"], approve(a.ID), "approval_not_found")
	if err := b.RetryTask(t.Context(), task, operator, org.ModelAllowance{}); err != nil {
		t.Fatal(err)
	}
	again := b.waiting(t, 1)[0]
	if again.ID == a.ID {
		t.Fatal("the old request is used")
	}
	b.wantDecided(t, b.approvers["finance ann"], approve(again.ID), "approved")
	b.wantResult(t, b.wait(t, task), `[100,5]`, "")
}

// One hundred requests are decided in one commit, with an outcome each.
func TestApproval_Batch(t *testing.T) {
	b := newBank(t, financeRule)
	var tasks []identity.TaskID
	for range 100 {
		tasks = append(tasks, b.begin(t))
	}
	var list []runtime.ApprovalDecision
	for _, a := range b.waiting(t, 100) {
		list = append(list, approve(a.ID))
	}
	list = append(list, approve("unknown"), list[0])
	before := b.store.LastSeq()
	out, err := b.DecideApprovals(t.Context(), b.approvers["finance ann"], runtime.ApproverAuth{How: "test"}, list)
	if err != nil {
		t.Fatal(err)
	}
	for i, o := range out {
		if want := map[bool]string{true: "approved"}[i < 100]; o.Outcome != want || (o.Err != nil) != (i >= 100) {
			t.Errorf("decision %d: %+v", i, o)
		}
	}
	for _, id := range tasks {
		b.wantResult(t, b.wait(t, id), `[100,5]`, "")
	}
	decided := eventsOf[journal.ApprovalDecided](t, b.fixture)
	if first := decided[0].Seq; len(decided) != 100 || decided[99].Seq != first+99 || first <= before {
		t.Errorf("%d decisions in more than one commit", len(decided))
	}
	if n := b.paid.Load(); n != 100 {
		t.Errorf("%d transfers", n)
	}
}
