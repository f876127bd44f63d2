package runtime_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// The tests of this file force the worst order of the steps of two goroutines.

// A call that is made while the commit of its approval is being written runs with the arguments that
// the approver has set.
func TestApproval_UsedBeforeItIsOnDisk(t *testing.T) {
	b := newBank(t, financeRule)
	ann := identity.ByCaller("ann", b.clerk.ID)
	asked := b.invoke(t, ann, "transfer", obj{"amount": 7}).Approval()
	b.shutdown(t)

	readEdited, called := make(chan struct{}), make(chan *gate.Admission, 1)
	seen := sync.OnceFunc(func() { close(readEdited) })
	callMeanwhile := sync.OnceFunc(func() {
		go func() { called <- b.invoke(t, ann, "transfer", obj{"amount": 7}) }()
		<-readEdited
	})
	b.openWith(t, func(s journal.Store) journal.Store {
		return &hookStore{Store: s,
			read: func(kind, key string) {
				if kind == "approvalArgs" && strings.Contains(key, "/") {
					seen()
				}
			},
			commit: func(ctx context.Context, batch *journal.Batch) (uint64, error) {
				prepare := batch.Prepare
				batch.Prepare = func(batch *journal.Batch) error {
					if prepare == nil {
						return nil
					}
					err := prepare(batch)
					if slices.ContainsFunc(batch.Events, func(e journal.Event) bool { _, decided := e.Body.(journal.ApprovalDecided); return decided }) {
						callMeanwhile()
					}
					return err
				}
				return s.Commit(ctx, batch)
			},
		}
	})
	b.invoke(t, ann, "balance", nil) // the first call of a process makes a commit of its own
	b.wantDecided(t, b.approvers["finance bob"], edit(asked, `{"amount":3}`), "approved")
	if a := <-called; a.Code() != "" || string(a.Request.Args) != `{"amount":3}` || b.paid.Load() != 1 {
		t.Errorf("%q runs with %s, %d transfers", a.Code(), a.Request.Args, b.paid.Load())
	}
}

// lateAgent is a model that stops late: its first request ends when stop is closed, not with its turn. All
// others are answered with "done".
type lateAgent struct {
	asked, stop chan struct{}
	requests    atomic.Int32
}

func newLateAgent() *lateAgent {
	return &lateAgent{asked: make(chan struct{}), stop: make(chan struct{})}
}

func (l *lateAgent) model() model.Model {
	return modelFunc(func(ctx context.Context, _ model.Request) (model.Answer, error) {
		if l.requests.Add(1) > 1 {
			return endWith("done"), nil
		}
		close(l.asked)
		<-ctx.Done()
		<-l.stop
		return model.Answer{}, ctx.Err()
	})
}

// A task that is cancelled while a retry reads its record is retried when its agents have stopped.
func TestRetry_TaskEndsMeanwhile(t *testing.T) {
	late := newLateAgent()
	stop := sync.OnceFunc(func() { close(late.stop) })
	defer stop()
	var fx *fixture
	var id identity.TaskID
	var retrying atomic.Bool
	fx = fixtureConfig{model: late.model(), wrapStore: func(s journal.Store) journal.Store {
		return &hookStore{Store: s, record: func(kind, _ string) {
			if kind == "task" && retrying.CompareAndSwap(true, false) {
				if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
					t.Error(err)
				}
			}
		}}
	}}.open(t)
	id = fx.start(t, org.TaskSpec{})
	<-late.asked
	retrying.Store(true)
	waiting := &selectedContext{Context: t.Context(), selected: make(chan struct{})}
	retried := make(chan error, 1)
	go func() { retried <- fx.RetryTask(waiting, id, operator, org.ModelAllowance{}) }()
	select {
	case <-waiting.selected:
	case err := <-retried:
		t.Fatalf("the retry did not wait for the agent: %v", err)
	}
	stop()
	if err := <-retried; err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
}

