package app

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/clock"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// simulatedClock is a wall clock that the test sets. Between two steps of the test the
// keeper of hours waits for its alarm.
type simulatedClock struct {
	mu     sync.Mutex // guards the fields below
	parked *sync.Cond // the keeper has set an alarm
	now    time.Time
	alarms int           // set so far
	wait   time.Duration // of the last one
	alarm  chan time.Time
}

func newSimulatedClock(now time.Time) *simulatedClock {
	c := &simulatedClock{now: now}
	c.parked = sync.NewCond(&c.mu)
	return c
}

func (c *simulatedClock) wall() clock.Wall { return clock.Wall{Now: c.time, After: c.after} }

func (c *simulatedClock) time() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *simulatedClock) after(wait time.Duration) <-chan time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.alarms++
	c.wait, c.alarm = wait, make(chan time.Time, 1)
	c.parked.Broadcast()
	return c.alarm
}

// during calls do and returns when the keeper has looked at the clock since and waits.
func (c *simulatedClock) during(do func()) {
	c.mu.Lock()
	before := c.alarms
	c.mu.Unlock()
	do()
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.alarms == before {
		c.parked.Wait()
	}
}

// set sets the clock and rings the alarm.
func (c *simulatedClock) set(now time.Time) {
	c.during(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.now = now
		c.alarm <- now
	})
}

// setOnly sets the clock. The alarm does not ring.
func (c *simulatedClock) setOnly(now time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = now
}

// hoursFixture is an App with the toolset office, its tool look, and a simulated clock.
type hoursFixture struct {
	*fixture
	*simulatedClock
	asked    chan []string     // tools that the model of the agent is offered
	answered chan model.Answer // what it answers
}

// openHours opens an App on a data directory.
func openHours(t *testing.T, data string, now time.Time) *hoursFixture {
	t.Helper()
	f := &hoursFixture{fixture: &fixture{t: t}, simulatedClock: newSimulatedClock(now), asked: make(chan []string), answered: make(chan model.Answer)}
	a, err := Open(Options{Data: data, wall: f.wall(), Models: func(string) (model.Model, error) { return f, nil }})
	if err != nil {
		t.Fatal(err)
	}
	f.App = a
	t.Cleanup(func() {
		if err := a.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// Generate implements model.Model: the test answers.
func (f *hoursFixture) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		select {
		case f.asked <- r.Tools:
		case <-ctx.Done():
			yield(model.AnswerDelta{}, ctx.Err())
			return
		}
		answer := <-f.answered
		yield(model.AnswerDelta{Answer: &answer}, nil)
	}
}

// config returns documents in which the toolset office has hours; "" is none.
func (f *hoursFixture) config(hours string) []string {
	if hours != "" {
		hours = ", hours: " + hours
	}
	return []string{
		"{kind: role, name: reader, toolGroups: [office, console]}",
		"{kind: source, name: db, type: sqlite, database: '" + f.options.Data + "/x.db'}",
		"{kind: tool, name: look, type: sqlite-sql, source: db, description: d, statement: SELECT 1 AS one, effect: readOnly, group: [declared]}",
		"{kind: toolset, name: office, tools: [look]" + hours + "}",
	}
}

// apply applies a configuration with hours and waits for the keeper.
func (f *hoursFixture) apply(docs []string) {
	f.t.Helper()
	f.during(func() {
		if err := f.ApplyConfig(f.t.Context(), f.read(docs...), nil); err != nil {
			f.t.Fatal(err)
		}
	})
}

// isOpen reports whether the role reader may call the tool of office.
func (f *hoursFixture) isOpen() bool { return f.allowedTools("look") == "look" }

// takeSwitches returns the events of groups since a sequence number, and the last number.
func (f *hoursFixture) takeSwitches(after uint64) (list []string, last uint64) {
	f.t.Helper()
	for e, err := range f.store.EventsBefore(context.Background(), func(journal.EventHead) bool { return true }, f.LastSeq()+1) {
		if err != nil {
			f.t.Fatal(err)
		}
		if e.Seq <= after {
			break
		}
		switch b := e.Body.(type) {
		case journal.GroupRegistered:
			if b.Group == "office" {
				list = append(list, fmt.Sprintf("registered %v", b.Tools))
			}
		case journal.GroupOpened:
			list = append(list, fmt.Sprintf("opened %v until %s", b.Tools, b.NextChange.Format("Mon 15:04")))
		case journal.GroupClosed:
			list = append(list, "closed until "+b.NextChange.Format("Mon 15:04"))
		}
	}
	slices.Reverse(list)
	return list, f.LastSeq()
}

const officeHours = `{zone: Europe/Berlin, open: ["mon-fri 08:00-18:00", "sat 09:00-12:00", "thu-fri 17:00-20:00", "sun 01:30-02:30", "wed 22:00-03:00"]}`

// officeIsOpen is a naive reading of officeHours.
func officeIsOpen(at time.Time) bool {
	day, clock := at.Format("Mon"), at.Format("15:04")
	within := func(days, from, to string) bool { return strings.Contains(days, day) && from <= clock && clock < to }
	return within("Mon Tue Wed Thu Fri", "08:00", "18:00") || within("Sat", "09:00", "12:00") || within("Thu Fri", "17:00", "20:00") ||
		within("Sun", "01:30", "02:30") || within("Wed", "22:00", "24:00") || within("Thu", "00:00", "03:00")
}

func berlin(t *testing.T) *time.Location {
	t.Helper()
	zone, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Fatal(err)
	}
	return zone
}

