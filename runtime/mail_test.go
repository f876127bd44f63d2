package runtime_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

// mailFixture is a task whose root reads no message until free is closed. The first
// message of the task waits for it. Ann and bob are below root, and end each turn with a
// result.
type mailFixture struct {
	*fixture
	root, ann, bob identity.AgentID
	task           identity.TaskID
	free           chan struct{}
}

func newMailFixture(t *testing.T, dir string) *mailFixture {
	fx := &mailFixture{free: make(chan struct{})}
	fx.open(t, dir)
	fx.task = fx.start(t, org.TaskSpec{})
	fx.root = fx.topAgent(t, fx.task)
	fx.ann = fx.spawnAgent(t, fx.root, org.RoleSpec{Name: "ann", Use: groupSet()})
	fx.bob = fx.spawnAgent(t, fx.root, org.RoleSpec{Name: "bob", Use: groupSet()})
	return fx
}

// open opens the data directory.
func (fx *mailFixture) open(t *testing.T, dir string) {
	t.Helper()
	fx.fixture = openFixture(t, dir, modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role != "root" {
			return endWith("result"), nil
		}
		select {
		case <-fx.free:
			return waitForMessage(), nil
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		}
	}))
}

// limit sets the limit of waiting messages.
func (fx *mailFixture) limit(t *testing.T, limit int) {
	t.Helper()
	if err := fx.ApplyConfig(runtime.OrgConfig{Limits: runtime.Limits{Mail: limit}}); err != nil {
		t.Fatal(err)
	}
}

// sendUntilFull sends messages to root until one is refused. It returns how many were sent
// and the error.
func (fx *mailFixture) sendUntilFull(t *testing.T, from identity.AgentID, delay time.Duration) (n int, err error) {
	t.Helper()
	for ; n < 100; n++ {
		if _, err := fx.SendMessage(t.Context(), newCall(identity.ByAgent(from)), "root", json.RawMessage(`"hello"`), delay); err != nil {
			return n, err
		}
	}
	t.Fatal("no limit")
	return 0, nil
}

// wantFull checks how many messages a sender can send to root, and that the error of the
// next one names root and text.
func (fx *mailFixture) wantFull(t *testing.T, from identity.AgentID, delay time.Duration, want int, text string) {
	t.Helper()
	n, err := fx.sendUntilFull(t, from, delay)
	if n != want || errcode.CodeOf(err) != errcode.LimitExceeded || !strings.Contains(err.Error(), string(fx.root)) || !strings.Contains(err.Error(), text) {
		t.Fatalf("sent %d messages, then %v; want %d, then one that names %s and says %q", n, err, want, fx.root, text)
	}
}

// One sender fills half of the places of an agent, so that others can send to it too.
// Messages that are delayed wait as well. The counts hold after a restart, and a message
// that was read makes room.
func TestLimits_Mail(t *testing.T) {
	dir := fastTempDir(t)
	fx := newMailFixture(t, dir)
	fx.limit(t, 6)
	fx.wantFull(t, fx.ann, time.Hour, 3, "at most 3 of one sender")
	fx.wantFull(t, fx.ann, 0, 0, "3 of your messages")
	fx.wantFull(t, fx.bob, 0, 2, "6 messages of all senders")

	fx.shutdown(t)
	fx.open(t, dir)
	fx.limit(t, 6)
	fx.wantFull(t, fx.ann, 0, 0, "3 of your messages")
	fx.wantFull(t, fx.bob, 0, 0, "6 messages of all senders")

	fx.resume(t, fx.task)
	close(fx.free)
	fx.waitEvent(t, func(e journal.Event) bool { _, ok := e.Body.(journal.ModelAnswered); return ok && e.Agent == fx.root })
	fx.wantFull(t, fx.ann, time.Hour, 0, "3 of your messages") // they wait still
	fx.wantFull(t, fx.bob, time.Hour, 3, "at most 3 of one sender")
}

