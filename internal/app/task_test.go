package app

import (
	"errors"
	"testing"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// A role that was deleted since a task began comes back when the operator resumes the task
// by its id. Resuming all tasks leaves it deleted.
func TestResume_RevivesRolesOnlyForNamedTask(t *testing.T) {
	const model = "kind: organization\nname: o\nmodel: m\n---\nkind: model\nname: m\ntype: script\nfile: agents.js"
	f := newFixture(t)
	read := func(doc string) *config.Config {
		cfg, err := config.ReadFiles([]yamldoc.File{
			{Path: "org.yaml", Data: []byte(doc)},
			{Path: "agents.js", Data: []byte(`role("root", function* () { yield call("send_message", {to: "root", payload: "later", delayMs: 3600000}); yield receive(); })`), Named: true},
		}, nil)
		if err != nil {
			t.Fatal(err)
		}
		return cfg
	}
	recorded := read(model + "\n---\nkind: role\nname: dba\ntoolGroups: [workspace]")
	id, err := f.StartTask(t.Context(), org.TaskSpec{Text: "wait", Caller: identity.ByOperator("op")}, recorded)
	if err != nil {
		t.Fatal(err)
	}
	before, _ := f.Runtime.Org().ConfiguredRole("dba")
	if err := f.ApplyConfig(t.Context(), read(model), nil); err != nil {
		t.Fatal(err)
	}
	if left, err := f.ResumeAll(t.Context(), nil); err != nil || len(left) != 0 {
		t.Fatal(left, err)
	}
	if role, ok := f.Runtime.Org().ConfiguredRole("dba"); ok {
		t.Errorf("all tasks were resumed: role %+v", role)
	}
	if err := f.ResumeTask(t.Context(), id, nil); err != nil {
		t.Fatal(err)
	}
	if role, _ := f.Runtime.Org().ConfiguredRole("dba"); role.ID != before.ID || role.Revision != 3 {
		t.Errorf("the task was resumed: role %q with revision %d, want %q with revision 3", role.ID, role.Revision, before.ID)
	}
}

// A process that resumes all tasks leaves those that a Go program drives: without its model
// they are no failure.
func TestResumeAll_LeavesDrivenTasks(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	first, err := Open(Options{Data: dir})
	if err != nil {
		t.Fatal(err)
	}
	d, err := first.Runtime.DriveTask(ctx, org.TaskSpec{Text: "work", Caller: identity.ByOperator("op")})
	if err := errors.Join(err, first.Close()); err != nil {
		t.Fatal(err)
	}
	second, err := Open(Options{Data: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	if left, err := second.ResumeAll(ctx, nil); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
	task, err := second.Runtime.TaskRecord(ctx, d.TaskID())
	if status := second.Runtime.TaskStatus(task); err != nil || status != org.Interrupted {
		t.Errorf("the task is %s (%v), want interrupted", status, err)
	}
}

// A task that is not resumed ends at its deadline, which passes while no process has it.
func TestResumeAll_LimitsOtherTasks(t *testing.T) {
	dir, ctx := t.TempDir(), t.Context()
	drive := func(timeout time.Duration) identity.TaskID {
		first, err := Open(Options{Data: dir})
		if err != nil {
			t.Fatal(err)
		}
		d, err := first.Runtime.DriveTask(ctx, org.TaskSpec{Text: "work", Caller: identity.ByOperator("op"), Timeout: timeout})
		if err := errors.Join(err, first.Close()); err != nil {
			t.Fatal(err)
		}
		return d.TaskID()
	}
	for timeout := 50 * time.Millisecond; ; timeout *= 2 {
		id := drive(timeout)
		second, err := Open(Options{Data: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer second.Close()
		task, err := second.Runtime.TaskRecord(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if task.Status != org.Running { // the first process was slow, and has cancelled it
			second.Close()
			continue
		}
		if _, err := second.ResumeAll(ctx, nil); err != nil {
			t.Fatal(err)
		}
		for e, err := range second.Runtime.JournalStore().FollowTask(ctx, id, task.FirstSeq, journal.WaitForMore) {
			if err != nil {
				t.Fatal(err)
			}
			if end, ok := e.Body.(journal.TaskEnded); ok {
				if end.Status != string(org.Cancelled) {
					t.Errorf("the task ended as %s", end.Status)
				}
				return
			}
		}
	}
}
