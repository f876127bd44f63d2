package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// payments is a model that transfers the amounts of each list in one answer. An amount above 1000 is
// 1000 less, to another payee.
func payments(answers ...[]int) model.Model {
	return answerFunc(func(r model.Request) model.Answer {
		n := answerCount(r)
		if n >= len(answers) {
			return model.Answer{Finish: model.FinishEnd, Text: "paid"}
		}
		var calls []any
		for _, amount := range answers[n] {
			payee := "acme"
			if amount > 1000 {
				amount, payee = amount-1000, "other"
			}
			calls = append(calls, "transfer", obj{"amount": amount, "payee": payee})
		}
		return callTools(calls...)
	})
}

func newPayments(t *testing.T, rule approval.Rule, answers ...[]int) *bank {
	rule.Tools = []string{"transfer"}
	b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: rule, model: payments(answers...)}
	b.open(t)
	return b
}

// withPattern approves a request and further calls with an amount of at most most.
func withPattern(id string, most, uses int) runtime.ApprovalDecision {
	d := approve(id)
	d.Pattern = &approval.Pattern{Args: atMost(most), Uses: uses}
	return d
}

func atMost(most int) bounds.Rule {
	r, err := bounds.ParseRule(fmt.Appendf(nil, `{"/amount": {"max": %d}}`, most))
	if err != nil {
		panic(err)
	}
	return r
}

// amountOf returns the amount of the call of a request.
func (b *bank) amountOf(t *testing.T, a runtime.Approval) int {
	t.Helper()
	_, args, err := b.FindApprovalRequest(t.Context(), operator, a.ID)
	var call struct {
		Amount int    `json:"amount"`
		Payee  string `json:"payee"`
	}
	if err == nil {
		err = json.Unmarshal(args.Asked, &call)
	}
	if err != nil {
		t.Fatal(err)
	}
	if call.Payee == "other" {
		call.Amount += 1000
	}
	return call.Amount
}

// wantWaiting waits until one request waits, and requires the amount of its call.
func (b *bank) wantWaiting(t *testing.T, amount int) string {
	t.Helper()
	a := b.waiting(t, 1)[0]
	if got := b.amountOf(t, a); got != amount {
		t.Fatalf("the transfer of %d waits, want %d\n%s", got, amount, b.eventLog(t))
	}
	return a.ID
}

// A pattern lets further calls of the task run, up to its number of uses, also those of one answer.
// Other amounts and other payees wait.
func TestStanding_CoversCalls(t *testing.T) {
	b := newPayments(t, financeRule, []int{5}, []int{7, 1003}, []int{11}, []int{4, 3, 2})
	ann := b.approvers["finance ann"]
	task := b.begin(t)
	b.wantDecided(t, ann, withPattern(b.wantWaiting(t, 5), 10, 3), "approved")
	b.wantDecided(t, ann, approve(b.wantWaiting(t, 1003)), "approved")
	b.wantDecided(t, ann, approve(b.wantWaiting(t, 11)), "approved")
	b.wantDecided(t, ann, approve(b.wantWaiting(t, 2)), "approved")
	b.wait(t, task)
	if n := b.paid.Load(); n != 7 {
		t.Errorf("%d transfers", n)
	}
	given := bodiesOf[journal.ApprovalDecided](t, b.fixture)[0]
	ended := bodiesOf[journal.PatternEnded](t, b.fixture)
	if len(ended) != 1 || ended[0].Standing != given.Standing || ended[0].Outcome != "used" || ended[0].Used != 3 || given.Pattern == nil {
		t.Errorf("%+v, %+v", given, ended)
	}
	b.noStandingLeft(t)
}

func (b *bank) noStandingLeft(t *testing.T) {
	t.Helper()
	for r, err := range b.store.ReadRecords(t.Context(), "standingApproval", "") {
		t.Errorf("record left: %s, %v", r.Key, err)
	}
}

