package gateway_test

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

var sse = http.Header{"Accept": {"text/html;q=0.1, text/event-stream"}}

// numbers gives the ids of server-sent events.
func numbers(t *testing.T, body string) []uint64 {
	t.Helper()
	var list []uint64
	for line := range strings.SplitSeq(body, "\n") {
		if text, ok := strings.CutPrefix(line, "id: "); ok {
			n, err := strconv.ParseUint(text, 10, 64)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, n)
		}
	}
	return list
}

func TestATasksEventsAreItsOwnAndPublicAndEndWithItsResult(t *testing.T) {
	h := open(t, team)
	other := h.work(t, "other")
	task := h.work(t, "go")
	events := collect(t, h.client().Events(t.Context(), string(task.ID), 0, false))
	for _, e := range events {
		if e.Task != task.ID || !journal.Public(e.Body) {
			t.Errorf("event %d %s of task %s", e.Seq, e.Body.Type(), e.Task)
		}
	}
	if first, ok := events[0].Body.(journal.TaskStarted); !ok || first.Text != "go" {
		t.Errorf("it begins with %+v", events[0])
	}
	if last, ok := events[len(events)-1].Body.(journal.Result); !ok || string(last.Result) != `"done"` {
		t.Errorf("it ends with %+v", events[len(events)-1])
	}
	if n := len(collect(t, h.client().Events(t.Context(), string(other.ID), 0, true))); n == 0 {
		t.Error("following a task that has ended gives nothing")
	}
}

func TestServerSentEventsGoOnBehindTheLastOneSeen(t *testing.T) {
	h := open(t, team)
	task := h.work(t, "go")
	path := "/api/v1/tasks/" + string(task.ID) + "/events"
	answer := h.send(t, path, "", sse)
	if got := answer.Header().Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	all := numbers(t, answer.Body.String())
	if len(all) < 5 {
		t.Fatalf("numbers %v", all)
	}
	for i, n := range all[:len(all)-1] {
		header := sse.Clone()
		header.Set("Last-Event-ID", fmt.Sprint(n))
		got := numbers(t, h.send(t, path, "", header).Body.String())
		if diff := cmp.Diff(all[i+1:], got); diff != "" {
			t.Errorf("after %d (-want +got):\n%s", n, diff)
		}
	}
	header := sse.Clone()
	header.Set("Last-Event-ID", fmt.Sprint(all[len(all)-1]))
	if got := h.send(t, path+"?follow=1", "", header); got.Code != http.StatusNoContent {
		t.Errorf("who has seen it all gets %d, want 204: do not come back", got.Code)
	}
}

// held is a team whose first step waits until release is closed.
func held() (b brain, release chan struct{}) {
	release = make(chan struct{})
	return func(r model.Request) model.Answer {
		<-release
		return team(r)
	}, release
}

func TestFollowingATaskLastsUntilItsResult(t *testing.T) {
	overBoth(t, func(t *testing.T, dial func(*house) *gateway.Client) {
		b, release := held()
		h := open(t, b)
		client := dial(h)
		id := h.start(t, "go")
		var types []string
		for e, err := range client.Events(t.Context(), string(id), 0, true) {
			if err != nil {
				t.Fatal(err)
			}
			if types = append(types, string(e.Body.Type())); len(types) == 1 {
				close(release) // the first event came while the task runs
			}
		}
		if types[0] != "task_started" || types[len(types)-1] != "result" {
			t.Errorf("events %v", types)
		}
	})
}

func TestWhoStopsFollowingIsLetGo(t *testing.T) {
	overBoth(t, func(t *testing.T, dial func(*house) *gateway.Client) {
		b, release := held()
		h := open(t, b)
		defer close(release)
		client := dial(h)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range client.Events(ctx, string(h.start(t, "go")), 0, true) {
			cancel() // it ends, with what was on its way and an error
		}
		for range client.Events(t.Context(), string(h.start(t, "go")), 0, true) {
			break
		}
	})
}

func TestAStreamThatBreaksDoesNotPassForAWholeOne(t *testing.T) {
	b, release := held()
	h := open(t, b)
	client := h.client()
	id := h.start(t, "go")
	var broken error
	n := 0
	for _, err := range client.Events(t.Context(), string(id), 0, true) {
		if n++; n == 3 { // task_started, agent_spawned, message
			h.store.Close() // the log stops under the stream
		}
		broken = err
	}
	close(release)
	if broken == nil {
		t.Error("no error")
	}
}

func TestEventsAreOneALine(t *testing.T) {
	h := open(t, team)
	task := h.work(t, "go")
	answer := h.send(t, "/api/v1/tasks/"+string(task.ID)+"/events", "", nil)
	lines := bufio.NewScanner(answer.Body)
	for n := 0; lines.Scan(); n++ {
		var e journal.Event
		if err := e.UnmarshalJSON(lines.Bytes()); err != nil {
			t.Errorf("line %d: %v", n, err)
		}
	}
	if got := answer.Header().Get("Content-Type"); got != "application/x-ndjson" || task.Status != org.Done {
		t.Errorf("content type %q, task %s", got, task.Status)
	}
}
