package gateway_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/journal"
)

func TestPaging_CompleteWithoutDuplicates(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	var want []string
	for i := range 7 {
		want = append(want, fmt.Sprintf("role %d/é", i))
	}
	for _, name := range slices.Backward(want) {
		f.AddRole(t, name)
	}
	for _, limit := range []int{1, 2, 3, 7, 8, 5000} {
		var got []string
		path := fmt.Sprintf("/api/v1/roles?limit=%d", limit)
		for next := "x"; next != ""; {
			page := gatewaytest.GetJSON[wire.Page[wire.Role]](t, f, path, "")
			if len(page.Items) > limit {
				t.Fatalf("limit %d: %d items", limit, len(page.Items))
			}
			for _, role := range page.Items {
				got = append(got, role.Name)
			}
			next = page.Next
			path = fmt.Sprintf("/api/v1/roles?limit=%d&cursor=%s", limit, next)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("limit %d (-want +got):\n%s", limit, diff)
		}
	}
}

func TestPaging_ContinuesAfterDeletion(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	for _, name := range []string{"a", "b", "c"} {
		f.AddRole(t, name)
	}
	page := gatewaytest.GetJSON[wire.Page[wire.Role]](t, f, "/api/v1/roles?limit=2", "")
	if _, err := f.LocalClient().DeleteRole(t.Context(), "b", false); err != nil {
		t.Fatal(err)
	}
	page = gatewaytest.GetJSON[wire.Page[wire.Role]](t, f, "/api/v1/roles?limit=2&cursor="+page.Next, "")
	if len(page.Items) != 1 || page.Items[0].Name != "c" || page.Next != "" {
		t.Errorf("got %+v, want c alone", page)
	}
}

func TestPaging_Journal(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	task := f.RunTask(t, "go")
	whole := gatewaytest.CollectAll(t, f.LocalClient().AgentJournal(t.Context(), string(task.Top)))
	if len(whole) < 5 {
		t.Fatalf("the journal has %d events", len(whole))
	}
	var got []uint64
	path := "/api/v1/agents/" + string(task.Top) + "/journal?limit=2"
	for next := "x"; next != ""; {
		page := gatewaytest.GetJSON[wire.Page[journal.Event]](t, f, path, "")
		for _, e := range page.Items {
			got = append(got, e.Seq)
		}
		next = page.Next
		path = "/api/v1/agents/" + string(task.Top) + "/journal?limit=2&cursor=" + next
	}
	var want []uint64
	for _, e := range whole {
		want = append(want, e.Seq)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("numbers (-want +got):\n%s", diff)
	}
}
