package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// blockingRoot keeps a task running: root blocks until free is closed, then
// ends with "free". The other agents use rest.
func blockingRoot(free <-chan struct{}, rest modelFunc) modelFunc {
	return func(ctx context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role != "root" {
			return rest(ctx, r)
		}
		select {
		case <-free:
			return endWith("free"), nil
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		}
	}
}

// alwaysWait is a modelFunc that reads its messages and waits for more.
func alwaysWait(context.Context, model.Request) (model.Answer, error) { return waitForMessage(), nil }

// workerSpec is a role that may use the group probe.
var workerSpec = org.RoleSpec{Name: "worker", Use: groupSet("probe")}

func TestSend_DeliversOnceInOrder(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	id := fx.start(t, org.TaskSpec{})
	root := fx.topAgent(t, id)
	reader := fx.spawnAgent(t, root, org.RoleSpec{Name: "reader", Use: groupSet()})
	const senders, each = 4, 25
	var all sync.WaitGroup
	for s := range senders {
		sender := fx.spawnAgent(t, root, org.RoleSpec{Name: fmt.Sprint("sender ", s), Use: groupSet()}, reader)
		all.Go(func() {
			for n := range each {
				if _, err := fx.SendMessage(t.Context(), newCall(identity.ByAgent(sender)), string(reader), mustJSON([]int{s, n}), 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	close(free)
	fx.wantResult(t, fx.wait(t, id), `"free"`, "")

	var sent []string
	for _, m := range bodiesOf[journal.MessageSent](t, fx) {
		if m.Message.To == string(reader) {
			sent = append(sent, string(m.Message.Payload))
		}
	}
	got := fx.received(t, reader)
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("received in another order than sent (-sent +received):\n%s", diff)
	}
	next := make([]int, senders)
	for _, text := range got {
		var m [2]int
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if m[1] != next[m[0]] {
			t.Fatalf("sender %d: message %d received, want %d", m[0], m[1], next[m[0]])
		}
		next[m[0]]++
	}
	if !slices.Equal(next, []int{each, each, each, each}) {
		t.Errorf("received by sender: %v, want %d of each", next, each)
	}
}

func TestSend_PreservesPayloads(t *testing.T) {
	payloads := []string{
		`""`, `null`, `0`, `false`, `[]`, `{}`, `{"text":"ä 🙂 \u0000 </script>"}`, `{"a":[{"b":null,"c":[1.50,12345678901234567890]}],"from":"root","taskId":"x"}`,
		strings.Repeat("[", 60) + strings.Repeat("]", 60), `"` + strings.Repeat("x", 1<<20) + `"`,
	}
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role == "worker":
			return waitForMessage()
		case answerCount(r) == 0:
			return callTools("create_role", obj{"name": "worker", "rolePrompt": "", "toolGroups": []string{}})
		case answerCount(r) == 1:
			return callTools("spawn_agent", obj{"roleId": lastResult(r)["id"], "taskBrief": taskBrief()})
		case answerCount(r) == 2:
			a := model.Answer{Finish: model.FinishToolCalls}
			for _, p := range payloads {
				args := fmt.Sprintf(`{"to":%q,"payload":%s}`, lastResult(r)["id"], p)
				a.Calls = append(a.Calls, model.Call{Name: "send_message", Args: json.RawMessage(args)})
			}
			return a
		}
		return endWith("sent")
	}))
	fx.wantResult(t, fx.run(t, org.TaskSpec{}), `"sent"`, "")
	var got []string
	for _, m := range bodiesOf[journal.MessageReceived](t, fx)[1:] {
		got = append(got, string(m.Message.Payload))
	}
	want := slices.Clone(payloads)
	for i, p := range want { // an escape that the journal adds
		want[i] = strings.ReplaceAll(p, "</script>", `\u003c/script\u003e`)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-sent +received):\n%s", diff)
	}
}

