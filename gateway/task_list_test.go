package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// countingStore counts the records that are read.
type countingStore struct {
	journal.Store
	reads atomic.Int64
}

func (s *countingStore) ReadRecord(ctx context.Context, kind, key string) ([]byte, error) {
	s.reads.Add(1)
	return s.Store.ReadRecord(ctx, kind, key)
}

func (s *countingStore) ReadRecords(ctx context.Context, kind, prefix string) iter.Seq2[journal.Record, error] {
	return s.counted(s.Store.ReadRecords(ctx, kind, prefix))
}

func (s *countingStore) ReadRecordsFrom(ctx context.Context, kind, from string) iter.Seq2[journal.Record, error] {
	return s.counted(s.Store.ReadRecordsFrom(ctx, kind, from))
}

func (s *countingStore) counted(records iter.Seq2[journal.Record, error]) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for r, err := range records {
			s.reads.Add(1)
			if !yield(r, err) {
				return
			}
		}
	}
}

// endedTasks returns a fixture with n tasks that have ended, a second apart. Each has a
// top agent and an agent that was terminated. The ids of the tasks come newest first.
func endedTasks(t testing.TB, store journal.Store, n int) (f *gatewaytest.Fixture, counts *countingStore, ids []identity.TaskID) {
	t.Helper()
	ids = storeTasks(t, store, n, func(int) org.TaskStatus { return org.Done })
	counts = &countingStore{Store: store}
	return gatewaytest.NewFixture(t, counts, gatewaytest.ModelFunc(gatewaytest.TeamModel)), counts, ids
}

// storeTasks stores n tasks with the given statuses, a second apart, each with a top agent
// and an agent that was terminated. It returns their ids, newest first.
func storeTasks(t testing.TB, store journal.Store, n int, status func(i int) org.TaskStatus) (ids []identity.TaskID) {
	t.Helper()
	var put []journal.Record
	add := func(kind org.RecordKind, key string, v any) {
		value, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		put = append(put, journal.Record{Kind: string(kind), Key: key, Value: value})
	}
	all := toolgroups.PinnedSet{Set: toolgroups.AllGroups()}
	for i := range n {
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC).Add(time.Duration(i) * time.Second)
		id := identity.TaskID(identity.DeriveIDAt(at, "task"))
		top, worker := identity.AgentID(identity.DeriveID(string(id), "top")), identity.AgentID(identity.DeriveIDAt(at, "worker"))
		add(org.KindTask, string(id), org.Task{ID: id, Text: fmt.Sprint("task ", i), Caller: "operator", Top: top, Ceiling: all, Groups: all, Status: status(i), CreatedAt: at, EndedAt: at})
		add(org.KindAgent, string(top), org.Agent{ID: top, Role: org.RootRole, Root: true, Task: id, Status: org.Active, CreatedAt: at})
		add(org.KindTerminated, string(worker), org.Agent{ID: worker, Role: org.RootRole, Parent: top, Task: id, Status: org.Terminated, CreatedAt: at.Add(time.Millisecond)})
		ids = append(ids, id)
	}
	if _, err := store.Commit(t.Context(), &journal.Batch{Put: put}); err != nil {
		t.Fatal(err)
	}
	slices.Reverse(ids)
	return ids
}