// At every minute of weeks around a change of the clocks a role has the tools of a toolset as
// a naive reading of its hours says. Each change is one event, and moves the epoch by one.
func TestHours_EqualNaiveReading(t *testing.T) {
	zone := berlin(t)
	for name, first := range map[string]time.Time{
		"spring": time.Date(2026, 3, 28, 7, 0, 30, 0, zone), "autumn": time.Date(2026, 10, 24, 7, 0, 30, 0, zone),
	} {
		t.Run(name, func(t *testing.T) {
			f := openHours(t, t.TempDir(), first)
			f.apply(f.config(officeHours))
			_, seq := f.takeSwitches(0)
			epoch, open, changes := f.Runtime.Org().CurrentEpoch(), officeIsOpen(first), 0
			for n := range short.Count(2, 21) * 24 * 60 {
				at := first.Add(time.Duration(n) * time.Minute)
				f.set(at)
				if want := officeIsOpen(at.In(zone)); want != open {
					open = want
					epoch, changes = epoch+1, changes+1
				}
				if got := f.isOpen(); got != open || f.Runtime.Org().CurrentEpoch() != epoch {
					t.Fatalf("at %v: open %t, epoch %d; want %t, %d", at.In(zone), got, f.Runtime.Org().CurrentEpoch(), open, epoch)
				}
			}
			events, _ := f.takeSwitches(seq)
			if len(events) != changes || changes == 0 {
				t.Errorf("%d events for %d changes: %q", len(events), changes, events)
			}
			for i := range events {
				if i > 0 && strings.HasPrefix(events[i], "opened") == strings.HasPrefix(events[i-1], "opened") {
					t.Errorf("%q follows %q", events[i], events[i-1])
				}
			}
		})
	}
}

// A machine that slept and a clock that was set are followed: what counts is the time that
// the clock shows, not how much of it has passed.
func TestHours_FollowSetClock(t *testing.T) {
	zone := berlin(t)
	f := openHours(t, t.TempDir(), time.Date(2026, 6, 3, 9, 0, 0, 0, zone)) // a Wednesday
	f.apply(f.config(officeHours))
	for _, tt := range []struct {
		day, hour int
		open      bool
	}{{3, 9, true}, {3, 19, false}, {8, 9, true}, {3, 19, false}, {1, 9, true}, {30, 21, false}, {1, 7, false}} {
		f.set(time.Date(2026, 6, tt.day, tt.hour, 0, 0, 0, zone))
		if f.isOpen() != tt.open {
			t.Errorf("on day %d at %d: open %t", tt.day, tt.hour, f.isOpen())
		}
	}
}

