package org_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// However many limits callers come with, their permissions take bounded memory. A view that was
// removed denies, and the next question has the permissions of the moment.
func TestResolveView_BoundsLimitedViews(t *testing.T) {
	f := newFixture(t)
	f.register("test", "red", "tool_red")
	role := f.role(identity.ByOperator("ops"), org.RoleSpec{Name: "clerk", Use: new(toolgroups.SetOf("red"))})
	limited := func(i int) identity.Principal {
		p := identity.ByCaller("ann", role.ID)
		p.Within = f.LimitTo(toolgroups.SetOfNames("red", fmt.Sprint("none", i)))
		return p
	}
	first, _ := f.ResolveView(limited(0))
	busy, _ := f.ResolveView(limited(1))
	const many = 3000
	for i := range many {
		ref, _ := f.ResolveView(limited(i))
		if got := ref.CurrentView().ToolNames(); !slices.Equal(got, []string{"tool_red"}) {
			t.Fatalf("limit %d: %v", i, got)
		}
		f.ResolveView(limited(1))
	}
	if n := f.ScopeCount(); n > many/2 {
		t.Errorf("%d views", n)
	}
	if got := first.CurrentView().ToolNames(); len(got) > 0 {
		t.Errorf("a removed view allows %v", got)
	}
	if got := busy.CurrentView().ToolNames(); len(got) == 0 {
		t.Error("a view that is used was removed")
	}
	f.update(role.ID, org.RoleSpec{Name: "clerk", Use: new(toolgroups.SetOf())})
	for _, i := range []int{0, 1, many - 1} {
		if ref, _ := f.ResolveView(limited(i)); len(ref.CurrentView().ToolNames()) > 0 {
			t.Errorf("limit %d: allowed after the role has lost the group", i)
		}
	}
}
