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

// busyRoot keeps a task from ending: root thinks until free is closed, then
// ends with "free". The others think as rest says.
func busyRoot(free <-chan struct{}, rest mind) mind {
	return func(ctx context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role != "root" {
			return rest(ctx, r)
		}
		select {
		case <-free:
			return end("free"), nil
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		}
	}
}

// waits is a mind that reads and says nothing.
func waits(context.Context, model.Request) (model.Answer, error) { return wait(), nil }

var worker = org.RoleSpec{Name: "worker", Use: use("probe")}

func TestMessagesAreTakenInTheOrderTheyWereSentOnceEach(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	id := h.start(t, org.TaskSpec{})
	root := h.top(t, id)
	reader := h.hire(t, root, org.RoleSpec{Name: "reader", Use: use()})
	const senders, each = 4, 25
	var all sync.WaitGroup
	for s := range senders {
		sender := h.hire(t, root, org.RoleSpec{Name: fmt.Sprint("sender ", s), Use: use()}, reader)
		all.Go(func() {
			for n := range each {
				if _, err := h.Send(t.Context(), called(identity.ByAgent(sender)), string(reader), encode([]int{s, n}), 0); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	close(free)
	h.want(t, h.wait(t, id), `"free"`, "")

	var sent []string
	for _, m := range said[journal.MessageSent](t, h) {
		if m.Message.To == string(reader) {
			sent = append(sent, string(m.Message.Payload))
		}
	}
	got := h.taken(t, reader)
	if diff := cmp.Diff(sent, got); diff != "" {
		t.Errorf("taken in another order than sent (-sent +taken):\n%s", diff)
	}
	next := make([]int, senders)
	for _, text := range got {
		var m [2]int
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			t.Fatal(err)
		}
		if m[1] != next[m[0]] {
			t.Fatalf("sender %d: message %d is taken where %d is due", m[0], m[1], next[m[0]])
		}
		next[m[0]]++
	}
	if !slices.Equal(next, []int{each, each, each, each}) {
		t.Errorf("taken by sender: %v, want %d of each", next, each)
	}
}

func TestPayloadsArriveAsTheyWereSent(t *testing.T) {
	payloads := []string{
		`""`, `null`, `0`, `false`, `[]`, `{}`, `{"text":"ä 🙂 \u0000 </script>"}`, `{"a":[{"b":null,"c":[1.50,12345678901234567890]}],"from":"root","taskId":"x"}`,
		strings.Repeat("[", 60) + strings.Repeat("]", 60), `"` + strings.Repeat("x", 1<<20) + `"`,
	}
	h := open(t, "", brain(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role == "worker":
			return wait()
		case answers(r) == 0:
			return do("create_role", obj{"name": "worker", "rolePrompt": "", "toolGroups": []string{}})
		case answers(r) == 1:
			return do("spawn_agent", obj{"roleId": last(r)["id"], "taskBrief": brief()})
		case answers(r) == 2:
			a := model.Answer{Finish: model.FinishToolCalls}
			for _, p := range payloads {
				args := fmt.Sprintf(`{"to":%q,"payload":%s}`, last(r)["id"], p)
				a.Calls = append(a.Calls, model.Call{Name: "send_message", Args: json.RawMessage(args)})
			}
			return a
		}
		return end("sent")
	}))
	h.want(t, h.run(t, org.TaskSpec{}), `"sent"`, "")
	var got []string
	for _, m := range said[journal.MessageReceived](t, h)[1:] {
		got = append(got, string(m.Message.Payload))
	}
	want := slices.Clone(payloads)
	for i, p := range want { // what JSON may write in two ways
		want[i] = strings.ReplaceAll(p, "</script>", `\u003c/script\u003e`)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-sent +taken):\n%s", diff)
	}
}

