package gateway_test

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/org"
)

// The spans of a task are its answers and calls with their times. A denied call is marked with its
// reason. Pages of any size have the same spans.
func TestSpans_OfTask(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	task := f.RunTask(t, "go")
	f.RunTask(t, "another")
	spans := gatewaytest.CollectAll(t, f.LocalClient().TaskSpans(t.Context(), task.ID))
	answers, denied := map[uint64]string{}, wire.Span{}
	for _, s := range spans {
		if s.Start.IsZero() || s.End.Before(s.Start) || s.Agent == "" || s.Role == "" {
			t.Errorf("span %+v", s)
		}
		switch s.Kind {
		case wire.ModelSpan:
			answers[s.Seq] = s.Role
		case wire.ToolSpan:
			if answers[s.Parent] != s.Role {
				t.Errorf("the call %s of %s is below %d, an answer of %q", s.Name, s.Role, s.Parent, answers[s.Parent])
			}
		}
		if s.Status == wire.SpanDenied {
			denied = s
		} else if s.Status != wire.SpanOK {
			t.Errorf("span %+v", s)
		}
	}
	for name, want := range map[string]int{"root": 4, "root:create_role": 1, "root:spawn_agent_with_task": 1, "clerk": 3, "clerk:put_artifact": 1, "clerk:run_command": 1} {
		if got := counts(spans)[name]; got != want {
			t.Errorf("%d spans %s, want %d", got, name, want)
		}
	}
	if denied.Name != "run_command" || denied.Code != errcode.ToolNotAvailable || denied.Rule != "not granted" || denied.Group != "command" || denied.Epoch == 0 || !denied.End.Equal(denied.Start) {
		t.Errorf("denied call %+v", denied)
	}
	for _, limit := range []int{1, 2, 3} {
		var got []wire.Span
		for next := ""; ; {
			page := gatewaytest.GetJSON[wire.Page[wire.Span]](t, f, fmt.Sprintf("GET /api/v1/tasks/%s/spans?limit=%d&cursor=%s", task.ID, limit, next), "")
			if len(page.Items) > limit {
				t.Fatalf("limit %d: %d spans", limit, len(page.Items))
			}
			got = append(got, page.Items...)
			if next = page.Next; next == "" {
				break
			}
		}
		if diff := cmp.Diff(spans, got); diff != "" {
			t.Errorf("pages of %d (-all +pages):\n%s", limit, diff)
		}
	}
}

// counts returns how many spans each agent and each of its calls has.
func counts(spans []wire.Span) map[string]int {
	n := map[string]int{}
	for _, s := range spans {
		name := s.Role
		if s.Kind == wire.ToolSpan {
			name += ":" + s.Name
		}
		n[name]++
	}
	return n
}

// A caller reads the spans of its tasks as it reads their events: a tool that its role does not have
// looks like one that does not exist. Tasks of others do not exist for it.
func TestSpans_OfCaller(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	desk := f.AddRole(t, "desk", "org_management", "artifact", "workspace")
	foreign := f.RunTask(t, "go")
	id, err := f.Runtime.StartTask(t.Context(), org.TaskSpec{Text: "go", Caller: identity.ByCaller("ann", desk.ID)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Runtime.WaitTask(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	caller := f.WithCaller(t, desk.ID)
	denied := 0
	for _, s := range gatewaytest.CollectAll(t, caller.LocalClient().TaskSpans(t.Context(), id)) {
		if s.Status != wire.SpanDenied {
			continue
		}
		if denied++; s.Code != errcode.UnknownTool || s.Group != "" || s.Rule != "" || s.Epoch != 0 {
			t.Errorf("a caller reads %+v", s)
		}
	}
	if denied != 1 {
		t.Errorf("%d denied calls", denied)
	}
	if status, body := caller.SendText(t, fmt.Sprintf("GET /api/v1/tasks/%s/spans", foreign.ID), ""); status != http.StatusNotFound {
		t.Errorf("the task of another: %d %s", status, body)
	}
	if status, body := f.SendText(t, fmt.Sprintf("GET /api/v1/tasks/%s/spans?cursor=bm9uZQ", id), ""); status != http.StatusBadRequest {
		t.Errorf("a cursor that is none: %d %s", status, body)
	}
}
