package gateway_test

import (
	"slices"
	"testing"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/toolgroups"
)

// A group is shown with its children and its fallback, as far as the sender sees them.
func TestShowGroup_ChildrenAndFallback(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	f.AddTool(t, "docs", "docs_read")
	f.AddTool(t, "hidden", "secret_tool")
	for _, g := range []toolgroups.Group{
		{ID: "reading", Refs: []string{"docs_read"}},
		{ID: "shelf", Children: []toolgroups.GroupID{"reading", "later"}, Fallback: []toolgroups.GroupID{"hidden", "reading", "none"}},
	} {
		if _, err := grouptest.RegisterGroup(f.Runtime.GroupManager(), toolgroups.Config, g); err != nil {
			t.Fatal(err)
		}
	}
	type ids = []toolgroups.GroupID
	check := func(who string, api *client.Client, children, fallback ids) {
		t.Helper()
		got, err := api.FindGroup(t.Context(), "shelf")
		if err != nil || !slices.Equal(got.Children, children) || !slices.Equal(got.Fallback, fallback) || !slices.Equal(got.Tools, []string{"docs_read"}) {
			t.Errorf("to %s: %+v, %v", who, got, err)
		}
		for _, one := range gatewaytest.CollectAll(t, api.ListGroups(t.Context())) {
			if one.ID == "shelf" && (!slices.Equal(one.Children, children) || !slices.Equal(one.Fallback, fallback)) {
				t.Errorf("listed to %s: %+v", who, one)
			}
		}
	}
	check("the operator", f.LocalClient(), ids{"reading"}, ids{"hidden", "reading"})
	role := f.AddRole(t, "reader", "shelf")
	check("a caller", f.WithCaller(t, role.ID).LocalClient(), ids{"reading"}, ids{"reading"})
}
