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

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

var sseHeader = http.Header{"Accept": {"text/html;q=0.1, text/event-stream"}}

// eventIDs returns the ids of server-sent events.
func eventIDs(t *testing.T, body string) []uint64 {
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

func TestEvents_PublicEventsOfTaskUntilResult(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	other := f.RunTask(t, "other")
	task := f.RunTask(t, "go")
	events := gatewaytest.CollectAll(t, f.LocalClient().TaskEvents(t.Context(), string(task.ID), 0, false))
	for _, e := range events {
		if e.Task != task.ID || !journal.IsPublic(e.Body) {
			t.Errorf("event %d %s of task %s", e.Seq, e.Body.EventType(), e.Task)
		}
	}
	if first, ok := events[0].Body.(journal.TaskStarted); !ok || first.Text != "go" {
		t.Errorf("the first event is %+v", events[0])
	}
	if last, ok := events[len(events)-1].Body.(journal.TaskEnded); !ok || string(last.Result) != `"done"` {
		t.Errorf("the last event is %+v", events[len(events)-1])
	}
	if n := len(gatewaytest.CollectAll(t, f.LocalClient().TaskEvents(t.Context(), string(other.ID), 0, true))); n == 0 {
		t.Error("following a task that has ended yields no events")
	}
}

func TestEvents_ResumeAfterLastEventID(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	task := f.RunTask(t, "go")
	path := "/api/v1/tasks/" + string(task.ID) + "/events"
	answer := f.SendRequest(t, path, "", sseHeader)
	if got := answer.Header().Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("content type %q", got)
	}
	all := eventIDs(t, answer.Body.String())
	if len(all) < 5 {
		t.Fatalf("numbers %v", all)
	}
	for i, n := range all[:len(all)-1] {
		header := sseHeader.Clone()
		header.Set("Last-Event-ID", fmt.Sprint(n))
		got := eventIDs(t, f.SendRequest(t, path, "", header).Body.String())
		if diff := cmp.Diff(all[i+1:], got); diff != "" {
			t.Errorf("after %d (-want +got):\n%s", n, diff)
		}
	}
	header := sseHeader.Clone()
	header.Set("Last-Event-ID", fmt.Sprint(all[len(all)-1]))
	if got := f.SendRequest(t, path+"?follow=1", "", header); got.Code != http.StatusNoContent {
		t.Errorf("resuming after the last event: %d, want 204", got.Code)
	}
}

// blockedTeamModel is gatewaytest.TeamModel, but blocked until release is closed.
func blockedTeamModel() (m gatewaytest.ModelFunc, release chan struct{}) {
	release = make(chan struct{})
	return func(r model.Request) model.Answer {
		<-release
		return gatewaytest.TeamModel(r)
	}, release
}

func TestEvents_FollowUntilResult(t *testing.T) {
	gatewaytest.OverBothTransports(t, func(t *testing.T, dial func(*gatewaytest.Fixture) *client.Client) {
		m, release := blockedTeamModel()
		f := newFixture(t, m)
		c := dial(f)
		id := f.StartTask(t, "go")
		var types []string
		for e, err := range c.TaskEvents(t.Context(), string(id), 0, true) {
			if err != nil {
				t.Fatal(err)
			}
			if types = append(types, string(e.Body.EventType())); len(types) == 1 {
				close(release) // the first event arrives while the task runs
			}
		}
		if types[0] != "task_started" || types[len(types)-1] != "result" {
			t.Errorf("events %v", types)
		}
	})
}

func TestEvents_ClientStopsFollowing(t *testing.T) {
	gatewaytest.OverBothTransports(t, func(t *testing.T, dial func(*gatewaytest.Fixture) *client.Client) {
		m, release := blockedTeamModel()
		f := newFixture(t, m)
		defer close(release)
		c := dial(f)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for range c.TaskEvents(ctx, string(f.StartTask(t, "go")), 0, true) {
			cancel() // ends after buffered events, with an error
		}
		for range c.TaskEvents(t.Context(), string(f.StartTask(t, "go")), 0, true) {
			break
		}
	})
}

func TestEvents_BrokenStreamIsAnError(t *testing.T) {
	m, release := blockedTeamModel()
	f := newFixture(t, m)
	c := f.LocalClient()
	id := f.StartTask(t, "go")
	var broken error
	n := 0
	for _, err := range c.TaskEvents(t.Context(), string(id), 0, true) {
		if n++; n == 3 { // task_started, agent_spawned, message
			storeOf(f).Close() // the log fails during the stream
		}
		broken = err
	}
	close(release)
	if broken == nil {
		t.Error("no error")
	}
}

func TestEvents_OnePerLine(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	task := f.RunTask(t, "go")
	answer := f.SendRequest(t, "/api/v1/tasks/"+string(task.ID)+"/events", "", nil)
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
