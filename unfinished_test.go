package rolecall_test

import (
	"context"
	"encoding/json"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// restart closes an organization and opens another on its data.
func restart(t *testing.T, org *rolecall.Organization, o rolecall.Options) *rolecall.Organization {
	t.Helper()
	if err := org.Close(); err != nil {
		t.Fatal(err)
	}
	return open(t, o)
}

func unfinished(t *testing.T, org *rolecall.Organization, by rolecall.Principal) []rolecall.UnfinishedTask {
	t.Helper()
	list, err := org.UnfinishedTasks(t.Context(), by)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// A driven task ends at its deadline also if no program takes it up after a restart.
func TestUnfinishedTasks_EndAtTheirDeadline(t *testing.T) {
	for name, down := range map[string]time.Duration{"passed while no process ran": 2 * time.Hour, "passes later": time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := rolecall.Options{Data: t.TempDir()}
				org := open(t, o)
				task, err := org.Begin(t.Context(), rolecall.TaskSpec{As: me, Text: "work", Timeout: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				if err := org.Close(); err != nil {
					t.Fatal(err)
				}
				time.Sleep(down)
				org = open(t, o)
				if down < time.Hour {
					list := unfinished(t, org, me)
					if len(list) != 1 || list[0].ID != task.ID() || !list[0].Driven || list[0].Status != rolecall.TaskInterrupted || list[0].Text != "work" || list[0].Deadline.IsZero() {
						t.Errorf("got %+v", list)
					}
				}
				time.Sleep(time.Hour)
				synctest.Wait()
				if list := unfinished(t, org, me); len(list) != 0 {
					t.Errorf("still unfinished: %+v", list)
				}
				_, err = org.Resume(t.Context(), rolecall.ResumeSpec{As: me, Task: task.ID()})
				wantCode(t, "Resume after the deadline", err, errcode.Conflict)
			})
		})
	}
}

// A task that is taken up before its deadline has one timer.
func TestUnfinishedTasks_ResumeKeepsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := rolecall.Options{Data: t.TempDir()}
		org := open(t, o)
		begun, err := org.Begin(t.Context(), rolecall.TaskSpec{As: me, Timeout: time.Hour})
		if err != nil {
			t.Fatal(err)
		}
		org = restart(t, org, o)
		task, err := org.Resume(t.Context(), rolecall.ResumeSpec{As: me, Task: begun.ID()})
		if err != nil {
			t.Fatal(err)
		}
		defer task.Close()
		time.Sleep(59 * time.Minute)
		hire(t, task)
		time.Sleep(time.Hour)
		wantCode(t, "Wait after the deadline", task.Wait(t.Context()), errcode.TaskCancelled)
	})
}

// The operator cancels all unfinished tasks, a caller only its own.
func TestCancel_OnlyOwnTasks(t *testing.T) {
	o := rolecall.Options{Data: t.TempDir()}
	org := open(t, o)
	member, err := org.CreateRole(t.Context(), rolecall.RoleSpec{Name: "member", ToolGroups: []rolecall.GroupID{"org_management"}})
	if err != nil {
		t.Fatal(err)
	}
	ann, bob := rolecall.Caller("ann", member.ID), rolecall.Caller("bob", member.ID)
	for _, as := range []rolecall.Principal{ann, bob} {
		if _, err := org.Begin(t.Context(), rolecall.TaskSpec{As: as}); err != nil {
			t.Fatal(err)
		}
	}
	org = restart(t, org, o)
	own := unfinished(t, org, ann)
	if all := unfinished(t, org, me); len(own) != 1 || len(all) != 2 || len(unfinished(t, org, rolecall.Principal{})) != 0 {
		t.Fatalf("got %+v of %+v", own, all)
	}
	for _, as := range []rolecall.Principal{bob, {}} {
		wantCode(t, "another caller", org.Cancel(t.Context(), rolecall.CancelSpec{As: as, Task: own[0].ID}), errcode.TaskNotFound)
	}
	wantCode(t, "no task", org.Cancel(t.Context(), rolecall.CancelSpec{As: me, Task: "nothing"}), errcode.TaskNotFound)
	if err := org.Cancel(t.Context(), rolecall.CancelSpec{As: ann, Task: own[0].ID}); err != nil {
		t.Error(err)
	}
	for _, left := range unfinished(t, org, me) {
		if err := org.Cancel(t.Context(), rolecall.CancelSpec{As: me, Task: left.ID, Reason: "enough"}); err != nil {
			t.Error(err)
		}
	}
	if list := unfinished(t, org, me); len(list) != 0 {
		t.Errorf("still unfinished: %+v", list)
	}
}

// A Run with a key goes on with the task that an earlier process has left, and returns its
// result again afterwards.
func TestRun_KeyGoesOnAfterRestart(t *testing.T) {
	var asked atomic.Int32
	ctx, cancel := context.WithCancel(t.Context())
	o := rolecall.Options{Data: t.TempDir(), Model: rolecall.ModelFunc(func(asking context.Context, _ rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
		if asked.Add(1) == 1 {
			cancel()
			<-asking.Done()
			return rolecall.ModelAnswer{}, asking.Err()
		}
		return rolecall.ModelAnswer{Text: "yes"}, nil
	})}
	org := open(t, o)
	spec := rolecall.TaskSpec{As: me, Text: "work", Key: "job 1"}
	if _, err := rolecall.Run[string](ctx, org, spec); !errors.Is(err, context.Canceled) {
		t.Fatalf("got the error %v", err)
	}
	if list := unfinished(t, org, me); len(list) != 1 || list[0].Key != "job 1" {
		t.Errorf("after the context has ended: %+v", list)
	}
	org = restart(t, org, o)
	for range 2 {
		if got, err := rolecall.Run[string](t.Context(), org, spec); got != "yes" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	}
	if n := asked.Load(); n != 2 {
		t.Errorf("the model was asked %d times, want 2", n)
	}
	spec.Text = "something else"
	_, err := rolecall.Run[string](t.Context(), org, spec)
	wantCode(t, "a key that was used", err, errcode.Conflict)
	_, err = org.Begin(t.Context(), rolecall.TaskSpec{As: me, Key: "job 2"})
	wantCode(t, "Begin with a key", err, errcode.InvalidArguments)
}

// A Run with a key goes on with a task that was paused.
func TestRun_KeyGoesOnAfterPause(t *testing.T) {
	var failing atomic.Bool
	failing.Store(true)
	org := open(t, rolecall.Options{Model: rolecall.ModelFunc(func(context.Context, rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
		if failing.Load() {
			return rolecall.ModelAnswer{}, needsKey
		}
		return rolecall.ModelAnswer{Value: json.RawMessage(`"yes"`)}, nil
	})})
	spec := rolecall.TaskSpec{As: me, Key: "job"}
	_, err := rolecall.Run[string](t.Context(), org, spec)
	wantCode(t, "a model without a key", err, errcode.LLMCallFailed)
	failing.Store(false)
	if got, err := rolecall.Run[string](t.Context(), org, spec); got != "yes" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

var needsKey = &model.Error{NeedsOperator: true, Err: errcode.New(errcode.LLMCallFailed, "no key")}
