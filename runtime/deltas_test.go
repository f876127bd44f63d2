package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// twoAnswers is a model with two answers, each in several deltas. The first one
// waits for the watcher.
func twoAnswers(watching <-chan struct{}) streamingModel {
	return func(ctx context.Context, r model.Request, say func(model.AnswerDelta)) (model.Answer, error) {
		select {
		case <-watching:
		case <-ctx.Done():
			return model.Answer{}, ctx.Err()
		}
		if answerCount(r) == 0 {
			say(model.AnswerDelta{Text: "let "})
			say(model.AnswerDelta{Text: "me see"})
			say(model.AnswerDelta{Tool: "put_artifact"})
			say(model.AnswerDelta{Args: `{"type":"t","content":1}`})
			return callTools("put_artifact", obj{"type": "t", "content": 1}), nil
		}
		say(model.AnswerDelta{Text: "it is "})
		say(model.AnswerDelta{Text: "one"})
		return endWith("it is one"), nil
	}
}

// twoAnswersEvents are the events and deltas of a task with twoAnswers.
var twoAnswersEvents = []string{
	"task_started", "agent_spawned", "message",
	"says let ", "says me see", "says put_artifact", `says {"type":"t","content":1}`,
	"model_answered", "tool_call", "tool_result",
	"says it is ", "says one",
	"model_answered", "message", "result",
}