// A lower limit refuses new messages only. Messages that wait are read.
func TestLimits_MailLowered(t *testing.T) {
	fx := newMailFixture(t, "")
	defer close(fx.free)
	fx.limit(t, 100)
	for range 5 {
		fx.mustSend(t, fx.ann, 0)
	}
	for _, limit := range []int{8, 2, 1} {
		fx.limit(t, limit)
		fx.wantFull(t, fx.ann, 0, 0, "5 of your messages")
	}
	fx.limit(t, 10)
	fx.wantFull(t, fx.bob, 0, 4, "10 messages of all senders")
	if inbox, err := fx.store.ReadInbox(t.Context(), fx.root); len(inbox) != 10 || err != nil {
		t.Errorf("%d messages wait, want 10: %v", len(inbox), err)
	}
}

// mustSend sends a message to root.
func (fx *mailFixture) mustSend(t *testing.T, from identity.AgentID, delay time.Duration) {
	t.Helper()
	if _, err := fx.SendMessage(t.Context(), newCall(identity.ByAgent(from)), "root", json.RawMessage(`"hello"`), delay); err != nil {
		t.Fatal(err)
	}
}

// The operator's messages and the results of agents reach an agent that has no room. A
// sender whose results fill more than its share takes nothing from the others.
func TestLimits_MailKeepsResults(t *testing.T) {
	fx := newMailFixture(t, "")
	defer close(fx.free)
	fx.limit(t, 4)
	fx.wantFull(t, fx.ann, 0, 2, "2 of your messages")
	for n := range 3 {
		fx.send(t, fx.ann, `"work"`)
		fx.waitInbox(t, 4+n)
	}
	fx.wantFull(t, fx.bob, 0, 1, "4 messages of all senders")
	fx.send(t, fx.root, `"now"`)
	fx.waitInbox(t, 8)
}

// waitInbox waits until n messages are in the inbox of root, without delayed ones.
func (fx *mailFixture) waitInbox(t *testing.T, n int) {
	t.Helper()
	fx.waitEvent(t, func(journal.Event) bool {
		inbox, err := fx.store.ReadInbox(t.Context(), fx.root)
		return err == nil && len(inbox) == n
	})
}

// The model reads why its message is refused, and what it can do.
func TestLimits_MailErrorForModel(t *testing.T) {
	var got []obj
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) > 0 {
			for _, result := range results(r) {
				got = append(got, decodeObject(result.Content))
			}
			return endWith("done")
		}
		later := obj{"to": "root", "payload": "later", "delayMs": 3_600_000}
		return callTools("send_message", later, "send_message", later, "send_message", later)
	}))
	if err := fx.ApplyConfig(runtime.OrgConfig{Limits: runtime.Limits{Mail: 4}}); err != nil {
		t.Fatal(err)
	}
	id := fx.start(t, org.TaskSpec{})
	fx.waitEvent(t, func(e journal.Event) bool {
		a, ok := e.Body.(journal.ModelAnswered)
		return ok && a.Answer.Text == "done"
	})
	if len(got) != 3 || got[1]["error"] != nil || got[2]["error"] != "limit_exceeded" || got[2]["limit"] != 4.0 || got[2]["to"] != string(fx.topAgent(t, id)) {
		t.Errorf("the model read %v; want two messages and an error with the agent and the limit", got)
	}
	if err := fx.CancelTask(t.Context(), id, "enough"); err != nil {
		t.Error(err)
	}
}

// Each agent has places of its own.
func TestLimits_MailOfEachAgent(t *testing.T) {
	fx := newMailFixture(t, "")
	defer close(fx.free)
	fx.limit(t, 2)
	later := func(to identity.AgentID) error {
		_, err := fx.SendMessage(t.Context(), newCall(identity.ByAgent(fx.root)), string(to), json.RawMessage(`1`), time.Hour)
		return err
	}
	for _, to := range []identity.AgentID{fx.ann, fx.bob} {
		if err := later(to); err != nil {
			t.Errorf("send to %s: %v", to, err)
		}
		if err := later(to); errcode.CodeOf(err) != errcode.LimitExceeded {
			t.Errorf("send again to %s: %v", to, err)
		}
	}
}