// A pattern needs the votes of all approvers for the same one. Else this call only is approved.
func TestStanding_TwoRoles(t *testing.T) {
	for _, same := range []bool{true, false} {
		b := newPayments(t, approval.Rule{From: bothRoles}, []int{5}, []int{6})
		task := b.begin(t)
		id := b.wantWaiting(t, 5)
		second := withPattern(id, 10, 2)
		if !same {
			second.Pattern.Uses = 3
		}
		b.wantDecided(t, b.approvers["finance ann"], withPattern(id, 10, 2), "vote")
		if len(b.ListStanding(operator)) != 0 {
			t.Error("one vote is enough")
		}
		b.wantDecided(t, b.approvers["security bob"], second, "approved")
		if same {
			b.wait(t, task)
		} else {
			b.wantWaiting(t, 6)
		}
		b.shutdown(t)
	}
}

// A standing approval ends when it is revoked, when an approver may not approve any more, when the
// rule or the role changes, and with its time. The next call waits.
func TestStanding_Ends(t *testing.T) {
	now := new(atomic.Int64)
	now.Store(time.Now().UnixNano())
	for name, end := range map[string]func(t *testing.T, b *bank){
		"revoked": func(t *testing.T, b *bank) {
			id := b.ListStanding(operator)[0].ID
			if err := b.RevokeStanding(runtime.Requester{By: b.approvers["security bob"]}, id, ""); err == nil {
				t.Error("a person who is no approver has revoked it")
			}
			if err := b.RevokeStanding(runtime.Requester{By: b.approvers["finance bob"], Auth: "test"}, id, "enough"); err != nil {
				t.Error(err)
			}
			b.noStandingLeft(t)
		},
		"approver paused": func(t *testing.T, b *bank) {
			role, _ := b.Org().RoleByName("finance")
			if _, _, err := b.PauseRole(operator, role.ID, ""); err != nil {
				t.Fatal(err)
			}
		},
		"another rule": func(t *testing.T, b *bank) {
			b.configure(t, b.rule, approval.Rule{Effect: "mutating", From: approval.Approvers{All: []approval.Quorum{{Role: "security"}}}})
		},
		"tool lost and back": func(t *testing.T, b *bank) {
			b.configureRoles(t, org.RoleSpec{Name: "clerk", Use: groupSet(), Grant: groupSet(), Approval: []approval.Rule{b.rule}})
			b.noStandingLeft(t)
			b.configure(t, b.rule)
		},
		"time over": func(t *testing.T, b *bank) { now.Add(int64(31 * time.Minute)) },
	} {
		t.Run(name, func(t *testing.T) {
			hold := make(chan struct{})
			b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: approval.Rule{Tools: []string{"transfer"}, From: financeRule.From}, now: func() time.Time { return time.Unix(0, now.Load()) }}
			pays := payments([]int{5}, []int{6}, []int{7}).(answerFunc)
			b.model = answerFunc(func(r model.Request) model.Answer {
				if answerCount(r) == 2 {
					<-hold
				}
				return pays(r)
			})
			b.open(t)
			b.begin(t)
			d := withPattern(b.wantWaiting(t, 5), 10, 0)
			d.Pattern.For = 30 * time.Minute
			b.wantDecided(t, b.approvers["finance ann"], d, "approved")
			b.waitEvent(t, func(e journal.Event) bool { r, ok := e.Body.(journal.ToolResult); return ok && string(r.Result) == "6" })
			end(t, b)
			if list := b.ListStanding(operator); name != "another rule" && len(list) != 0 {
				t.Errorf("it is listed: %+v", list)
			}
			close(hold)
			b.wantWaiting(t, 7)
			if n := b.paid.Load(); n != 2 {
				t.Errorf("%d transfers", n)
			}
			b.shutdown(t)
		})
	}
}