// A message that arrives during a model request does not interrupt it. It is
// read at the next step boundary.
func TestSend_DuringModelRequest(t *testing.T) {
	free, requested, proceed := make(chan struct{}), make(chan struct{}), make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, func(ctx context.Context, r model.Request) (model.Answer, error) {
		if answerCount(r) == 0 {
			close(requested)
			select {
			case <-proceed:
			case <-ctx.Done():
				t.Errorf("the message cancelled the request: %v", context.Cause(ctx))
			}
		}
		return endWith(fmt.Sprint("read ", len(messages(r)))), nil
	}))
	id := fx.start(t, org.TaskSpec{})
	agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
	fx.send(t, agent, `"one"`)
	<-requested
	fx.send(t, agent, `"two"`)
	if got := fx.received(t, agent); len(got) > 0 {
		t.Errorf("received during the model request: %s", got)
	}
	close(proceed)
	fx.waitEvent(t, func(e journal.Event) bool {
		a, ok := e.Body.(journal.ModelAnswered)
		return ok && a.Answer.Text == "read 2"
	})
	close(free)
	fx.wait(t, id)
	if diff := cmp.Diff([]string{`"one"`, `"two"`}, fx.received(t, agent)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSend_DuringToolCall(t *testing.T) {
	free, running, run := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := newTool(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(running)
		select {
		case <-run:
			return "ran to its end", nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	var seen []model.Item
	fx := fixtureConfig{tools: []tool.Tool{slow}, model: blockingRoot(free, func(_ context.Context, r model.Request) (model.Answer, error) {
		if answerCount(r) == 0 {
			return callTools("slow", obj{}), nil
		}
		seen = r.Items
		return endWith("done"), nil
	})}.open(t)
	id := fx.start(t, org.TaskSpec{})
	agent := fx.spawnAgent(t, fx.topAgent(t, id), workerSpec)
	fx.send(t, agent, `"one"`)
	<-running
	fx.send(t, agent, `"two"`)
	close(run)
	fx.waitEvent(t, func(e journal.Event) bool {
		b, ok := e.Body.(journal.ModelAnswered)
		return ok && e.Agent == agent && b.Answer.Finish == model.FinishEnd
	})
	close(free)
	fx.wait(t, id)
	if len(seen) != 4 || seen[2].Result == nil || string(seen[2].Result.Content) != `"ran to its end"` || seen[3].Message == nil {
		t.Errorf("the next request has %s; want message, answer, result, message", mustJSON(seen))
	}
}

// The time of the synctest bubble is fake, so an hour passes at once.
func TestSend_DelayedArrivesWhenDueInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		fx := openFixture(t, "", blockingRoot(free, alwaysWait))
		id := fx.start(t, org.TaskSpec{})
		agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
		for _, m := range []struct {
			payload string
			delay   time.Duration
		}{
			{`"3h"`, 3 * time.Hour}, {`"1h a"`, time.Hour}, {`"2h"`, 2 * time.Hour}, {`"1h b"`, time.Hour}, {`"now"`, 0}, {`"1h c"`, time.Hour}, {`"past"`, -time.Hour},
		} {
			sent, err := fx.SendMessage(t.Context(), newCall(operator), string(agent), json.RawMessage(m.payload), m.delay)
			if err != nil {
				t.Fatal(err)
			}
			if want := m.delay > 0; (sent.Due != nil) != want || want && !sent.Due.Equal(time.Now().Add(m.delay)) {
				t.Errorf("%s: scheduledDeliveryTime %v", m.payload, sent.Due)
			}
		}
		all := []string{`"now"`, `"past"`, `"1h a"`, `"1h b"`, `"1h c"`, `"2h"`, `"3h"`}
		for hours, n := range []int{2, 5, 6, 7} {
			synctest.Wait()
			if diff := cmp.Diff(all[:n], fx.received(t, agent)); diff != "" {
				t.Errorf("after %d hours (-want +got):\n%s", hours, diff)
			}
			time.Sleep(time.Hour)
		}
		close(free)
		fx.wait(t, id)
		fx.shutdown(t)
	})
}

// sendLater sends itself a message that is due in an hour and answers its task
// at once.
func sendLater(r model.Request) model.Answer {
	switch {
	case answerCount(r) == 0:
		return callTools("send_message", obj{"to": "root", "payload": "later", "delayMs": 3_600_000})
	case len(messages(r)) == 1:
		return endWith("early")
	}
	return endWith("late")
}