// The keeper waits for the next change, and never longer than maxHoursWait.
func TestHours_AlarmIsAtNextChange(t *testing.T) {
	f := openHours(t, t.TempDir(), time.Date(2026, 6, 3, 17, 59, 57, 0, berlin(t)))
	f.apply(f.config(officeHours))
	if f.wait != 3*time.Second {
		t.Errorf("3 s before the change the keeper waits for %v", f.wait)
	}
	f.set(f.time().Add(time.Hour))
	if f.wait != maxHoursWait {
		t.Errorf("hours before the change the keeper waits for %v", f.wait)
	}
}

// A process that was killed starts as the clock says, whatever the toolset was before.
func TestHours_AfterRestart(t *testing.T) {
	zone := berlin(t)
	open, closed := time.Date(2026, 6, 3, 9, 0, 0, 0, zone), time.Date(2026, 6, 3, 19, 0, 0, 0, zone)
	for _, tt := range []struct {
		name         string
		killed, back time.Time
		want         []string
	}{
		{"open, then open", open, open, []string{"registered [look]", "opened [look] until Wed 16:00"}},
		{"open, then closed", open, closed, []string{"registered []", "closed until Wed 20:00"}},
		{"closed, then open", closed, open, []string{"registered [look]", "opened [look] until Wed 16:00"}},
		{"closed, then closed", closed, closed, []string{"registered []", "closed until Wed 20:00"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			first := openHours(t, t.TempDir(), open)
			first.apply(first.config(officeHours))
			first.set(tt.killed)
			epoch := first.Runtime.Org().CurrentEpoch()
			data := t.TempDir() // as SIGKILL leaves it
			if err := os.CopyFS(data, os.DirFS(first.options.Data)); err != nil {
				t.Fatal(err)
			}
			second := openHours(t, data, tt.back)
			before := second.LastSeq()
			if second.isOpen() {
				t.Error("open before the configuration is applied")
			}
			second.apply(second.config(officeHours))
			events, _ := second.takeSwitches(before)
			if second.isOpen() != officeIsOpen(tt.back) || !slices.Equal(events, tt.want) || second.Runtime.Org().CurrentEpoch() <= epoch {
				t.Errorf("open %t, events %q, epoch %d after %d", second.isOpen(), events, second.Runtime.Org().CurrentEpoch(), epoch)
			}
		})
	}
}

// A configuration that changes hours acts at once, together with its other changes. What it
// does not change is not recorded.
func TestHours_Reload(t *testing.T) {
	f := openHours(t, t.TempDir(), time.Date(2026, 6, 3, 19, 0, 0, 0, berlin(t))) // closed
	other := "{kind: role, name: other, toolGroups: [console]}"
	const (
		evening = `{zone: Europe/Berlin, open: ["mon-fri 18:00-22:00"]}`
		newYork = `{zone: America/New_York, open: ["mon-fri 18:00-22:00"]}`
	)
	f.apply(f.config(officeHours))
	_, seq := f.takeSwitches(0)
	for _, step := range []struct {
		name  string
		docs  []string
		open  bool
		event []string
	}{
		{"unchanged", f.config(officeHours), false, nil},
		{"other role", append(f.config(officeHours), other), false, nil},
		{"opens", f.config(evening), true, []string{"registered [look]", "opened [look] until Wed 20:00"}},
		{"other zone", append(f.config(newYork), other), false, []string{"registered []", "closed until Wed 22:00"}},
		{"no hours", f.config(""), true, []string{"registered [look]"}},
		{"closes", f.config(officeHours), false, []string{"registered []", "closed until Wed 20:00"}},
	} {
		if _, err := f.reconfigure(t.Context(), f.read(step.docs...)); err != nil {
			t.Fatal(err)
		}
		var events []string
		events, seq = f.takeSwitches(seq)
		if f.isOpen() != step.open || !slices.Equal(events, step.event) {
			t.Errorf("%s: open %t, events %q", step.name, f.isOpen(), events)
		}
	}
	before, rejected := f.allowedTools("look"), append(f.config(""), "{kind: role, name: wrong, toolGroups: [unknown]}")
	if _, err := f.reconfigure(t.Context(), f.read(rejected...)); err == nil || f.allowedTools("look") != before {
		t.Errorf("a rejected configuration: %v, reader may call %q", err, f.allowedTools("look"))
	}
}