// Patterns whose time is over take no room for others, and are recorded as expired.
func TestStanding_TimeOverMakesRoom(t *testing.T) {
	const most = 20 // of a task
	now := new(atomic.Int64)
	now.Store(time.Now().UnixNano())
	var amounts [][]int
	for n := range most + 1 {
		amounts = append(amounts, []int{n + 1})
	}
	b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: approval.Rule{Tools: []string{"transfer"}, From: financeRule.From}, model: payments(amounts...), now: func() time.Time { return time.Unix(0, now.Load()) }}
	b.open(t)
	b.begin(t)
	ann := b.approvers["finance ann"]
	pattern := func(amount int) runtime.ApprovalDecision {
		d := withPattern(b.wantWaiting(t, amount), amount, 0)
		d.Pattern.For = 30 * time.Minute
		return d
	}
	for n := range most {
		b.wantDecided(t, ann, pattern(n+1), "approved")
	}
	last := pattern(most + 1)
	out, err := b.DecideApprovals(t.Context(), ann, runtime.ApproverAuth{How: "test"}, []runtime.ApprovalDecision{last})
	if err != nil || errcode.CodeOf(out[0].Err) != errcode.LimitExceeded {
		t.Fatalf("one more than a task may have: %+v, %v", out, err)
	}
	now.Add(int64(31 * time.Minute))
	b.wantDecided(t, ann, last, "approved")
	expired := slices.DeleteFunc(bodiesOf[journal.PatternEnded](t, b.fixture), func(e journal.PatternEnded) bool {
		return e.Outcome != journal.ApprovalExpired // the last one ends with the task
	})
	if len(expired) != most {
		t.Errorf("%d have expired, want %d: %+v", len(expired), most, expired)
	}
	b.shutdown(t)
}

// The approval of a pattern is rejected as a whole in some cases. The pattern has no end, does
// not cover the call, or names what the tool lacks. Or the approval comes with other arguments
// or an override.
func TestStanding_RejectsPatterns(t *testing.T) {
	b := newPayments(t, financeRule, []int{5})
	b.begin(t)
	id := b.wantWaiting(t, 5)
	sum, _ := bounds.ParseRule([]byte(`{"/sum": {"max": 10}}`))
	missing, _ := bounds.ParseRule([]byte(`{"/amount": {"max": 10, "missing": "allow"}}`))
	input, _ := bounds.ParseRule([]byte(`{"/amount": {"input": "amount"}}`))
	for name, change := range map[string]func(d *runtime.ApprovalDecision){
		"no end":           func(d *runtime.ApprovalDecision) { d.Pattern.Uses = 0 },
		"too many uses":    func(d *runtime.ApprovalDecision) { d.Pattern.Uses = 1001 },
		"too long":         func(d *runtime.ApprovalDecision) { d.Pattern.For = 31 * 24 * time.Hour },
		"other call":       func(d *runtime.ApprovalDecision) { d.Pattern.Args = atMost(4) },
		"unknown argument": func(d *runtime.ApprovalDecision) { d.Pattern.Args = sum },
		"missing allowed":  func(d *runtime.ApprovalDecision) { d.Pattern.Args = missing },
		"input of a task":  func(d *runtime.ApprovalDecision) { d.Pattern.Args = input },
		"no conditions":    func(d *runtime.ApprovalDecision) { d.Pattern.Args = bounds.Rule{} },
		"edited":           func(d *runtime.ApprovalDecision) { d.Args = json.RawMessage(`{"amount": 3}`) },
		"denial":           func(d *runtime.ApprovalDecision) { d.Approve = false },
		"override":         func(d *runtime.ApprovalDecision) { d.Override, d.Reason = true, "r" },
	} {
		d, by := withPattern(id, 10, 1), b.approvers["finance ann"]
		if change(&d); name == "override" {
			by = operator
		}
		if got := b.decide(t, by, d); got != "invalid_arguments" {
			t.Errorf("%s: %s", name, got)
		}
	}
	ann := identity.ByCaller("ann", b.clerk.ID)
	call := b.invoke(t, ann, "transfer", obj{"amount": 7})
	b.wantDecided(t, b.approvers["finance bob"], withPattern(call.Approval(), 10, 1), "invalid_arguments") // it has no task
	if b.paid.Load() != 0 || len(b.ListStanding(operator)) != 0 {
		t.Error("a rejected pattern has approved something")
	}
}

