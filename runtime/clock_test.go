package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
)

// wallClock is a clock that can be set. It advances with the time of the synctest bubble.
type wallClock struct{ offset atomic.Int64 }

// set sets the clock by d.
func (c *wallClock) set(d time.Duration) { c.offset.Add(int64(d)) }

func (c *wallClock) now() time.Time {
	return time.Now().Round(0).Add(time.Duration(c.offset.Load())) // without the monotonic reading
}

func (c *wallClock) configure(config *runtime.Config) { config.Now = c.now }

// Delays count on the monotonic clock while the process runs: a step of the wall clock
// neither keeps messages waiting nor changes their order.
func TestSend_DelaySurvivesClockStep(t *testing.T) {
	for _, step := range []time.Duration{-72 * time.Hour, 72 * time.Hour} {
		t.Run(fmt.Sprint(step), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				free, clock := make(chan struct{}), &wallClock{}
				fx := fixtureConfig{model: blockingRoot(free, alwaysWait), configure: clock.configure}.open(t)
				id := fx.start(t, org.TaskSpec{})
				agent := fx.spawnAgent(t, fx.topAgent(t, id), org.RoleSpec{Name: "worker", Use: groupSet()})
				send := func(payload string, delay time.Duration) {
					t.Helper()
					if _, err := fx.SendMessage(t.Context(), newCall(operator), string(agent), json.RawMessage(`"`+payload+`"`), delay); err != nil {
						t.Fatal(err)
					}
				}
				send("first, in 3 hours", 3*time.Hour)
				send("second, in 3 hours", 3*time.Hour)
				send("third, in 1 hour", time.Hour)
				clock.set(step)
				send("fourth, in 2 hours", 2*time.Hour)
				send("fifth, in 3 hours", 3*time.Hour)
				all := []string{`"third, in 1 hour"`, `"fourth, in 2 hours"`, `"first, in 3 hours"`, `"second, in 3 hours"`, `"fifth, in 3 hours"`}
				for hours, n := range []int{0, 1, 2, 5} {
					synctest.Wait()
					if got := fx.received(t, agent); !cmp.Equal(append([]string{}, got...), all[:n]) {
						t.Errorf("after %d hours: got %q, want %q", hours, got, all[:n])
					}
					time.Sleep(time.Hour)
				}
				close(free)
				fx.wait(t, id)
				fx.shutdown(t)
			})
		})
	}
}

// A message that an earlier process has sent waits no longer than its delay, even if the
// clock was set back while no process ran.
func TestSend_DelayAfterRestartIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		dir, clock := fastTempDir(t), &wallClock{}
		fx := fixtureConfig{dir: dir, model: answerFunc(sendLater), configure: clock.configure}.open(t)
		id := fx.start(t, org.TaskSpec{})
		synctest.Wait()
		fx.shutdown(t)
		clock.set(-72 * time.Hour)
		begin := time.Now()
		fx = fixtureConfig{dir: dir, model: answerFunc(sendLater), configure: clock.configure}.open(t)
		fx.resume(t, id)
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Hour)
		defer cancel()
		task, err := fx.WaitTask(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		fx.wantResult(t, task, `"late"`, "")
		if took := time.Since(begin); took > time.Hour {
			t.Errorf("the message came after %v, want at most the hour of its delay", took)
		}
		fx.shutdown(t)
	})
}

// After four fifths of the time of a task a warning is recorded once, also after a restart, and the
// models read a note. The time of a pause does not count.
func TestTimeWarning_IsRecordedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var notes []string // of the requests, one after another
		m := withWindow(1_000_000, answerFunc(func(r model.Request) model.Answer {
			notes = append(notes, r.Note)
			return waitForMessage()
		}))
		config := fixtureConfig{dir: fastTempDir(t), model: m}
		fx := config.open(t)
		id := fx.start(t, org.TaskSpec{Text: "go", Open: true, Timeout: 10 * time.Minute})
		root := fx.topAgent(t, id)
		ask := func(after time.Duration) {
			time.Sleep(after)
			fx.send(t, root, `"more"`)
			synctest.Wait()
		}
		synctest.Wait()
		ask(7 * time.Minute)
		if err := fx.PauseOrg(operator, "lunch"); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if err := fx.ResumeOrg(operator, "back"); err != nil {
			t.Fatal(err)
		}
		ask(time.Second)
		if list := bodiesOf[journal.BudgetWarning](t, fx); len(list) != 0 {
			t.Errorf("warnings after 7 of 10 minutes: %+v", list)
		}
		ask(time.Minute)
		fx.shutdown(t)
		fx = config.open(t)
		fx.resume(t, id)
		ask(time.Minute)
		want := []journal.BudgetWarning{{Quantity: "seconds", Used: 481, Limit: 600}}
		if list := bodiesOf[journal.BudgetWarning](t, fx); !cmp.Equal(list, want) {
			t.Errorf("warnings %+v, want %+v", list, want)
		}
		if last := notes[len(notes)-1]; !strings.Contains(last, "The task: 541 of 600 seconds are used.") || strings.Contains(notes[0], "seconds") {
			t.Errorf("notes %q", notes)
		}
		fx.shutdown(t)
	})
}