func TestRuntime_DelayedMessageKeepsTaskRunning(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fx := openFixture(t, "", answerFunc(sendLater))
		begin := time.Now()
		task := fx.runWithin(t, 2*time.Hour)
		fx.wantResult(t, task, `"late"`, "")
		if took := time.Since(begin); took != time.Hour {
			t.Errorf("the task took %v, want the hour of the delay", took)
		}
		fx.shutdown(t)
	})
}

// runWithin is run with a limit of the fake time.
func (fx *fixture) runWithin(t *testing.T, limit time.Duration) org.Task {
	t.Helper()
	id := fx.start(t, org.TaskSpec{})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	task, err := fx.WaitTask(ctx, id)
	if err != nil {
		t.Fatalf("%v\n%s", err, fx.eventLog(t))
	}
	return task
}

func TestSend_DelayedSurvivesRestart(t *testing.T) {
	for _, down := range []time.Duration{time.Minute, 5 * time.Hour} {
		t.Run(fmt.Sprint("down for ", down), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := fastTempDir(t)
				fx := openFixture(t, dir, answerFunc(sendLater))
				begin := time.Now()
				id := fx.start(t, org.TaskSpec{})
				synctest.Wait()
				fx.shutdown(t)
				time.Sleep(down)

				fx = openFixture(t, dir, answerFunc(sendLater))
				fx.resume(t, id)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				task, err := fx.WaitTask(ctx, id)
				if err != nil {
					t.Fatal(err)
				}
				fx.wantResult(t, task, `"late"`, "")
				if took, want := time.Since(begin), max(down, time.Hour); took != want {
					t.Errorf("the task took %v, want %v", took, want)
				}
				fx.shutdown(t)
			})
		})
	}
}

func TestSend_DelayedOrderSurvivesRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := fastTempDir(t)
		free := make(chan struct{})
		fx := openFixture(t, dir, blockingRoot(free, alwaysWait))
		id := fx.start(t, org.TaskSpec{})
		agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
		var want []string
		for n := range 20 {
			want = append(want, fmt.Sprint(n))
			if _, err := fx.SendMessage(t.Context(), newCall(operator), string(agent), mustJSON(n), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		fx.shutdown(t)
		fx = openFixture(t, dir, blockingRoot(free, alwaysWait))
		fx.resume(t, id)
		time.Sleep(time.Minute)
		close(free)
		fx.wait(t, id)
		if diff := cmp.Diff(want, fx.received(t, agent)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		fx.shutdown(t)
	})
}

func TestTerminate_DropsDelayedMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		fx := openFixture(t, "", blockingRoot(free, alwaysWait))
		id := fx.start(t, org.TaskSpec{})
		agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
		if _, err := fx.SendMessage(t.Context(), newCall(operator), string(agent), json.RawMessage(`"late"`), time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := fx.TerminateAgent(t.Context(), newCall(operator), agent, "no more need"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		fx.wantNoWork(t, agent)
		close(free)
		fx.wantResult(t, fx.wait(t, id), `"free"`, "")
		fx.shutdown(t)
	})
}

// wantNoWork checks that an agent has an empty inbox and is not runnable.
func (fx *fixture) wantNoWork(t *testing.T, id identity.AgentID) {
	t.Helper()
	inbox, err := fx.store.ReadInbox(t.Context(), id)
	if err != nil || len(inbox) > 0 {
		t.Errorf("inbox of %s: %v, %v; want nothing", id, inbox, err)
	}
	runnable, err := fx.store.RunnableAgents(t.Context())
	if err != nil || slices.Contains(runnable, id) {
		t.Errorf("%s is runnable still (%v)", id, err)
	}
}

// agentTree is the agents of two tasks. Below root of the first task are boss –
// worker – helper, and peer, which is a collaborator of boss and worker.
type agentTree struct {
	root, boss, worker, helper, peer, terminated, otherAgent, otherRoot identity.AgentID
}

