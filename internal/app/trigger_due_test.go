package app_test

import (
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/app/trigger"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// wallClock is a clock that tests set.
type wallClock struct{ at time.Time }

func (c *wallClock) now() time.Time { return c.at }

// engine returns an Engine with a clock and the triggers of documents.
func (f *fixture) engine(c *wallClock, docs ...string) *trigger.Engine {
	f.t.Helper()
	e, err := trigger.NewEngine(trigger.Config{
		Runtime: f.Runtime, Start: f.Runtime.StartTask, LastSeq: f.LastSeq, Now: c.now, Log: slog.New(slog.NewTextHandler(&f.logs, nil)),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	e.ReplaceRules(f.rules(docs...))
	return e
}

// rules returns the triggers of documents.
func (f *fixture) rules(docs ...string) (list []trigger.Rule) {
	for _, d := range f.read(docs...).Triggers {
		by, _ := f.Runtime.Org().ConfiguredRole(d.Role)
		after, _ := f.Runtime.Org().ConfiguredRole(d.After.Role)
		r, err := trigger.NewRule(d)
		if err != nil {
			f.t.Fatal(err)
		}
		r.RoleID, r.AfterRole = by.ID, after.ID
		list = append(list, r)
	}
	return list
}

// newest returns the task that was started last, when it has ended.
func (f *fixture) newest() org.Task {
	f.t.Helper()
	list := f.Runtime.Org().NewestTasks(nil, 1)
	if len(list) == 0 {
		f.t.Fatal("there is no task")
	}
	return f.task(list[0].ID)
}

// wantTasks checks the number of tasks.
func (f *fixture) wantTasks(when string, want int) {
	f.t.Helper()
	if got := f.tasks(); got != want {
		f.t.Errorf("%s: %d tasks, want %d", when, got, want)
	}
}

const minutely = `{kind: trigger, name: tick, type: cron, schedule: "* * * * *", role: oncall, text: "At {{.payload}}"}`

// A schedule fires once for each time, and once for all that have passed together.
func TestFireDue_Schedule(t *testing.T) {
	f := newFixture(t, role)
	c := &wallClock{time.Date(2026, 5, 1, 10, 0, 30, 0, time.UTC)}
	e := f.engine(c, role, minutely)
	if pause := e.FireDue(t.Context()); pause != 30*time.Second {
		t.Errorf("the pause is %v", pause)
	}
	f.wantTasks("at first", 0)
	c.at = c.at.Add(30 * time.Second)
	for range 3 {
		e.FireDue(t.Context())
	}
	f.wantTasks("after a minute", 1)
	if s := f.started(f.newest().ID); s.Trigger != "tick" || s.Missed != 0 || !strings.Contains(s.Text, `"scheduled":"2026-05-01T10:01:00Z"`) {
		t.Errorf("recorded %+v", s)
	}
	c.at = c.at.Add(1001*time.Minute + 7*time.Second)
	e.FireDue(t.Context())
	f.wantTasks("after 1001 minutes", 2)
	if s := f.started(f.newest().ID); s.Missed != 1000 || !strings.Contains(s.Text, `"scheduled":"2026-05-02T02:42:00Z"`) {
		t.Errorf("recorded %+v", s)
	}
	if log := f.logs.String(); !strings.Contains(log, "missed=1000") {
		t.Errorf("log %s", log)
	}
	c.at = c.at.Add(-time.Hour)
	e.FireDue(t.Context())
	f.wantTasks("when the clock was set back", 2)
	e.ReplaceRules(nil)
	c.at = c.at.Add(3 * time.Hour)
	e.FireDue(t.Context())
	f.wantTasks("after the trigger was removed", 2)
	e.ReplaceRules(f.rules(role, minutely))
	e.FireDue(t.Context())
	f.wantTasks("when it is there again", 2)
}

// A time fires once, also if the process ends between the start of its task and the record of
// it. Times that passed while no process ran fire once.
func TestFireDue_ScheduleSurvivesRestart(t *testing.T) {
	f := newFixture(t, role)
	c := &wallClock{time.Date(2026, 5, 1, 10, 0, 30, 0, time.UTC)}
	e := f.engine(c, role, minutely)
	e.FireDue(t.Context())
	store := f.Runtime.OwnerStore()
	before, err := store.ReadValue(t.Context(), "triggers")
	if err != nil || before == nil {
		t.Fatalf("no record: %v", err)
	}
	c.at = c.at.Add(time.Minute)
	e.FireDue(t.Context())
	first := f.newest().ID
	if err := store.WriteValue(t.Context(), "triggers", before); err != nil { // as if it had not been written
		t.Fatal(err)
	}
	dir := f.dir
	f.close()

	f = openFixture(t, dir, role)
	e = f.engine(c, role, minutely)
	e.FireDue(t.Context())
	f.wantTasks("after the restart", 1)
	if again := f.newest().ID; again != first {
		t.Errorf("the newest task is %s, not %s", again, first)
	}
	dir = f.dir
	f.close()

	c.at = c.at.Add(24 * time.Hour)
	f = openFixture(t, dir, role)
	e = f.engine(c, role, minutely)
	e.FireDue(t.Context())
	f.wantTasks("after a day without a process", 2)
	if s := f.started(f.newest().ID); s.Missed != 24*60-1 {
		t.Errorf("missed %d", s.Missed)
	}
}

// A clock that was years ahead when a time fired does not silence the schedule for years. Times
// that have fired do not fire again.
func TestFireDue_ScheduleSurvivesClockAhead(t *testing.T) {
	f := newFixture(t, role)
	c := &wallClock{time.Date(2026, 5, 1, 10, 0, 30, 0, time.UTC)}
	e := f.engine(c, role, minutely)
	e.FireDue(t.Context())
	c.at = c.at.Add(time.Minute)
	e.FireDue(t.Context())
	f.wantTasks("after a minute", 1)
	f.newest()
	now := c.at
	c.at = time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)
	e.FireDue(t.Context())
	f.wantTasks("in 2099", 2)
	if s := f.started(f.newest().ID); s.Missed != 10_000 {
		t.Errorf("missed %d", s.Missed)
	}
	dir := f.dir
	f.close()

	f = openFixture(t, dir, role)
	c.at = now.Add(-time.Minute) // before the time that has fired
	e = f.engine(c, role, minutely)
	for range 3 {
		e.FireDue(t.Context())
		c.at = c.at.Add(time.Minute)
	}
	f.wantTasks("after the restart with the right clock", 3) // 10:01 has fired before
}

const follow = `{kind: trigger, name: next, type: after, after: {trigger: alerts, status: [done, cancelled]}, role: oncall, input: {status: /status, result: /result}, text: "It is {{.status}} with {{.result}}"}`

// The end of a task fires a trigger once. Ends before the trigger was there fire nothing.
func TestRunDue_AfterTask(t *testing.T) {
	f := newFixture(t, role, hook)
	f.task(f.start("alerts", "0"))
	f.apply(role, hook, follow)
	stop := f.StartTriggers(t.Context())
	first := f.start("alerts", "1")
	second := f.waitNext(first)
	if text := f.task(second).Text; !strings.HasPrefix(text, `It is "done" with "done"`) {
		t.Errorf("text %q", text)
	}
	if s := f.started(second); s.Trigger != "next" || s.Chain != 1 {
		t.Errorf("recorded %+v", s)
	}
	stop()
	f.wantTasks("after the end", 3)

	f.task(f.start("alerts", "2")) // its end is seen by the next process
	dir := f.dir
	f.close()
	for range 2 {
		f = openFixture(t, dir, role, hook, follow)
		stop = f.StartTriggers(t.Context())
		stop()
		e := f.engine(&wallClock{time.Now()}, role, hook, follow)
		e.FireDue(t.Context())
		f.wantTasks("after a restart", 5)
		f.newest()
		f.close()
	}
}

// Ends are observed in another order than that of their commits if the goroutines of these are.
func TestFireDue_AfterEndsInAnyOrder(t *testing.T) {
	f := newFixture(t, role, hook)
	e := f.engine(&wallClock{time.Now()}, role, hook, follow)
	e.FireDue(t.Context())
	first, second := f.task(f.start("alerts", "1")), f.task(f.start("alerts", "2"))
	for range 2 {
		for _, ended := range []org.Task{second, first} {
			e.ObserveEvent(journal.Event{Task: ended.ID, Body: journal.TaskEnded{}})
			e.FireDue(t.Context())
			f.newest()
		}
		f.wantTasks("after both ends", 4)
	}
}

// Suspended triggers start nothing, and are not forgotten: what comes due meanwhile starts later.
func TestFireDue_Suspended(t *testing.T) {
	f := newFixture(t, role)
	c := &wallClock{time.Date(2026, 5, 1, 10, 0, 30, 0, time.UTC)}
	e := f.engine(c, role, minutely)
	e.FireDue(t.Context())
	e.SuspendRules()
	c.at = c.at.Add(time.Minute)
	e.FireDue(t.Context())
	f.wantTasks("while the trigger is suspended", 0)
	e = f.engine(c, role, minutely) // of the next process
	e.FireDue(t.Context())
	f.wantTasks("afterwards", 1)
	f.newest()
}

// More ends than are remembered at once do not hide one.
func TestFireDue_AfterManyEnds(t *testing.T) {
	f := newFixture(t, role, hook)
	e := f.engine(&wallClock{time.Now()}, role, hook, follow)
	e.FireDue(t.Context())
	ended := f.task(f.start("alerts", "1"))
	for range 10_000 {
		e.ObserveEvent(journal.Event{Task: "another", Body: journal.TaskEnded{}})
	}
	e.ObserveEvent(journal.Event{Task: ended.ID, Body: journal.TaskEnded{}})
	e.FireDue(t.Context())
	f.wantTasks("after the ends", 2)
	f.newest()
}

// waitNext returns the task that the trigger next starts after the start of a task.
func (f *fixture) waitNext(after identity.TaskID) identity.TaskID {
	f.t.Helper()
	task, _ := f.Runtime.Org().TaskByID(after)
	for e, err := range f.Runtime.JournalStore().FollowEvents(f.t.Context(), task.FirstSeq, journal.WaitForMore) {
		if err != nil {
			f.t.Fatal(err)
		}
		if s, ok := e.Body.(journal.TaskStarted); ok && s.Trigger == "next" {
			return e.Task
		}
	}
	f.t.Fatal("no task was started")
	return ""
}

// The end of a task of a role fires a trigger, whichever sender started the task. Another status, and
// another role, do not. A chain of tasks ends at its limit, also if reloads have made a loop.
func TestFireDue_AfterRole(t *testing.T) {
	ops := "{kind: role, name: ops, prompt: p, toolGroups: []}"
	loop := `{kind: trigger, name: loop, type: after, after: {role: ops}, role: oncall, text: x}`
	f := newFixture(t, role, ops)
	e := f.engine(&wallClock{time.Now()}, role, ops, loop)
	e.FireDue(t.Context())
	ask := func(role string) {
		t.Helper()
		id, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "x", Caller: identity.ByOperator("ops"), Role: role, Ask: true})
		if err != nil {
			t.Fatal(err)
		}
		end := f.task(id)
		e.ObserveEvent(journal.Event{Task: end.ID, Body: journal.TaskEnded{}})
		e.FireDue(t.Context())
	}
	ask("oncall")
	f.wantTasks("after a task of another role", 1)
	ask("ops")
	f.wantTasks("after a task of the role", 3)

	rules := f.rules(role, ops, loop)
	rules[0].AfterRole = rules[0].RoleID // no configuration may say so
	e.ReplaceRules(rules)
	for range 2 * org.MaxTriggerChain {
		e.ObserveEvent(journal.Event{Task: f.newest().ID, Body: journal.TaskEnded{}})
		e.FireDue(t.Context())
	}
	f.wantTasks("in a loop", 2+org.MaxTriggerChain)
	if s := f.started(f.newest().ID); s.Chain != org.MaxTriggerChain {
		t.Errorf("the chain has %d tasks", s.Chain)
	}
	if last := f.newest(); last.Trigger.Starter != "operator" {
		t.Errorf("the chain was started by %q", last.Trigger.Starter)
	}
	if !strings.Contains(f.logs.String(), "trigger started no task") {
		t.Error("the end of the chain is not logged")
	}
}

