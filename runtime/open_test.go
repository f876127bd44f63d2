package runtime_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// An open task goes on after the turn of its first agent. The agent answers each message with
// the whole conversation, also after a restart. The task ends when it is cancelled.
func TestOpenTask_AnswersUntilCancelled(t *testing.T) {
	cfg := fixtureConfig{dir: fastTempDir(t), model: answerFunc(func(r model.Request) model.Answer {
		return endWith(fmt.Sprint("heard ", len(messages(r))))
	})}
	fx := cfg.open(t)
	id := fx.start(t, org.TaskSpec{Text: "one", Open: true})
	top := fx.topAgent(t, id)
	heard := func(n int) {
		t.Helper()
		fx.waitEvent(t, func(e journal.Event) bool {
			a, ok := e.Body.(journal.ModelAnswered)
			return ok && a.Answer.Text == fmt.Sprint("heard ", n)
		})
	}
	heard(1)
	fx.send(t, top, `{"text":"two"}`)
	heard(2)
	fx.shutdown(t)
	fx = cfg.open(t)
	fx.resume(t, id)
	fx.send(t, top, `{"text":"three"}`)
	heard(3)
	if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
		t.Fatal(err)
	}
	if task := fx.wait(t, id); task.Status != org.Cancelled || !task.Open {
		t.Errorf("got %+v", task)
	}
	if _, err := fx.SendMessage(t.Context(), newCall(operator), string(top), []byte(`{"text":"four"}`), 0); errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("after the end: %v", err)
	}
}

// A turn of an open task can be aborted, and the agent answers the next message.
func TestOpenTask_GoesOnAfterAbortedTurn(t *testing.T) {
	asked := make(chan struct{}, 1)
	fx := openFixture(t, "", modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if len(messages(r)) > 1 {
			return endWith("fine"), nil
		}
		asked <- struct{}{}
		<-ctx.Done()
		return model.Answer{}, context.Cause(ctx)
	}))
	id := fx.start(t, org.TaskSpec{Text: "one", Open: true})
	<-asked
	if err := fx.AbortTurn(fx.topAgent(t, id)); err != nil {
		t.Fatal(err)
	}
	fx.waitEvent(t, func(e journal.Event) bool {
		b, ok := e.Body.(journal.TurnFailed)
		return ok && b.Code == errcode.TurnAborted
	})
	fx.send(t, fx.topAgent(t, id), `{"text":"two"}`)
	fx.waitEvent(t, func(e journal.Event) bool {
		a, ok := e.Body.(journal.ModelAnswered)
		return ok && a.Answer.Text == "fine"
	})
	if got, ok := fx.Org().TaskByID(id); !ok || got.Status != org.Running {
		t.Errorf("got %+v", got)
	}
}

// A turn of the first agent that fails ends an open task, as any other.
func TestOpenTask_FailsWithFirstAgent(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(model.Request) model.Answer { return model.Answer{Finish: "nonsense"} }))
	fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "one", Open: true}), "", errcode.LLMCallFailed)
}