// A reload after the time of a change, before the keeper has noticed it, leaves nothing open:
// the reload itself closes the toolset, and records that once.
func TestHours_ReloadAtChange(t *testing.T) {
	zone := berlin(t)
	f := openHours(t, t.TempDir(), time.Date(2026, 6, 3, 17, 0, 0, 0, zone))
	f.apply(f.config(officeHours))
	_, seq := f.takeSwitches(0)
	f.setOnly(time.Date(2026, 6, 3, 18, 0, 0, 0, zone))
	f.apply(f.config(officeHours))
	if events, _ := f.takeSwitches(seq); f.isOpen() || !slices.Equal(events, []string{"closed until Wed 20:00"}) {
		t.Errorf("open %t, events %q", f.isOpen(), events)
	}
}

// Reloads and changes by hours at the same time leave a toolset as the clock says.
func TestHours_DuringReloads(t *testing.T) {
	zone := berlin(t)
	first := time.Date(2026, 6, 3, 7, 30, 0, 0, zone)
	f := openHours(t, t.TempDir(), first)
	f.apply(f.config(officeHours))
	for n := range short.Count(30, 300) {
		docs := append(f.config(officeHours), fmt.Sprintf("{kind: toolset, name: other, tools: [look], description: '%d', hours: %s}", n, officeHours))
		if n%3 == 0 {
			docs = f.config(strings.Replace(officeHours, "open: [", `open: ["mon 00:00-00:01", `, 1))
		}
		at := first.Add(time.Duration(n) * 97 * time.Minute)
		var reload sync.WaitGroup
		reload.Go(func() {
			if _, err := f.reconfigure(context.Background(), f.read(docs...)); err != nil {
				t.Error(err)
			}
		})
		f.setOnly(at)
		f.hours.notify()
		reload.Wait()
		f.during(f.hours.notify) // it may have looked at the clock before it was set
		f.during(f.hours.notify)
		if at.Format("Mon 15:04") != "Mon 00:00" && f.isOpen() != officeIsOpen(at) {
			t.Fatalf("at %v: open %t", at, f.isOpen())
		}
	}
}

// Tools that a role has through another group stay while a toolset is closed.
func TestHours_OnlyNarrow(t *testing.T) {
	f := openHours(t, t.TempDir(), time.Date(2026, 6, 3, 19, 0, 0, 0, berlin(t)))
	f.apply(append(f.config(officeHours)[1:], "{kind: role, name: reader, toolGroups: [office, declared]}"))
	if !f.isOpen() {
		t.Error("the closed toolset takes a tool of another group")
	}
}

// A role that has a tool of a toolset with hours through another group, too, is noted.
func TestListNotes_NamesIneffectiveHours(t *testing.T) {
	f := openHours(t, t.TempDir(), time.Date(2026, 6, 3, 19, 0, 0, 0, berlin(t)))
	docs := f.config(officeHours)[1:]
	f.apply(append(docs, "{kind: toolset, name: same, tools: [look], hours: "+officeHours+"}", "{kind: toolset, name: other, tools: [look], hours: {zone: UTC, open: [\"mon 08:00-09:00\"]}}",
		"{kind: role, name: good, toolGroups: [office, same, console]}", "{kind: role, name: without, toolGroups: [declared]}",
		"{kind: role, name: tagged, toolGroups: [office, declared]}", "{kind: role, name: sourced, toolGroups: [office, source/db]}",
		"{kind: role, name: later, toolGroups: [other, same]}"))
	want := []string{
		"role tagged has the tool look also through the group declared, so the hours of toolset office do not close it",
		"role sourced has the tool look also through the group source/db, so the hours of toolset office do not close it",
		"role later has the tool look also through the group same, so the hours of toolset other do not close it",
		"role later has the tool look also through the group other, so the hours of toolset same do not close it",
	}
	if got := hoursNotes(f.current); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	if notes := f.ListNotes(); !slices.Contains(notes, want[0]) {
		t.Errorf("the notes are %q", notes)
	}
}