// While the organization is paused, a schedule and the end of a task start tasks that wait: no model
// is asked, and nothing is called, before the organization is resumed. A role that is paused starts
// none, and its time is over.
func TestFireDue_WhilePaused(t *testing.T) {
	f := newFixture(t, role, hook)
	c := &wallClock{time.Date(2026, 5, 1, 10, 0, 30, 0, time.UTC)}
	e := f.engine(c, role, hook, follow, minutely)
	e.FireDue(t.Context())
	ended := f.task(f.start("alerts", "1"))
	operator := identity.ByOperator("")
	if err := f.Runtime.PauseOrg(operator, "maintenance"); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Minute)
	e.ObserveEvent(journal.Event{Task: ended.ID, Body: journal.TaskEnded{}})
	e.FireDue(t.Context())
	f.wantTasks("in the pause", 3)
	list := f.Runtime.Org().NewestTasks(nil, 2)
	for _, task := range list {
		if p := f.Runtime.PauseOf(task.ID); p == nil || p.Code != errcode.Paused {
			t.Errorf("task %s is not paused: %+v", task.ID, p)
		}
	}
	paused := f.LastSeq()
	if err := f.Runtime.ResumeOrg(operator, ""); err != nil {
		t.Fatal(err)
	}
	for _, task := range list {
		if got := f.task(task.ID); got.Status != org.Done {
			t.Errorf("after the pause the task is %s", got.Status)
		}
		for e, err := range f.Runtime.JournalStore().FollowTask(t.Context(), task.ID, 0, true) {
			if _, answered := e.Body.(journal.ModelAnswered); err != nil || answered && e.Seq <= paused {
				t.Errorf("task %s works in the pause: %+v, %v", task.ID, e, err)
			}
			if _, is := e.Body.(journal.TaskEnded); is || err != nil {
				break
			}
		}
	}
	oncall, _ := f.Runtime.Org().ConfiguredRole("oncall")
	if _, _, err := f.Runtime.PauseRole(operator, oncall.ID, ""); err != nil {
		t.Fatal(err)
	}
	c.at = c.at.Add(time.Minute)
	e.FireDue(t.Context())
	f.wantTasks("while the role is paused", 3)
}