// A task that is cancelled twice is retried before the second cancellation returns. The retry goes on.
func TestRetry_BeforeSecondCancelReturns(t *testing.T) {
	var second atomic.Bool
	var fx *fixture
	var id identity.TaskID
	asked, answer := make(chan struct{}, 2), make(chan struct{})
	fx = fixtureConfig{
		model: modelFunc(func(ctx context.Context, _ model.Request) (model.Answer, error) {
			asked <- struct{}{}
			select {
			case <-answer:
				return endWith("done"), nil
			case <-ctx.Done():
				return model.Answer{}, ctx.Err()
			}
		}),
		wrapStore: func(s journal.Store) journal.Store {
			return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
				seq, err := s.Commit(ctx, b)
				if second.CompareAndSwap(true, false) {
					if err := fx.RetryTask(ctx, id, operator, org.ModelAllowance{}); err != nil {
						t.Error(err)
					}
				}
				return seq, err
			}}
		},
	}.open(t)
	id = fx.start(t, org.TaskSpec{})
	<-asked
	for _, again := range []bool{false, true} {
		second.Store(again)
		if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
			t.Fatal(err)
		}
	}
	close(answer)
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
}

// A task that ends while it is being resumed is not taken up.
func TestResume_TaskEndsMeanwhile(t *testing.T) {
	cfg := fixtureConfig{dir: fastTempDir(t), model: answerFunc(func(model.Request) model.Answer { return waitForMessage() })}
	fx := cfg.open(t)
	id := fx.start(t, org.TaskSpec{Open: true})
	fx.waitEvent(t, func(e journal.Event) bool { _, ok := e.Body.(journal.ModelAnswered); return ok })
	fx.shutdown(t)

	var armed atomic.Bool
	cfg.wrapStore = func(s journal.Store) journal.Store {
		return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
			seq, err := s.Commit(ctx, b)
			if armed.CompareAndSwap(true, false) {
				if err := fx.CancelTask(ctx, id, "enough"); err != nil {
					t.Error(err)
				}
			}
			return seq, err
		}}
	}
	fx = cfg.open(t)
	armed.Store(true)
	if err := fx.ResumeTask(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if armed.Load() {
		t.Fatal("the resumption committed nothing in which the task could end")
	}
	limit, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if task, err := fx.WaitTask(limit, id); err != nil || task.Status != org.Cancelled {
		t.Errorf("%s, %v", task.Status, err)
	}
}

// A delayed message that is due when its task is cancelled is read after a retry.
func TestRetry_DelayedMessageDueAtCancel(t *testing.T) {
	var fx *fixture
	var id identity.TaskID
	asked, sent, cancelled := make(chan struct{}), make(chan struct{}), make(chan struct{})
	ask := sync.OnceFunc(func() { close(asked) })
	cancel := sync.OnceFunc(func() {
		if err := fx.CancelTask(context.Background(), id, "enough"); err != nil {
			t.Error(err)
		}
	})
	fx = fixtureConfig{
		model: answerFunc(func(r model.Request) model.Answer {
			if got := messages(r); len(got) > 1 {
				return model.Answer{Finish: model.FinishEnd, Value: got[1].Payload}
			}
			ask()
			<-sent
			return waitForMessage()
		}),
		wrapStore: func(s journal.Store) journal.Store {
			return &hookStore{Store: s, commit: func(ctx context.Context, b *journal.Batch) (uint64, error) {
				if len(b.Deliver) == 0 {
					return s.Commit(ctx, b)
				}
				cancel()
				defer close(cancelled)
				return s.Commit(ctx, b)
			}}
		},
	}.open(t)
	id = fx.start(t, org.TaskSpec{})
	<-asked
	if _, err := fx.SendMessage(t.Context(), newCall(operator), string(fx.topAgent(t, id)), mustJSON("late"), time.Millisecond); err != nil {
		t.Fatal(err)
	}
	close(sent)
	<-cancelled
	if err := fx.RetryTask(t.Context(), id, operator, org.ModelAllowance{}); err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.wait(t, id), `"late"`, "")
}