// An agent's answer may be written to while it thinks: the message waits for
// the next step boundary and disturbs nothing.
func TestAMessageWhileTheModelThinksIsReadNext(t *testing.T) {
	free, thinking, think := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := open(t, "", busyRoot(free, func(ctx context.Context, r model.Request) (model.Answer, error) {
		if answers(r) == 0 {
			close(thinking)
			select {
			case <-think:
			case <-ctx.Done():
				t.Errorf("the message ended the thinking: %v", context.Cause(ctx))
			}
		}
		return end(fmt.Sprint("read ", len(messages(r)))), nil
	}))
	id := h.start(t, org.TaskSpec{})
	agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use()})
	h.tell(t, agent, `"one"`)
	<-thinking
	h.tell(t, agent, `"two"`)
	if got := h.taken(t, agent); len(got) > 0 {
		t.Errorf("taken while the model thinks: %s", got)
	}
	close(think)
	h.until(t, func(e journal.Event) bool {
		a, ok := e.Body.(journal.ModelAnswered)
		return ok && a.Answer.Text == "read 2"
	})
	close(free)
	h.wait(t, id)
	if diff := cmp.Diff([]string{`"one"`, `"two"`}, h.taken(t, agent)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestAMessageWhileACallRunsIsTakenAtTheNextStepBoundary(t *testing.T) {
	free, running, run := make(chan struct{}), make(chan struct{}), make(chan struct{})
	slow := probe(t, "slow", tool.Options{}, func(ctx context.Context, _ obj) (any, error) {
		close(running)
		select {
		case <-run:
			return "ran to its end", nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	})
	var seen []model.Item
	h := plan{tools: []tool.Tool{slow}, model: busyRoot(free, func(_ context.Context, r model.Request) (model.Answer, error) {
		if answers(r) == 0 {
			return do("slow", obj{}), nil
		}
		seen = r.Items
		return end("done"), nil
	})}.open(t)
	id := h.start(t, org.TaskSpec{})
	agent := h.hire(t, h.top(t, id), worker)
	h.tell(t, agent, `"one"`)
	<-running
	h.tell(t, agent, `"two"`)
	close(run)
	h.until(t, func(e journal.Event) bool {
		b, ok := e.Body.(journal.ModelAnswered)
		return ok && e.Agent == agent && b.Answer.Finish == model.FinishEnd
	})
	close(free)
	h.wait(t, id)
	if len(seen) != 4 || seen[2].Result == nil || string(seen[2].Result.Content) != `"ran to its end"` || seen[3].Message == nil {
		t.Errorf("the next step read %s; want message, answer, result, message", encode(seen))
	}
}

// One who sleeps: an hour of the bubble takes no time.
func TestDelayedMessagesComeWhenTheyAreDueInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		h := open(t, "", busyRoot(free, waits))
		id := h.start(t, org.TaskSpec{})
		agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use()})
		for _, m := range []struct {
			payload string
			delay   time.Duration
		}{
			{`"3h"`, 3 * time.Hour}, {`"1h a"`, time.Hour}, {`"2h"`, 2 * time.Hour}, {`"1h b"`, time.Hour}, {`"now"`, 0}, {`"1h c"`, time.Hour}, {`"past"`, -time.Hour},
		} {
			sent, err := h.Send(t.Context(), called(operator), string(agent), json.RawMessage(m.payload), m.delay)
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
			if diff := cmp.Diff(all[:n], h.taken(t, agent)); diff != "" {
				t.Errorf("after %d hours (-want +got):\n%s", hours, diff)
			}
			time.Sleep(time.Hour)
		}
		close(free)
		h.wait(t, id)
		h.leave(t)
	})
}

// early answers its task at once and has sent itself a message for later.
func early(r model.Request) model.Answer {
	switch {
	case answers(r) == 0:
		return do("send_message", obj{"to": "root", "payload": "later", "delayMs": 3_600_000})
	case len(messages(r)) == 1:
		return end("early")
	}
	return end("late")
}

func TestATaskDoesNotEndWhileAMessageIsDelayed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := open(t, "", brain(early))
		begin := time.Now()
		task := h.runFor(t, 2*time.Hour)
		h.want(t, task, `"late"`, "")
		if took := time.Since(begin); took != time.Hour {
			t.Errorf("the task took %v, want the hour of the delay", took)
		}
		h.leave(t)
	})
}

// runFor is run for a bubble, whose time goes fast.
func (h *house) runFor(t *testing.T, limit time.Duration) org.Task {
	t.Helper()
	id := h.start(t, org.TaskSpec{})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	task, err := h.Wait(ctx, id)
	if err != nil {
		t.Fatalf("%v\n%s", err, h.story(t))
	}
	return task
}

func TestDelayedMessagesSurviveARestart(t *testing.T) {
	for _, down := range []time.Duration{time.Minute, 5 * time.Hour} {
		t.Run(fmt.Sprint("down for ", down), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := scratch(t)
				h := open(t, dir, brain(early))
				begin := time.Now()
				id := h.start(t, org.TaskSpec{})
				synctest.Wait()
				h.leave(t)
				time.Sleep(down)

				h = open(t, dir, brain(early))
				h.resume(t, id)
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
				defer cancel()
				task, err := h.Wait(ctx, id)
				if err != nil {
					t.Fatal(err)
				}
				h.want(t, task, `"late"`, "")
				if took, want := time.Since(begin), max(down, time.Hour); took != want {
					t.Errorf("the task took %v, want %v", took, want)
				}
				h.leave(t)
			})
		})
	}
}

func TestDelayedMessagesKeepTheirOrderOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir := scratch(t)
		free := make(chan struct{})
		h := open(t, dir, busyRoot(free, waits))
		id := h.start(t, org.TaskSpec{})
		agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use()})
		var want []string
		for n := range 20 {
			want = append(want, fmt.Sprint(n))
			if _, err := h.Send(t.Context(), called(operator), string(agent), encode(n), time.Second); err != nil {
				t.Fatal(err)
			}
		}
		h.leave(t)
		h = open(t, dir, busyRoot(free, waits))
		h.resume(t, id)
		time.Sleep(time.Minute)
		close(free)
		h.wait(t, id)
		if diff := cmp.Diff(want, h.taken(t, agent)); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
		h.leave(t)
	})
}

func TestADelayedMessageForAnAgentThatIsGoneIsDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		h := open(t, "", busyRoot(free, waits))
		id := h.start(t, org.TaskSpec{})
		agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use()})
		if _, err := h.Send(t.Context(), called(operator), string(agent), json.RawMessage(`"late"`), time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := h.Terminate(t.Context(), called(operator), agent, "no more need"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Hour)
		h.empty(t, agent)
		close(free)
		h.want(t, h.wait(t, id), `"free"`, "")
		h.leave(t)
	})
}

// empty checks that nothing waits for an agent and that it is not runnable.
func (h *house) empty(t *testing.T, id identity.AgentID) {
	t.Helper()
	inbox, err := h.store.Inbox(t.Context(), id)
	if err != nil || len(inbox) > 0 {
		t.Errorf("inbox of %s: %v, %v; want nothing", id, inbox, err)
	}
	runnable, err := h.store.Runnable(t.Context())
	if err != nil || slices.Contains(runnable, id) {
		t.Errorf("%s is runnable still (%v)", id, err)
	}
}

// family is two tasks: in the first root has two lines, boss – worker – helper
// and peer; the worker's brief names peer.
type family struct {
	root, boss, worker, helper, peer, gone, stranger, otherRoot identity.AgentID
}

func newFamily(t *testing.T, h *house) family {
	var f family
	all := use("org_management")
	f.root = h.top(t, h.start(t, org.TaskSpec{}))
	f.otherRoot = h.top(t, h.start(t, org.TaskSpec{}))
	f.peer = h.hire(t, f.root, org.RoleSpec{Name: "peer", Use: use()})
	f.boss = h.hire(t, f.root, org.RoleSpec{Name: "boss", Use: all, Grant: all}, f.peer)
	f.gone = h.hire(t, f.boss, org.RoleSpec{Name: "gone", Use: use()})
	f.worker = h.hire(t, f.boss, org.RoleSpec{Name: "worker", Use: all, Grant: all}, f.peer)
	f.helper = h.hire(t, f.worker, org.RoleSpec{Name: "helper", Use: use()})
	f.stranger = h.hire(t, f.otherRoot, org.RoleSpec{Name: "stranger", Use: use()})
	if err := h.Terminate(t.Context(), called(identity.ByAgent(f.boss)), f.gone, ""); err != nil {
		t.Fatal(err)
	}
	return f
}

func TestWhoMayWriteToWhom(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	f := newFamily(t, h)
	for _, c := range []struct {
		name string
		from identity.AgentID
		to   identity.AgentID
		code errcode.Code
	}{
		{"to the user", f.helper, "user", ""},
		{"to root by its word", f.helper, "root", ""},
		{"to root by its id", f.helper, f.root, ""},
		{"to the parent", f.helper, f.worker, ""},
		{"to a child", f.boss, f.worker, ""},
		{"to a grandchild", f.boss, f.helper, ""},
		{"from root down", f.root, f.helper, ""},
		{"to a collaborator", f.worker, f.peer, ""},
		{"to a grandparent that is not root", f.helper, f.boss, errcode.InsufficientPermissions},
		{"back to one whose collaborator it is", f.peer, f.worker, errcode.InsufficientPermissions},
		{"to a collaborator of the parent", f.helper, f.peer, errcode.InsufficientPermissions},
		{"to another task", f.worker, f.stranger, errcode.CrossTask},
		{"to the root of another task", f.root, f.otherRoot, errcode.CrossTask},
		{"to nobody known", f.worker, "nobody", errcode.UnknownRecipient},
		{"to somebody terminated", f.boss, f.gone, errcode.UnknownRecipient},
		{"from somebody terminated", f.gone, f.boss, errcode.SenderTerminated},
		{"from somebody terminated to the user", f.gone, "user", errcode.SenderTerminated},
		{"to nothing", f.worker, "", errcode.UnknownRecipient},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(said[journal.MessageSent](t, h))
			_, err := h.Send(t.Context(), called(identity.ByAgent(c.from)), string(c.to), json.RawMessage(`"x"`), 0)
			if got := errcode.Of(err); got != c.code {
				t.Errorf("code %q (%v), want %q", got, err, c.code)
			}
			if sent := len(said[journal.MessageSent](t, h)) - before; (sent == 1) != (c.code == "") {
				t.Errorf("%d messages on record", sent)
			}
		})
	}
	close(free)
}