// The same holds for children, for all tools of a server, and for the groups of servers.
func TestListNotes_NamesIneffectiveHoursOfHierarchies(t *testing.T) {
	f := openHours(t, t.TempDir(), time.Date(2026, 6, 3, 19, 0, 0, 0, berlin(t)))
	docs := f.config(officeHours)[1:]
	cfg := f.read(append(docs, "{kind: toolset, name: above, children: [declared], hours: "+officeHours+"}", "{kind: toolset, name: house, children: [declared, console2]}", "{kind: toolset, name: console2, tools: []}",
		"{kind: mcpServer, name: docs, command: none, group: [manual]}", "{kind: mcpServer, name: other, command: none}",
		"{kind: toolset, name: manual, tools: [docs/search], hours: "+officeHours+"}", "{kind: toolset, name: same, children: [manual]}",
		"{kind: role, name: child, toolGroups: [above, declared]}", "{kind: role, name: uncle, toolGroups: [house, above]}", "{kind: role, name: nephew, toolGroups: [office, house]}",
		"{kind: role, name: server, toolGroups: [manual, docs]}", "{kind: role, name: alone, toolGroups: [docs/search, same]}",
		"{kind: role, name: single, toolGroups: [same, other, docs/fetch]}",
		"{kind: role, name: good, toolGroups: [above, office, manual, same, other, console2, console]}")...)
	want := []string{
		"role child has the tool look also through the group declared, so the hours of toolset above do not close it",
		"role uncle has the tool look also through the group declared, so the hours of toolset above do not close it",
		"role nephew has the tool look also through the group declared, so the hours of toolset office do not close it",
		"role server has the tool docs__search also through the group docs, so the hours of toolset manual do not close it",
		"role alone has the tool docs__search also through the group docs/search, so the hours of toolset manual do not close it",
		"role single has the tool docs__fetch also through the group docs/fetch, so the hours of toolset manual do not close it",
	}
	if got := hoursNotes(cfg); !slices.Equal(got, want) {
		t.Errorf("got %s", strings.Join(got, "\n"))
	}
}

// call returns an answer of a model that calls look.
func call() model.Answer {
	return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{ID: "c", Name: "look", Args: json.RawMessage(`{}`)}}}
}

// offered waits until the agent asks its model and reports whether look is offered.
func (f *hoursFixture) offered() bool {
	f.t.Helper()
	select {
	case tools := <-f.asked:
		return slices.Contains(tools, "look")
	case <-time.After(30 * time.Second):
		f.t.Fatal("the agent does not ask its model")
		return false
	}
}