// A program whose own call waits for people is told that no message will come.
func TestDriver_ReceiveWhileOwnCallWaits(t *testing.T) {
	fx := openFixture(t, "", worker(t))
	all := toolgroups.AllGroups()
	rule := approval.Rule{Tools: []string{"create_role"}, From: approval.Approvers{Any: []approval.Quorum{{Role: "finance"}}}}
	if err := fx.ApplyConfig(runtime.OrgConfig{Default: &all, Grant: &all, Roles: []org.RoleSpec{{Name: "finance", Use: groupSet()}}, Approval: []approval.Rule{rule}}); err != nil {
		t.Fatal(err)
	}
	d := fx.drive(t, org.TaskSpec{Text: "do it"})
	defer d.Close()
	args := mustJSON(obj{"name": "clerk", "rolePrompt": "work", "toolGroups": []string{}})
	_, err := d.Call(t.Context(), "create_role", args)
	wantCode(t, "a call that needs approval", err, errcode.ApprovalRequired)
	limit, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	_, err = d.Receive(limit)
	wantCode(t, "receive", err, errcode.TaskStalled)
}

// A call that was decided by a standing approval and does not start, because its turn is aborted, uses
// nothing of it.
func TestStanding_AbortedTurnUsesNothing(t *testing.T) {
	looking, look := make(chan struct{}, 1), atomic.Bool{}
	balance := func(ctx context.Context) {
		if look.CompareAndSwap(false, true) {
			looking <- struct{}{}
			<-ctx.Done()
		}
	}
	var requests atomic.Int32
	b := &bank{dir: fastTempDir(t), paid: new(atomic.Int64), rule: financeRule, look: balance, model: answerFunc(func(model.Request) model.Answer {
		switch requests.Add(1) {
		case 1:
			return callTools("transfer", obj{"amount": 5})
		case 2:
			return callTools("balance", obj{}, "transfer", obj{"amount": 6})
		case 3:
			return callTools("transfer", obj{"amount": 7})
		}
		return model.Answer{Finish: model.FinishEnd, Text: "paid"}
	})}
	b.rule.Tools = []string{"transfer"}
	b.open(t)
	id := b.start(t, org.TaskSpec{Text: "pay", Role: "clerk", Open: true})
	b.wantDecided(t, b.approvers["finance ann"], withPattern(b.waiting(t, 1)[0].ID, 10, 1), "approved")
	<-looking
	if err := b.AbortTurn(b.topAgent(t, id)); err != nil {
		t.Fatal(err)
	}
	b.waitEvent(t, func(e journal.Event) bool { _, failed := e.Body.(journal.TurnFailed); return failed })
	b.send(t, b.topAgent(t, id), `"again"`)
	b.waitEvent(t, func(e journal.Event) bool {
		a, ok := e.Body.(journal.ModelAnswered)
		return ok && a.Answer.Text == "paid"
	})
	if list := b.ListApprovals(operator); b.paid.Load() != 2 || len(list) > 0 {
		t.Errorf("%d transfers, want 2; waiting: %+v\n%s", b.paid.Load(), list, b.eventLog(t))
	}
}

// A task that was taken up goes on although the request that resumed it has ended.
func TestResume_GoesOnAfterRequestEnds(t *testing.T) {
	cfg := fixtureConfig{dir: fastTempDir(t), model: busyWorker}
	fx := cfg.open(t)
	id := fx.start(t, org.TaskSpec{})
	fx.shutdown(t)
	request, disconnect := context.WithCancel(t.Context())
	defer disconnect()
	cfg.model = answerFunc(func(model.Request) model.Answer { return endWith("done") })
	cfg.wrapStore = func(s journal.Store) journal.Store {
		return &hookStore{Store: s, record: func(kind, _ string) {
			if kind == "turns" { // the task is tracked
				disconnect()
			}
		}}
	}
	fx = cfg.open(t)
	if err := fx.ResumeTask(request, id); err != nil {
		t.Fatal(err)
	}
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
}