// Tasks that are recorded as running are running, waiting or interrupted. A page is full
// whatever the statuses of the tasks between its own.
func TestListTasks_ByStatusNow(t *testing.T) {
	store, release := memory.New(), make(chan struct{})
	ids := storeTasks(t, store, 50, func(i int) org.TaskStatus {
		return []org.TaskStatus{org.Running, org.Done, org.Failed}[i%3]
	})
	f := gatewaytest.NewFixture(t, store, gatewaytest.ModelFunc(func(model.Request) model.Answer {
		<-release
		return gatewaytest.EndAnswer("done")
	}))
	id := f.StartTask(t, "go")
	list := func(status org.TaskStatus) (got []identity.TaskID) {
		t.Helper()
		for path := "/api/v1/tasks?limit=4&status=" + string(status); path != ""; {
			page := gatewaytest.GetJSON[wire.Page[wire.Task]](t, f, path, "")
			for _, task := range page.Items {
				got = append(got, task.ID)
				if task.Status != status {
					t.Errorf("task %s is %s, want %s", task.ID, task.Status, status)
				}
			}
			if path = ""; page.Next != "" {
				path = "/api/v1/tasks?limit=4&status=" + string(status) + "&cursor=" + page.Next
			}
		}
		return got
	}
	var parked []identity.TaskID
	for i := 1; i < len(ids); i += 3 { // the newest was stored as done
		parked = append(parked, ids[i])
	}
	for status, want := range map[org.TaskStatus][]identity.TaskID{org.Running: {id}, org.Interrupted: parked, org.Waiting: nil} {
		if diff := cmp.Diff(want, list(status)); diff != "" {
			t.Errorf("%s tasks (-want +got):\n%s", status, diff)
		}
	}
	close(release)
	if _, err := f.Runtime.WaitTask(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	if status, body := f.SendText(t, "/api/v1/tasks?status=parked", ""); status != 400 || !strings.Contains(body, "want one of running, waiting, paused, interrupted, done, failed, cancelled") {
		t.Errorf("an unknown status: %d, %s", status, body)
	}
}

// A page of tasks costs what is on it, however many other tasks there are. Pages are
// newest first and complete.
func TestListTasks_CostsOnePage(t *testing.T) {
	f, store, ids := endedTasks(t, memory.New(), 500)
	before := store.reads.Load()
	page := gatewaytest.GetJSON[wire.Page[wire.Task]](t, f, "/api/v1/tasks?agents=1&limit=10", "")
	if reads := store.reads.Load() - before; reads > 20 { // ten tasks and ten agents
		t.Errorf("a page of 10 tasks reads %d records", reads)
	}
	if len(page.Items) != 10 || page.Next == "" {
		t.Fatalf("got %d items, next %q", len(page.Items), page.Next)
	}
	if a := page.Items[0].Agents; len(a) != 2 || a[0].ID != page.Items[0].Agent || a[1].Parent != a[0].ID || a[1].Status != org.AgentTerminated {
		t.Errorf("agents %+v", a)
	}
	for name, q := range map[string]client.TaskQuery{"all": {}, "with agents": {Agents: true}, "by status": {Status: "done"}, "the newest": {Limit: 7}} {
		var got []identity.TaskID
		for _, task := range gatewaytest.CollectAll(t, f.LocalClient().QueryTasks(t.Context(), q)) {
			got = append(got, task.ID)
			if (len(task.Agents) == 2) != q.Agents {
				t.Errorf("%s: task %s has %d agents", name, task.ID, len(task.Agents))
			}
		}
		want := ids
		if q.Limit > 0 {
			want = ids[:q.Limit]
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	var got []identity.TaskID
	for path := "/api/v1/tasks?limit=60"; path != ""; {
		page := gatewaytest.GetJSON[wire.Page[wire.Task]](t, f, path, "")
		for _, task := range page.Items {
			got = append(got, task.ID)
		}
		if path = ""; page.Next != "" {
			path = "/api/v1/tasks?limit=60&cursor=" + page.Next
		}
	}
	if diff := cmp.Diff(ids, got); diff != "" {
		t.Errorf("pages of 60 (-want +got):\n%s", diff)
	}
	status, body := f.SendText(t, "/api/v1/tasks?cursor=eHg", "") // "xx"
	if status != 400 || !strings.Contains(body, string(errcode.InvalidArguments)) {
		t.Errorf("a cursor of another list: %d, %s", status, body)
	}
}

// A page of tasks with the longest texts would take a gigabyte.
func TestListTasks_ShortensTexts(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	text := strings.Repeat("long ", 10_000)
	task := f.RunTask(t, text)
	page := gatewaytest.GetJSON[wire.Page[wire.Task]](t, f, "/api/v1/tasks", "")
	if len(page.Items) != 1 || page.Items[0].ID != task.ID {
		t.Fatalf("got %d tasks", len(page.Items))
	}
	if got := page.Items[0].Text; got != text[:4<<10]+"…" {
		t.Errorf("the list has %d bytes of the text", len(got))
	}
	if got := gatewaytest.GetJSON[wire.Task](t, f, "/api/v1/tasks/"+string(task.ID), ""); got.Text != text {
		t.Errorf("the task has %d bytes of the text", len(got.Text))
	}
}
