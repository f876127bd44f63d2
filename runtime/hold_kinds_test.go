package runtime_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// A pause at any commit of an agent that works by plan: it goes on at the same step of the same
// plan, also in another process.
func TestPause_Plan(t *testing.T) {
	for _, what := range []string{"task", "all"} {
		for at := range int64(6) {
			t.Run(fmt.Sprintf("%s, commit %d", what, at+1), func(t *testing.T) {
				ran := new(recordedTools)
				cfg := fixtureConfig{dir: fastTempDir(t), tools: ran.tools(t), model: withWindow(100_000, answerFunc(func(r model.Request) model.Answer {
					return []model.Answer{planAnswer("look", "open", "enter"), callTools("look", obj{}), callTools("open", obj{}), callTools("enter", obj{}), endWith("done")}[answerCount(r)]
				}))}
				id := cfg.startPlanTask(t)
				var fx *fixture
				store := &haltingStore{at: at + 1, done: make(chan struct{}), pause: func() bool { return fx.pause(t, what, id) }}
				first := cfg
				first.wrapStore = func(s journal.Store) journal.Store { store.Store = s; return store }
				fx = first.open(t)
				fx.resume(t, id)
				<-store.done
				fx.waitQuiet(t)
				fx.wantNoStart(t, what)
				fx.shutdown(t)
				fx = cfg.open(t)
				fx.resume(t, id)
				fx.waitQuiet(t)
				fx.wantNoStart(t, what)
				fx.unpause(t, what, id)
				fx.wantResult(t, fx.wait(t, id), `"done"`, "")
				ran.wantRan(t, "look open enter")
				got := slices.DeleteFunc(strings.Split(fx.trace(t), ", "), func(s string) bool { return strings.HasPrefix(s, "role") })
				if want := "plan(look open enter), look done, open done, state open, enter done, end"; strings.Join(got, ", ") != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		}
	}
}

// The steps of a program whose task is paused fail with the code paused, are not on record, and can
// be made again afterwards.
func TestPause_Driver(t *testing.T) {
	for _, what := range []string{"task", "all"} {
		fx := openFixture(t, "", worker(t))
		d := fx.drive(t, org.TaskSpec{})
		defer d.Close()
		args := mustJSON(obj{"name": "clerk", "rolePrompt": "work", "toolGroups": []string{}})
		fx.pause(t, what, d.TaskID())
		before := len(fx.events(t))
		_, err := d.Call(t.Context(), "create_role", args)
		wantCode(t, what+": a call", err, errcode.Paused)
		wantCode(t, what+": the end", d.End(t.Context(), json.RawMessage(`1`)), errcode.Paused)
		if n := len(fx.events(t)); n != before {
			t.Errorf("%s: %d events are on record, want %d\n%s", what, n, before, fx.eventLog(t))
		}
		fx.unpause(t, what, d.TaskID())
		if _, err := d.Call(t.Context(), "create_role", args); err != nil {
			t.Errorf("%s: a call after the pause: %v", what, err)
		}
		if err := d.End(t.Context(), json.RawMessage(`1`)); err != nil {
			t.Errorf("%s: the end after the pause: %v", what, err)
		}
	}
}
