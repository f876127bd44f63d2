package runtime_test

import (
	"context"
	goruntime "runtime"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// pausingStore reports on reached when an agent reads its inbox for the first time, and
// waits for free.
type pausingStore struct {
	journal.Store
	reached chan<- struct{}
	free    <-chan struct{}
}

func (s pausingStore) ReadInbox(ctx context.Context, id identity.AgentID) ([]journal.Message, error) {
	pause(s.reached, s.free)
	return s.Store.ReadInbox(ctx, id)
}

// pause reports on reached, if a test waits there, and waits for free.
func pause(reached chan<- struct{}, free <-chan struct{}) {
	select {
	case reached <- struct{}{}:
		<-free
	case <-free:
	}
}

func TestStatus_FollowsTheTurn(t *testing.T) {
	var reached, free [3]chan struct{} // when the turn starts, the model is asked, the tool runs
	for i := range reached {
		reached[i], free[i] = make(chan struct{}), make(chan struct{})
	}
	look, err := tool.New("look", "", func(context.Context, struct{}) (string, error) {
		pause(reached[2], free[2])
		return "", nil
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	fx := fixtureConfig{
		tools:     []tool.Tool{look},
		wrapStore: func(s journal.Store) journal.Store { return pausingStore{s, reached[0], free[0]} },
		model: modelFunc(func(_ context.Context, r model.Request) (model.Answer, error) {
			switch answerCount(r) {
			case 0:
				pause(reached[1], free[1])
				return callTools("look", obj{}), nil
			case 1:
				return callTools("send_message", obj{"to": r.Self.ID, "payload": "later", "delayMs": 3_600_000}), nil
			}
			return waitForMessage(), nil
		}),
	}.open(t)
	id := fx.start(t, fx.roleTask(t, org.RoleSpec{Use: groupSet("probe", "org_management")}))
	check := func(agent org.AgentStatus, task org.TaskStatus) {
		t.Helper()
		fx.wantStatus(t, id, agent, task)
	}
	for i, want := range []org.AgentStatus{org.AgentStarting, org.AgentThinking, org.AgentCalling} {
		<-reached[i]
		check(want, org.Running)
		close(free[i])
	}
	fx.waitEvent(t, func(e journal.Event) bool {
		b, ok := e.Body.(journal.ModelAnswered)
		return ok && b.Answer.Finish == model.FinishWait
	})
	fx.awaitStatus(t, id, org.Waiting)
	check(org.AgentWaiting, org.Waiting)
	if record, err := fx.TaskRecord(t.Context(), id); err != nil || record.Status != org.Running {
		t.Errorf("the waiting task is recorded as %s, %v, want running, as ever", record.Status, err)
	}
	if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	check(org.AgentFinished, org.Cancelled)
}

func TestStatus_InterruptedWithoutProcess(t *testing.T) {
	dir, reached := fastTempDir(t), make(chan struct{})
	fx := openFixture(t, dir, modelFunc(func(ctx context.Context, _ model.Request) (model.Answer, error) {
		close(reached)
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}))
	id := fx.start(t, org.TaskSpec{})
	<-reached
	fx.shutdown(t)
	fx = openFixture(t, dir, answerOnce(endWith("done")))
	fx.wantStatus(t, id, org.AgentWaiting, org.Interrupted)
	fx.resume(t, id)
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
	fx.wantStatus(t, id, org.AgentFinished, org.Done)
}

func TestStatus_TerminatedAgent(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	id := fx.start(t, org.TaskSpec{})
	worker := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
	if err := fx.TerminateAgent(t.Context(), newCall(operator), worker, "enough"); err != nil {
		t.Fatal(err)
	}
	a, err := fx.AgentRecord(t.Context(), worker)
	if got := fx.AgentStatus(a); err != nil || got != org.AgentTerminated {
		t.Errorf("got %s, %v, want terminated", got, err)
	}
	close(free)
	fx.wait(t, id)
}

// wantStatus checks the status of a task and of its first agent.
func (fx *fixture) wantStatus(t *testing.T, id identity.TaskID, agent org.AgentStatus, task org.TaskStatus) {
	t.Helper()
	record, err := fx.TaskRecord(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	top, err := fx.AgentRecord(t.Context(), record.Top)
	if err != nil {
		t.Fatal(err)
	}
	if a, now := fx.AgentStatus(top), fx.TaskStatus(record); a != agent || now != task {
		t.Errorf("the agent is %s and the task is %s, want %s and %s", a, now, agent, task)
	}
}

// awaitStatus waits until a task has a status.
func (fx *fixture) awaitStatus(t *testing.T, id identity.TaskID, want org.TaskStatus) {
	t.Helper()
	for {
		record, err := fx.TaskRecord(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if fx.TaskStatus(record) == want {
			return
		}
		goruntime.Gosched()
	}
}