func TestRootIsTheRootOfTheSendersTask(t *testing.T) {
	h := open(t, "", brain(func(r model.Request) model.Answer {
		switch {
		case r.Self.Role != "root" && answers(r) == 0:
			return do("send_message", obj{"to": "root", "payload": obj{"from": "forged", "taskId": "forged", "task": r.Self.Task}})
		case r.Self.Role != "root":
			return wait()
		}
		return manage(r, "worker", "org_management")
	}))
	var ids []identity.TaskID
	for range 2 {
		ids = append(ids, h.start(t, org.TaskSpec{}))
	}
	for _, id := range ids {
		h.want(t, h.wait(t, id), fmt.Sprintf(`{"from":"forged","task":%q,"taskId":"forged"}`, id), "")
	}
	for _, e := range happened[journal.MessageSent](t, h) {
		if m := e.Body.(journal.MessageSent).Message; m.From != "user" && (m.From != string(e.Agent) || m.Task != e.Task) {
			t.Errorf("a message of agent %s, task %s says it is from %s, task %s", e.Agent, e.Task, m.From, m.Task)
		}
	}
}

func TestASenderCannotForgeWhoItIs(t *testing.T) {
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if answers(r) == 0 {
			return do("send_message", obj{"to": "user", "payload": "x", "from": "user"}, "send_message", obj{"to": "user", "payload": "x", "taskId": "t"})
		}
		for _, result := range results(r) {
			if decode(result.Content)["error"] != "invalid_arguments" {
				return end(string(result.Content))
			}
		}
		return end("both refused")
	}))
	h.want(t, h.run(t, org.TaskSpec{}), `"both refused"`, "")
}

func TestQuickRepliesAreMergedOrRefusedWithTheirCode(t *testing.T) {
	eleven := strings.Split("abcdefghijk", "")
	h := open(t, "", brain(func(r model.Request) model.Answer {
		if answers(r) > 0 {
			var codes []any
			for _, result := range results(r) {
				codes = append(codes, decode(result.Content)["error"])
			}
			return model.Answer{Finish: model.FinishEnd, Value: encode(codes)}
		}
		var calls []any
		for _, replies := range []any{eleven, []any{"a", 1}, "yes", []string{"a", " "}, eleven[:10], []string{}, nil} {
			calls = append(calls, "send_message", obj{"to": "user", "payload": obj{"text": "x"}, "quickReplies": replies})
		}
		return do(calls...)
	}))
	h.want(t, h.run(t, org.TaskSpec{}),
		`["quickReplies_too_many","quickReplies_invalid_type","quickReplies_invalid_type","quickReplies_empty_string",null,null,null]`, "")
	var sent []string
	for _, m := range said[journal.MessageSent](t, h)[1:] {
		sent = append(sent, string(m.Message.Payload))
	}
	want := []string{`{"quickReplies":["a","b","c","d","e","f","g","h","i","j"],"text":"x"}`, `{"text":"x"}`, `{"text":"x"}`, `["quickReplies_too_many","quickReplies_invalid_type","quickReplies_invalid_type","quickReplies_empty_string",null,null,null]`}
	if diff := cmp.Diff(want, sent); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestTheOperatorWritesAsUser(t *testing.T) {
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	id := h.start(t, org.TaskSpec{})
	agent := h.hire(t, h.top(t, id), org.RoleSpec{Name: "worker", Use: use()})
	h.tell(t, agent, `"x"`)
	for _, to := range []string{"nobody", "", "user", "root"} {
		if _, err := h.Send(t.Context(), called(operator), to, json.RawMessage(`1`), 0); errcode.Of(err) != errcode.UnknownRecipient {
			t.Errorf("to %q: %v, want unknown_recipient", to, err)
		}
	}
	close(free)
	h.wait(t, id)
	sent := said[journal.MessageSent](t, h)
	if m := sent[1].Message; m.From != "user" || m.To != string(agent) || m.Task != id {
		t.Errorf("the message is from %q to %q in task %q", m.From, m.To, m.Task)
	}
}