// The process may die before or after any commit: no more calls run than were approved.
func TestStanding_DiesAtEachCommit(t *testing.T) {
	for at := int64(1); at <= int64(short.Count(8, 16)); at++ {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("commit %d, after %v", at, after), func(t *testing.T) {
				b := newPayments(t, financeRule, []int{5}, []int{6, 7}, []int{8, 9}, []int{3})
				task := b.begin(t)
				id := b.wantWaiting(t, 5)
				b.shutdown(t)
				dying := &dyingStore{after: after, died: make(chan struct{})}
				dying.left.Store(at + 2)
				b.openWith(t, func(s journal.Store) journal.Store { dying.Store = s; return dying })
				_ = b.ResumeTask(t.Context(), task)
				d := []runtime.ApprovalDecision{withPattern(id, 10, 3)}
				_, _ = b.DecideApprovals(t.Context(), b.approvers["finance ann"], runtime.ApproverAuth{How: "test"}, d)
				b.stopAtRequest(t, task, dying.died) // there may be fewer commits
				b.shutdown(t)
				b.open(t)
				b.resume(t, task)
				b.stopAtRequest(t, task, nil)
				if n := b.paid.Load(); n > 4 {
					t.Errorf("%d transfers\n%s", n, b.eventLog(t))
				}
				b.checkUses(t)
				b.shutdown(t)
			})
		}
	}
}

// stopAtRequest waits until a request waits, or the task has ended, or the process has died.
func (b *bank) stopAtRequest(t *testing.T, task identity.TaskID, died <-chan struct{}) {
	ended := make(chan struct{})
	wait := b.WaitTask
	go func() { defer close(ended); _, _ = wait(t.Context(), task) }()
	for {
		changed := b.ApprovalsChanged()
		if len(b.ListApprovals(operator)) > 0 {
			return
		}
		select {
		case <-changed:
		case <-ended:
			return
		case <-died:
			return
		case <-time.After(time.Minute):
			t.Fatalf("nothing happens\n%s", b.eventLog(t))
		}
	}
}

// checkUses checks each transfer in the record. Either its request was approved before and used by
// no other call. Or its standing approval was given before, has not ended, and allows the transfer.
func (b *bank) checkUses(t *testing.T) {
	t.Helper()
	left := map[string]int{}
	for _, e := range b.events(t) {
		switch body := e.Body.(type) {
		case journal.ApprovalDecided:
			if body.Outcome == journal.ApprovalGiven {
				left[body.Approval] = 1
			}
			if body.Standing != "" {
				var p approval.Pattern
				if json.Unmarshal(body.Pattern, &p) != nil || p.Uses == 0 {
					t.Errorf("unreadable pattern %s", body.Pattern)
				}
				left[body.Standing] = p.Uses
			}
		case journal.PatternEnded:
			if body.Outcome == journal.ApprovalUsed && left[body.Standing] > 1 { // its last use is in the same commit, later
				t.Errorf("used up with %d uses left", left[body.Standing])
			}
			if body.Outcome != journal.ApprovalUsed {
				delete(left, body.Standing)
			}
		case journal.ToolCall:
			if body.Tool != "transfer" || body.Decision != journal.Allowed {
				continue
			}
			if left[body.Approval]--; left[body.Approval] < 0 {
				t.Errorf("a transfer without an approval: %+v", body)
			}
		}
	}
}

// In random histories of answers, votes, patterns, revocations and restarts exactly those calls run
// that a naive model lets run.
func TestStanding_NaiveModel(t *testing.T) {
	for seed := range uint64(short.Count(12, 300)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { standingHistory(t, rand.New(rand.NewPCG(seed, 7))) })
	}
}

// naivePattern is a standing approval of the naive model.
type naivePattern struct{ most, left int }