func newAgentTree(t *testing.T, fx *fixture) agentTree {
	var f agentTree
	all := groupSet("org_management")
	f.root = fx.topAgent(t, fx.start(t, org.TaskSpec{}))
	f.otherRoot = fx.topAgent(t, fx.start(t, org.TaskSpec{}))
	f.peer = fx.spawnAgent(t, f.root, org.RoleSpec{Name: "peer", Use: groupSet()})
	f.boss = fx.spawnAgent(t, f.root, org.RoleSpec{Name: "boss", Use: all, Grant: all}, f.peer)
	f.terminated = fx.spawnAgent(t, f.boss, org.RoleSpec{Name: "gone", Use: groupSet()})
	f.worker = fx.spawnAgent(t, f.boss, org.RoleSpec{Name: "worker", Use: all, Grant: all}, f.peer)
	f.helper = fx.spawnAgent(t, f.worker, org.RoleSpec{Name: "helper", Use: groupSet()})
	f.otherAgent = fx.spawnAgent(t, f.otherRoot, org.RoleSpec{Name: "stranger", Use: groupSet()})
	if err := fx.TerminateAgent(t.Context(), newCall(identity.ByAgent(f.boss)), f.terminated, ""); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestSend_Permissions(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	f := newAgentTree(t, fx)
	for _, c := range []struct {
		name string
		from identity.AgentID
		to   identity.AgentID
		code errcode.Code
	}{
		{"to the user", f.helper, "user", ""},
		{"to root by name", f.helper, "root", ""},
		{"to root by its id", f.helper, f.root, ""},
		{"to the parent", f.helper, f.worker, ""},
		{"to a child", f.boss, f.worker, ""},
		{"to a grandchild", f.boss, f.helper, ""},
		{"from root down", f.root, f.helper, ""},
		{"to a collaborator", f.worker, f.peer, ""},
		{"to a grandparent that is not root", f.helper, f.boss, errcode.InsufficientPermissions},
		{"from a collaborator back", f.peer, f.worker, errcode.InsufficientPermissions},
		{"to a collaborator of the parent", f.helper, f.peer, errcode.InsufficientPermissions},
		{"to another task", f.worker, f.otherAgent, errcode.CrossTask},
		{"to the root of another task", f.root, f.otherRoot, errcode.CrossTask},
		{"to an unknown agent", f.worker, "nobody", errcode.UnknownRecipient},
		{"to a terminated agent", f.boss, f.terminated, errcode.UnknownRecipient},
		{"from a terminated agent", f.terminated, f.boss, errcode.SenderTerminated},
		{"from a terminated agent to the user", f.terminated, "user", errcode.SenderTerminated},
		{"to an empty id", f.worker, "", errcode.UnknownRecipient},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(bodiesOf[journal.MessageSent](t, fx))
			_, err := fx.SendMessage(t.Context(), newCall(identity.ByAgent(c.from)), string(c.to), json.RawMessage(`"x"`), 0)
			if got := errcode.CodeOf(err); got != c.code {
				t.Errorf("code %q (%v), want %q", got, err, c.code)
			}
			if sent := len(bodiesOf[journal.MessageSent](t, fx)) - before; (sent == 1) != (c.code == "") {
				t.Errorf("%d messages on record", sent)
			}
		})
	}
	close(free)
}

func TestSend_RootIsOfSendersTask(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role != "root" && answerCount(r) == 0:
			return callTools("send_message", obj{"to": "root", "payload": obj{"from": "forged", "taskId": "forged", "task": r.Self.Task}})
		case r.Self.Role != "root":
			return waitForMessage()
		}
		return delegate(r, "worker", "org_management")
	}))
	var ids []identity.TaskID
	for range 2 {
		ids = append(ids, fx.start(t, org.TaskSpec{}))
	}
	for _, id := range ids {
		fx.wantResult(t, fx.wait(t, id), fmt.Sprintf(`{"from":"forged","task":%q,"taskId":"forged"}`, id), "")
	}
	for _, e := range eventsOf[journal.MessageSent](t, fx) {
		if m := e.Body.(journal.MessageSent).Message; m.From != "user" && (m.From != string(e.Agent) || m.Task != e.Task) {
			t.Errorf("a message of agent %s, task %s says it is from %s, task %s", e.Agent, e.Task, m.From, m.Task)
		}
	}
}