// The deltas of an answer come before it and after the events recorded before
// them, however late the watcher reads.
func TestWatch_DeltasPrecedeAnswer(t *testing.T) {
	for _, c := range []struct {
		name string
		at   string // the event at which the watcher pauses until the task has ended
	}{
		{"no pause", ""},
		{"pause at the first delta", "model_delta"},
		{"pause at an answer", "model_answered"},
		{"pause during a tool call", "tool_call"},
	} {
		t.Run(c.name, func(t *testing.T) {
			watching := make(chan struct{})
			fx := openFixture(t, "", twoAnswers(watching))
			id := fx.start(t, fx.groupTask(t, "artifact"))
			var first, pause sync.Once
			got := fx.watchAll(t, t.Context(), id, func(e journal.Event) {
				first.Do(func() { close(watching) })
				if string(e.Body.EventType()) == c.at {
					pause.Do(func() { fx.wait(t, id) })
				}
			})
			if diff := cmp.Diff(twoAnswersEvents, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// A watcher that comes during an answer gets its text so far, and then what
// everybody gets. The next answer is whole for all.
func TestWatch_LateWatcherGetsTextSoFar(t *testing.T) {
	long := strings.Repeat("ä", 20<<10)
	begun, watching := make(chan struct{}), make(chan struct{})
	fx := openFixture(t, "", streamingModel(func(_ context.Context, r model.Request, say func(model.AnswerDelta)) (model.Answer, error) {
		if answerCount(r) == 0 {
			say(model.AnswerDelta{Text: "void"})
			say(model.AnswerDelta{Restart: true, Note: "again"})
			say(model.AnswerDelta{Text: "let " + long})
			close(begun)
			<-watching
			say(model.AnswerDelta{Text: "me "})
			say(model.AnswerDelta{Text: "see"})
			return callTools("put_artifact", obj{"type": "t", "content": 1}), nil
		}
		say(model.AnswerDelta{Text: "one"})
		return endWith("one"), nil
	}))
	id := fx.start(t, fx.groupTask(t, "artifact"))
	<-begun
	var first sync.Once
	var text strings.Builder
	fx.watchAll(t, t.Context(), id, func(e journal.Event) {
		first.Do(func() { close(watching) })
		switch b := e.Body.(type) {
		case journal.ModelDelta:
			text.WriteString(b.Note + b.Text)
		case journal.ModelAnswered:
			text.WriteString("|")
		}
	})
	if got, want := text.String(), "againlet "+long+"me see|one|"; got != want {
		t.Errorf("%d bytes %.20q … %q, want %d bytes", len(got), got, got[max(0, len(got)-20):], len(want))
	}
}

// A watcher that comes while the model is silent reads the text so far at once: here the model
// goes on only when the watcher has read it.
func TestWatch_TextSoFarComesAtOnce(t *testing.T) {
	begun, read := make(chan struct{}), make(chan struct{})
	fx := openFixture(t, "", streamingModel(func(_ context.Context, _ model.Request, say func(model.AnswerDelta)) (model.Answer, error) {
		say(model.AnswerDelta{Text: "Once"})
		close(begun)
		<-read
		return endWith("done"), nil
	}))
	id := fx.start(t, org.TaskSpec{})
	<-begun
	fx.watchAll(t, t.Context(), id, func(e journal.Event) {
		if d, ok := e.Body.(journal.ModelDelta); ok && d.Text == "Once" {
			close(read)
		}
	})
	fx.wantResult(t, fx.wait(t, id), `"done"`, "")
}

// Deltas are not stored, neither by this process nor by the next one.
func TestWatch_DeltasAreNotStored(t *testing.T) {
	watching := make(chan struct{})
	cfg := fixtureConfig{dir: fastTempDir(t), model: twoAnswers(watching)}
	fx := cfg.open(t)
	id := fx.start(t, fx.groupTask(t, "artifact"))
	var first sync.Once
	fx.watchAll(t, t.Context(), id, func(journal.Event) { first.Do(func() { close(watching) }) })
	fx.wait(t, id)
	if n := len(eventsOf[journal.ModelDelta](t, fx)); n != 0 {
		t.Errorf("%d deltas are recorded", n)
	}
	fx.shutdown(t)
	fx = cfg.open(t)
	if n := len(eventsOf[journal.ModelDelta](t, fx)); n != 0 {
		t.Errorf("%d deltas are recorded after a restart", n)
	}
	if got := fx.watchAll(t, t.Context(), id, func(journal.Event) {}); slices.ContainsFunc(got, func(s string) bool { return s[:4] == "says" }) {
		t.Errorf("watching a task that has ended yields %v", got)
	}
}

// A model with many deltas is not blocked, neither without a watcher nor by a
// slow one. A slow watcher misses deltas but no event.
func TestWatch_SlowWatcherBlocksNothing(t *testing.T) {
	manyDeltas := func(watching <-chan struct{}) streamingModel {
		return func(_ context.Context, _ model.Request, say func(model.AnswerDelta)) (model.Answer, error) {
			<-watching
			for i := range 10_000 {
				say(model.AnswerDelta{Text: fmt.Sprint(i)})
			}
			return endWith("done"), nil
		}
	}
	t.Run("no watcher", func(t *testing.T) {
		watching := make(chan struct{})
		close(watching)
		fx := openFixture(t, "", manyDeltas(watching))
		fx.wantResult(t, fx.run(t, org.TaskSpec{}), `"done"`, "")
	})
	t.Run("a blocked watcher", func(t *testing.T) {
		watching := make(chan struct{})
		fx := openFixture(t, "", manyDeltas(watching))
		id := fx.start(t, org.TaskSpec{})
		var first sync.Once
		got := fx.watchAll(t, t.Context(), id, func(journal.Event) {
			first.Do(func() {
				close(watching)
				fx.wantResult(t, fx.wait(t, id), `"done"`, "")
			})
		})
		events := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return s[:4] == "says" })
		if want := []string{"task_started", "agent_spawned", "message", "model_answered", "message", "result"}; !slices.Equal(events, want) {
			t.Errorf("events %v, want %v", events, want)
		}
		if pieces := len(got) - len(events); pieces == 0 || pieces == 10_000 {
			t.Errorf("%d deltas of 10000, want some", pieces)
		}
	})
}

// A watcher that stops, or whose context ends, leaves no goroutine behind.
func TestWatch_LeavesNoGoroutine(t *testing.T) {
	asked := make(chan struct{}, 1)
	fx := openFixture(t, "", streamingModel(func(ctx context.Context, _ model.Request, say func(model.AnswerDelta)) (model.Answer, error) {
		asked <- struct{}{}
		<-ctx.Done()
		return model.Answer{}, ctx.Err()
	}))
	id := fx.start(t, org.TaskSpec{})
	<-asked
	before := goleak.IgnoreCurrent()
	for range fx.WatchTask(t.Context(), id, 0) {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for _, err := range fx.WatchTask(ctx, id, 0) {
		if err != nil {
			t.Error(err)
		}
		cancel()
	}
	func() {
		defer func() { _ = recover() }()
		for range fx.WatchTask(t.Context(), id, 0) {
			panic("the watcher")
		}
	}()
	goleak.VerifyNone(t, before)
}

func TestWatch_HidesDeltasOfOtherTasks(t *testing.T) {
	ready, spoken := make(chan struct{}), make(chan struct{})
	var mine identity.TaskID
	fx := openFixture(t, "", streamingModel(func(_ context.Context, r model.Request, say func(model.AnswerDelta)) (model.Answer, error) {
		<-ready
		if r.Self.Task == mine {
			<-spoken
			say(model.AnswerDelta{Text: "mine"})
			return endWith("mine"), nil
		}
		say(model.AnswerDelta{Text: "theirs"})
		return endWith("theirs"), nil
	}))
	mine = fx.start(t, org.TaskSpec{})
	theirs := fx.start(t, org.TaskSpec{})
	var first sync.Once
	got := fx.watchAll(t, t.Context(), mine, func(journal.Event) {
		first.Do(func() {
			close(ready)
			fx.wait(t, theirs)
			close(spoken)
		})
	})
	if want := []string{"task_started", "agent_spawned", "message", "says mine", "model_answered", "message", "result"}; !slices.Equal(got, want) {
		t.Errorf("seen %v, want %v", got, want)
	}
}