func standingHistory(t *testing.T, random *rand.Rand) {
	var answers [][]int
	for range 4 {
		answer := make([]int, 1+random.IntN(3))
		for i := range answer {
			answer[i] = 1 + random.IntN(9) + 1000*random.IntN(2)*random.IntN(2)
		}
		answers = append(answers, answer)
	}
	b := newPayments(t, financeRule, answers...)
	task := b.begin(t)
	var patterns []*naivePattern
	paid := int64(0)
	for _, answer := range answers {
		waiting := 0
		for _, amount := range answer {
			if useNaive(patterns, amount) {
				paid++
			} else {
				waiting++
			}
		}
		for ; waiting > 0; waiting-- {
			a := b.waiting(t, waiting)[0]
			if random.IntN(4) == 0 {
				b.waitPaid(t, paid) // a call on its way would be interrupted
				b.shutdown(t)
				b.open(t)
				b.resume(t, task)
			}
			amount := b.amountOf(t, a)
			switch most := 1 + random.IntN(9); {
			case random.IntN(5) == 0:
				b.wantDecided(t, b.approvers["finance ann"], deny(a.ID, "no"), "denied")
				continue
			case amount <= most && random.IntN(2) == 0:
				p := &naivePattern{most, 1 + random.IntN(3)}
				b.wantDecided(t, b.approvers["finance ann"], withPattern(a.ID, p.most, p.left), "approved")
				patterns = append(patterns, p)
			default:
				b.wantDecided(t, b.approvers["finance ann"], approve(a.ID), "approved")
			}
			paid++
		}
	}
	b.wait(t, task)
	if n := b.paid.Load(); n != paid {
		t.Errorf("answers %v: %d transfers, want %d\n%s", answers, n, paid, b.eventLog(t))
	}
	b.checkUses(t)
	b.noStandingLeft(t)
	b.shutdown(t)
}

// waitPaid waits for the results of n transfers.
func (b *bank) waitPaid(t *testing.T, n int64) {
	t.Helper()
	if n == 0 {
		return
	}
	b.waitEvent(t, func(e journal.Event) bool {
		if r, ok := e.Body.(journal.ToolResult); ok && r.Tool == "transfer" {
			n--
		}
		return n == 0
	})
}

// useNaive uses the first pattern that covers an amount.
func useNaive(patterns []*naivePattern, amount int) bool {
	for _, p := range patterns {
		if p.left > 0 && amount <= p.most {
			p.left--
			return true
		}
	}
	return false
}

// While people approve patterns and revoke them at once, no more calls run than were approved.
func TestStanding_ConcurrentHistories(t *testing.T) {
	amounts := make([][]int, short.Count(20, 200))
	for i := range amounts {
		amounts[i] = []int{1, 2, 3}
	}
	b := newPayments(t, financeRule, amounts...)
	task := b.begin(t)
	done := make(chan struct{})
	var wg sync.WaitGroup
	for worker := range 4 {
		wg.Go(func() {
			random := rand.New(rand.NewPCG(uint64(worker), 3))
			for {
				changed := b.ApprovalsChanged()
				for _, a := range b.ListApprovals(operator) {
					d := []runtime.ApprovalDecision{withPattern(a.ID, 3, 1+random.IntN(4))}
					_, _ = b.DecideApprovals(t.Context(), b.approvers["finance ann"], runtime.ApproverAuth{How: "test"}, d)
				}
				for _, s := range b.ListStanding(operator) {
					if random.IntN(3) == 0 {
						_ = b.RevokeStanding(runtime.Requester{By: operator}, s.ID, "")
					}
				}
				select {
				case <-changed:
				case <-done:
					return
				}
			}
		})
	}
	b.wait(t, task)
	close(done)
	wg.Wait()
	if n := b.paid.Load(); n != int64(3*len(amounts)) {
		t.Errorf("%d transfers", n)
	}
	b.checkUses(t)
}

// A standing approval ends with its task.
func TestStanding_EndsWithTask(t *testing.T) {
	b := newPayments(t, financeRule, []int{5}, []int{6})
	task := b.begin(t)
	b.wantDecided(t, b.approvers["finance ann"], withPattern(b.wantWaiting(t, 5), 10, 5), "approved")
	b.wait(t, task)
	b.wantStandingVoid(t)
}

