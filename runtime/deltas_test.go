package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// duet is a model of two answers, each in pieces; the first one waits for the
// watcher.
func duet(there <-chan struct{}) speaker {
	return func(ctx context.Context, r model.Request, say func(model.Delta)) (model.Answer, error) {
		select {
		case <-there:
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		}
		if answers(r) == 0 {
			say(model.Delta{Text: "let "})
			say(model.Delta{Text: "me see"})
			say(model.Delta{Tool: "put_artifact"})
			say(model.Delta{Args: `{"type":"t","content":1}`})
			return do("put_artifact", obj{"type": "t", "content": 1}), nil
		}
		say(model.Delta{Text: "it is "})
		say(model.Delta{Text: "one"})
		return end("it is one"), nil
	}
}

var duetSeen = []string{
	"task_started", "agent_spawned", "message",
	"says let ", "says me see", "says put_artifact", `says {"type":"t","content":1}`,
	"model_answered", "tool_call", "tool_result",
	"says it is ", "says one",
	"model_answered", "message", "result",
}

// What a model says is given before the answer it comes to and behind what was
// on record when it was said, however late the watcher looks.
func TestPiecesOfAnAnswerComeBeforeIt(t *testing.T) {
	for _, c := range []struct {
		name string
		at   string // the event at which the watcher looks away until the task has ended
	}{
		{"to who looks all the time", ""},
		{"to who looks away at the first piece", "model_delta"},
		{"to who looks away at an answer", "model_answered"},
		{"to who looks away while a tool is called", "tool_call"},
	} {
		t.Run(c.name, func(t *testing.T) {
			there := make(chan struct{})
			h := open(t, "", duet(there))
			id := h.start(t, h.role(t, "artifact"))
			var first, away sync.Once
			got := h.watched(t, t.Context(), id, func(e journal.Event) {
				first.Do(func() { close(there) })
				if string(e.Body.Type()) == c.at {
					away.Do(func() { h.wait(t, id) })
				}
			})
			if diff := cmp.Diff(duetSeen, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Pieces are shown and nowhere kept: neither now nor by the next process.
func TestPiecesOfAnAnswerAreKeptNowhere(t *testing.T) {
	there := make(chan struct{})
	p := plan{dir: scratch(t), model: duet(there)}
	h := p.open(t)
	id := h.start(t, h.role(t, "artifact"))
	var first sync.Once
	h.watched(t, t.Context(), id, func(journal.Event) { first.Do(func() { close(there) }) })
	h.wait(t, id)
	if n := len(happened[journal.ModelDelta](t, h)); n != 0 {
		t.Errorf("%d are on record", n)
	}
	h.leave(t)
	h = p.open(t)
	if n := len(happened[journal.ModelDelta](t, h)); n != 0 {
		t.Errorf("%d are on record after a restart", n)
	}
	if got := h.watched(t, t.Context(), id, func(journal.Event) {}); slices.ContainsFunc(got, func(s string) bool { return s[:4] == "says" }) {
		t.Errorf("who watches a task that has ended is given %v", got)
	}
}

// A model that says a lot waits neither for nobody nor for one who does not
// read; who misses pieces misses no event.
func TestAWatcherHoldsUpNobody(t *testing.T) {
	chatter := func(there <-chan struct{}) speaker {
		return func(_ context.Context, _ model.Request, say func(model.Delta)) (model.Answer, error) {
			<-there
			for i := range 10_000 {
				say(model.Delta{Text: fmt.Sprint(i)})
			}
			return end("done"), nil
		}
	}
	t.Run("nobody watches", func(t *testing.T) {
		there := make(chan struct{})
		close(there)
		h := open(t, "", chatter(there))
		h.want(t, h.run(t, org.TaskSpec{}), `"done"`, "")
	})
	t.Run("one stands still", func(t *testing.T) {
		there := make(chan struct{})
		h := open(t, "", chatter(there))
		id := h.start(t, org.TaskSpec{})
		var first sync.Once
		got := h.watched(t, t.Context(), id, func(journal.Event) {
			first.Do(func() {
				close(there)
				h.want(t, h.wait(t, id), `"done"`, "")
			})
		})
		events := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s[:4] == "says" })
		if want := []string{"task_started", "agent_spawned", "message", "model_answered", "message", "result"}; !slices.Equal(events, want) {
			t.Errorf("events %v, want %v", events, want)
		}
		if pieces := len(got) - len(events); pieces == 0 || pieces == 10_000 {
			t.Errorf("%d pieces of 10000, want some", pieces)
		}
	})
}

// Who has enough, or whose context ends, leaves nothing behind.
func TestWatchingLeavesNoGoroutine(t *testing.T) {
	asked := make(chan struct{}, 1)
	h := open(t, "", speaker(func(ctx context.Context, _ model.Request, say func(model.Delta)) (model.Answer, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}))
	id := h.start(t, org.TaskSpec{})
	<-asked
	before := goleak.IgnoreCurrent()
	for range h.Watch(t.Context(), id, 0) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range h.Watch(ctx, id, 0) {
		if err != nil {
			t.Error(err)
		}
		cancel()
	}
	func() {
		defer func() { _ = recover() }()
		for range h.Watch(t.Context(), id, 0) {
			panic("the watcher")
		}
	}()
	goleak.VerifyNone(t, before)
}

func TestPiecesOfAnotherTaskAreNotSeen(t *testing.T) {
	ready, spoken := make(chan struct{}), make(chan struct{})
	var mine identity.TaskID
	h := open(t, "", speaker(func(_ context.Context, r model.Request, say func(model.Delta)) (model.Answer, error) {
		<-ready
		if r.Self.Task == mine {
			<-spoken
			say(model.Delta{Text: "mine"})
			return end("mine"), nil
		}
		say(model.Delta{Text: "theirs"})
		return end("theirs"), nil
	}))
	mine = h.start(t, org.TaskSpec{})
	theirs := h.start(t, org.TaskSpec{})
	var first sync.Once
	got := h.watched(t, t.Context(), mine, func(journal.Event) {
		first.Do(func() {
			close(ready)
			h.wait(t, theirs)
			close(spoken)
		})
	})
	if want := []string{"task_started", "agent_spawned", "message", "says mine", "model_answered", "message", "result"}; !slices.Equal(got, want) {
		t.Errorf("seen %v, want %v", got, want)
	}
}