func TestSendMessage_RejectsForgedSender(t *testing.T) {
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) == 0 {
			return callTools("send_message", obj{"to": "user", "payload": "x", "from": "user"}, "send_message", obj{"to": "user", "payload": "x", "taskId": "t"})
		}
		for _, result := range results(r) {
			if decodeObject(result.Content)["error"] != "invalid_arguments" {
				return endWith(string(result.Content))
			}
		}
		return endWith("both refused")
	}))
	fx.wantResult(t, fx.run(t, org.TaskSpec{}), `"both refused"`, "")
}

func TestSendMessage_QuickReplies(t *testing.T) {
	eleven := strings.Split("abcdefghijk", "")
	fx := openFixture(t, "", answerFunc(func(r model.Request) model.Answer {
		if answerCount(r) > 0 {
			var codes []any
			for _, result := range results(r) {
				codes = append(codes, decodeObject(result.Content)["error"])
			}
			return model.Answer{Finish: model.FinishEnd, Value: mustJSON(codes)}
		}
		var calls []any
		for _, replies := range []any{eleven, []any{"a", 1}, "yes", []string{"a", " "}, eleven[:10], []string{}, nil} {
			calls = append(calls, "send_message", obj{"to": "user", "payload": obj{"text": "x"}, "quickReplies": replies})
		}
		return callTools(calls...)
	}))
	fx.wantResult(t, fx.run(t, org.TaskSpec{}),
		`["quickReplies_too_many","quickReplies_invalid_type","quickReplies_invalid_type","quickReplies_empty_string",null,null,null]`, "")
	var sent []string
	for _, m := range bodiesOf[journal.MessageSent](t, fx)[1:] {
		sent = append(sent, string(m.Message.Payload))
	}
	want := []string{`{"quickReplies":["a","b","c","d","e","f","g","h","i","j"],"text":"x"}`, `{"text":"x"}`, `{"text":"x"}`, `["quickReplies_too_many","quickReplies_invalid_type","quickReplies_invalid_type","quickReplies_empty_string",null,null,null]`}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestSend_OperatorSendsAsUser(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	id := fx.start(t, org.TaskSpec{})
	agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
	fx.send(t, agent, `"x"`)
	for _, to := range []string{"nobody", "", "user", "root"} {
		if _, err := fx.SendMessage(t.Context(), newCall(operator), to, json.RawMessage(`1`), 0); errcode.CodeOf(err) != errcode.UnknownRecipient {
			t.Errorf("to %q: %v, want unknown_recipient", to, err)
		}
	}
	close(free)
	fx.wait(t, id)
	sent := bodiesOf[journal.MessageSent](t, fx)
	if m := sent[1].Message; m.From != "user" || m.To != string(agent) || m.Task != id {
		t.Errorf("the message is from %q to %q in task %q", m.From, m.To, m.Task)
	}
}

// A principal that is neither an agent nor the operator sends no messages, spawns no agents and
// terminates none.
func TestRuntime_OthersDoNotActAsOperator(t *testing.T) {
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	top := fx.topAgent(t, fx.start(t, org.TaskSpec{}))
	role, err := fx.CreateRole(t.Context(), newCall(identity.ByOperator("op")), org.RoleSpec{Name: "clerk"})
	if err != nil {
		t.Fatal(err)
	}
	for _, by := range []identity.Principal{{}, {Kind: 99}, {Kind: identity.Configuration}, identity.ByMonitor("m"), identity.ByCaller("ann", role.ID)} {
		if _, err := fx.SendMessage(t.Context(), newCall(by), string(top), json.RawMessage(`"x"`), 0); errcode.CodeOf(err) != errcode.InsufficientPermissions {
			t.Errorf("%s sends a message: %v", by, err)
		}
		if got, err := fx.SpawnAgent(t.Context(), newCall(by), org.SpawnSpec{Role: role.ID, Brief: org.TaskBrief{Objective: "b"}}, nil); err == nil {
			t.Errorf("%s spawns %v", by, got)
		}
		if err := fx.TerminateAgent(t.Context(), newCall(by), top, ""); errcode.CodeOf(err) != errcode.NotChildAgent {
			t.Errorf("%s terminates an agent: %v", by, err)
		}
	}
	close(free)
}