// A pause keeps a standing approval. A retry ends it.
func TestStanding_EndsWithRetry(t *testing.T) {
	b := newPayments(t, financeRule, []int{5}, []int{6}, []int{7})
	task := b.start(t, org.TaskSpec{Text: "pay", Role: "clerk", Budget: org.ModelAllowance{Calls: 2}})
	b.wantDecided(t, b.approvers["finance ann"], withPattern(b.wantWaiting(t, 5), 10, 5), "approved")
	b.waitEvent(t, func(e journal.Event) bool { _, paused := e.Body.(journal.TaskPaused); return paused })
	if len(b.ListStanding(operator)) != 1 {
		t.Error("the pause has ended it")
	}
	if err := b.RetryTask(t.Context(), task, operator, org.ModelAllowance{Calls: 5}); err != nil {
		t.Fatal(err)
	}
	b.wantStandingVoid(t)
	b.wantWaiting(t, 7)
}

// wantStandingVoid requires that the only standing approval was used once and has ended with its task.
func (b *bank) wantStandingVoid(t *testing.T) {
	t.Helper()
	b.noStandingLeft(t)
	if ended := bodiesOf[journal.PatternEnded](t, b.fixture); len(ended) != 1 || ended[0].Outcome != "void" || ended[0].Used != 1 {
		t.Errorf("%+v", ended)
	}
}

// endingStore calls end before the commit that starts a call by a standing approval.
type endingStore struct {
	journal.Store
	except string // the request of the call that people are asked about
	end    func(id string) error
}

// Commit implements journal.Log.
func (s *endingStore) Commit(ctx context.Context, b *journal.Batch) (uint64, error) {
	for _, e := range b.Events {
		call, ok := e.Body.(journal.ToolCall)
		if !ok || call.Approval == "" || call.Approval == s.except {
			continue
		}
		if err := s.end(call.Approval); err != nil {
			return 0, err
		}
	}
	return s.Store.Commit(ctx, b)
}

// A standing approval that ends between the decision about a call and its start lets the call wait.
func TestStanding_EndsAfterDecision(t *testing.T) {
	now := new(atomic.Int64)
	now.Store(time.Now().UnixNano())
	for name, end := range map[string]func(b *bank, id string) error{
		"revoked": func(b *bank, id string) error {
			return b.RevokeStanding(runtime.Requester{By: operator}, id, "")
		},
		"time over": func(*bank, string) error { now.Add(int64(31 * time.Minute)); return nil },
	} {
		t.Run(name, func(t *testing.T) {
			b := &bank{
				dir: fastTempDir(t), paid: new(atomic.Int64), rule: approval.Rule{Tools: []string{"transfer"}, From: financeRule.From},
				model: payments([]int{5}, []int{6}), now: func() time.Time { return time.Unix(0, now.Load()) },
			}
			store := &endingStore{}
			b.openWith(t, func(s journal.Store) journal.Store { store.Store = s; return store })
			b.begin(t)
			id := b.wantWaiting(t, 5)
			store.except, store.end = id, func(used string) error { return end(b, used) }
			d := withPattern(id, 10, 5)
			d.Pattern.For = 30 * time.Minute
			b.wantDecided(t, b.approvers["finance ann"], d, "approved")
			b.wantWaiting(t, 6)
			if n := b.paid.Load(); n != 1 {
				t.Errorf("%d transfers", n)
			}
			b.shutdown(t)
		})
	}
}

// Calls that are decided and run together do not use a pattern more often than it allows.
func TestStanding_ReadOnlyCallsOfOneAnswer(t *testing.T) {
	b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: approval.Rule{Tools: []string{"balance"}, From: financeRule.From}}
	b.model = answerFunc(func(r model.Request) model.Answer {
		switch answerCount(r) {
		case 0:
			return callTools("balance", obj{"amount": 1})
		case 1:
			return callTools("balance", obj{"amount": 2}, "balance", obj{"amount": 3}, "balance", obj{"amount": 4})
		}
		return model.Answer{Finish: model.FinishEnd, Text: "seen"}
	})
	b.open(t)
	b.begin(t)
	b.wantDecided(t, b.approvers["finance ann"], withPattern(b.wantWaiting(t, 1), 9, 2), "approved")
	b.wantWaiting(t, 4)
}