// An agent at work loses and gets tools by the hours. A call that its model has answered with
// while the toolset was open is denied if the toolset closes before it starts. So it is after
// the process was killed.
func TestHours_OfWorkingAgent(t *testing.T) {
	zone := berlin(t)
	open, closed := time.Date(2026, 6, 3, 9, 0, 0, 0, zone), time.Date(2026, 6, 3, 19, 0, 0, 0, zone)
	f := openHours(t, t.TempDir(), open)
	f.apply(f.config(officeHours))
	id, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "work", Role: "reader", Caller: identity.ByOperator("op")})
	if err != nil {
		t.Fatal(err)
	}
	check := func(when string, want bool) {
		t.Helper()
		if got := f.offered(); got != want {
			t.Errorf("%s: look offered %t", when, got)
		}
	}
	check("open", true)
	f.answered <- call()
	check("called while open", true)
	f.set(closed)
	f.answered <- call() // the request was made while it was open
	check("closed", false)
	data := t.TempDir() // as SIGKILL leaves it, while the model is asked
	if err := os.CopyFS(data, os.DirFS(f.options.Data)); err != nil {
		t.Fatal(err)
	}
	f.set(open)
	f.answered <- call()
	check("open again", true)
	f.answered <- model.Answer{Finish: model.FinishEnd, Text: "done"}
	f.wantOutcomes(id, "allowed", "denied tool_not_available", "allowed")

	f = openHours(t, data, closed)
	f.apply(f.config(officeHours))
	if err := f.Runtime.ResumeTask(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	check("restarted, closed", false)
	f.answered <- call()
	check("denied", false)
	f.set(open)
	f.answered <- call()
	check("opened", true)
	f.answered <- model.Answer{Finish: model.FinishEnd, Text: "done"}
	f.wantOutcomes(id, "allowed", "denied tool_not_available", "denied tool_not_available", "allowed")
}

// wantOutcomes waits for the end of a task and compares the decisions about its calls.
func (f *hoursFixture) wantOutcomes(id identity.TaskID, want ...string) {
	f.t.Helper()
	var got []string
	for e, err := range f.Runtime.WatchTask(f.t.Context(), id, 0) {
		if err != nil {
			f.t.Fatal(err)
		}
		if b, ok := e.Body.(journal.ToolCall); ok {
			got = append(got, strings.TrimSpace(string(b.Decision)+" "+string(b.Code)))
		}
		if f.Runtime.EndsTask(e) {
			break
		}
	}
	if !slices.Equal(got, want) {
		f.t.Errorf("calls %q, want %q", got, want)
	}
}

// The tool of a closed toolset is denied like one that the role never had: the denial does
// not say why.
func TestHours_UsualDenial(t *testing.T) {
	f := openHours(t, t.TempDir(), time.Date(2026, 6, 3, 19, 0, 0, 0, berlin(t)))
	f.apply(f.config(officeHours))
	code, text := f.invoke(t.Context(), "look", `{}`)
	otherCode, other := f.invoke(t.Context(), "run_command", `{}`)
	if code != "tool_not_available" || code != otherCode || strings.ReplaceAll(text, "look", "run_command") != other {
		t.Errorf("closed: %s %s; never had: %s %s", code, text, otherCode, other)
	}
	f.set(time.Date(2026, 6, 4, 9, 0, 0, 0, berlin(t)))
	if code, text := f.invoke(t.Context(), "look", `{}`); code != "" {
		t.Errorf("open: %s %s", code, text)
	}
}

// A change that is rejected is tried again.
func TestHours_RetriesFailedChange(t *testing.T) {
	zone := berlin(t)
	f := openHours(t, t.TempDir(), time.Date(2026, 6, 3, 17, 0, 0, 0, zone))
	f.apply(f.config(officeHours))
	var fail errorCommit
	f.groups.SetCommit(fail.commit)
	f.set(time.Date(2026, 6, 3, 18, 0, 0, 0, zone))
	if f.wait != retryHours || !f.isOpen() || fail != 1 {
		t.Errorf("the change failed %d times: wait %v, open %t", fail, f.wait, f.isOpen())
	}
	f.groups.SetCommit(func(c toolgroups.Change) error { c.Publish(); return nil })
	f.set(time.Date(2026, 6, 3, 18, 0, 1, 0, zone))
	if f.wait != maxHoursWait || f.isOpen() {
		t.Errorf("the change succeeded: wait %v, open %t", f.wait, f.isOpen())
	}
}

// errorCommit counts the commits that it rejects.
type errorCommit int

func (c *errorCommit) commit(toolgroups.Change) error {
	*c++
	return errcode.Wrap(errcode.Internal, errors.New("no"), "commit")
}
