package gateway_test

import (
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// officeHours are the hours of the group office.
type officeHours struct{}

func (officeHours) Zone() string    { return "Europe/Berlin" }
func (officeHours) Spans() []string { return []string{"mon-fri 08:00-18:00"} }
func (officeHours) NextChange() time.Time {
	return time.Date(2026, 6, 4, 8, 0, 0, 0, time.FixedZone("CEST", 2*60*60))
}

// addOffice registers the group office with the tool ring of the group phones, closed, and
// returns a function that opens and closes it. The role desk uses it.
func addOffice(t *testing.T, f *gatewaytest.Fixture) (role org.Role, switchTo func(open bool)) {
	t.Helper()
	f.AddTool(t, "phones", "ring")
	m := f.Runtime.GroupManager()
	owner, err := grouptest.ClaimOwner(m, toolgroups.Config)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := owner.RegisterGroup(toolgroups.Group{ID: "office", Refs: []string{"ring"}, Hours: officeHours{}}); err != nil {
		t.Fatal(err)
	}
	return f.AddRole(t, "desk", "office"), func(open bool) {
		t.Helper()
		if err := m.Update(func(tx *toolgroups.Tx) error { return tx.SwitchGroup(owner, "office", open) }); err != nil {
			t.Fatal(err)
		}
	}
}

// The operator sees the hours of a group and its next change, open or closed. A caller sees
// a group of its role while it is open.
func TestGroups_ShowHours(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	role, switchTo := addOffice(t, f)
	caller := f.WithCaller(t, role.ID)
	for _, open := range []bool{false, true, false} {
		switchTo(open)
		g := gatewaytest.GetJSON[toolgroups.GroupInfo](t, f, "/api/v1/tool-groups/office", "")
		if h := g.Hours; h == nil || h.Closed == open || h.Zone != "Europe/Berlin" || len(h.Open) != 1 || !h.NextChange.Equal(officeHours{}.NextChange()) || (g.Count == 1) != open {
			t.Errorf("open %t: %+v, hours %+v", open, g, g.Hours)
		}
		if phones := gatewaytest.GetJSON[toolgroups.GroupInfo](t, f, "/api/v1/tool-groups/phones", ""); phones.Hours != nil || phones.Count != 1 {
			t.Errorf("phones: %+v", phones)
		}
		_, list := caller.SendText(t, "/api/v1/tool-groups", "")
		if got := strings.Contains(list, "office") && strings.Contains(list, "nextChange"); got != open || strings.Contains(list, "phones") {
			t.Errorf("open %t: the caller sees %s", open, list)
		}
	}
}

// While a group is closed, callers of its role cannot tell it and its tools from what does
// not exist.
func TestHours_HideFromCallers(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	role, switchTo := addOffice(t, f)
	caller := f.WithCaller(t, role.ID)
	requests := [][2]string{
		{"/api/v1/tool-groups/office", ""}, {"/api/v1/tools/ring", ""}, {"/api/v1/tools?group=office", ""}, {"/api/tool/ring", ""},
		{"POST /api/tool/ring/invoke", "{}"}, {"POST /api/v1/can", `{"tool":"ring"}`}, {"POST /api/v1/can", `{"who":"ring"}`},
		{"POST /api/v1/can", `{"tool":"ring","group":["office"]}`},
	}
	rename := strings.NewReplacer("ring", "zing", "office", "offica").Replace
	for _, r := range requests {
		status, text := caller.SendText(t, r[0], r[1])
		otherStatus, other := caller.SendText(t, rename(r[0]), rename(r[1]))
		if status != otherStatus || rename(text) != other {
			t.Errorf("closed: %s %s: %d %s; of what does not exist: %d %s", r[0], r[1], status, text, otherStatus, other)
		}
	}
	switchTo(true)
	for _, r := range requests {
		status, text := caller.SendText(t, r[0], r[1])
		if otherStatus, other := caller.SendText(t, rename(r[0]), rename(r[1])); status == otherStatus && rename(text) == other {
			t.Errorf("open: %s %s: %d %s", r[0], r[1], status, text)
		}
	}
}

// The operator is told that hours deny a tool, and until when.
func TestCan_NamesClosedGroup(t *testing.T) {
	f := newFixture(t, gatewaytest.TeamModel)
	_, switchTo := addOffice(t, f)
	const closed = "the toolGroups of role desk: group office is closed by its hours until 2026-06-04T08:00:00+02:00 (Europe/Berlin)"
	ask := func(question string) wire.Verdict {
		t.Helper()
		return gatewaytest.GetJSON[wire.Verdict](t, f, "POST /api/v1/can", question)
	}
	got := ask(`{"role":"desk","tool":"ring","why":true}`)
	if got.Code != errcode.ToolNotAvailable || got.Rule != closed || !strings.HasSuffix(got.Reason, ": "+closed) || len(got.Limits) == 0 ||
		got.Limits[0].Closed != "office" || !got.Limits[0].Decides {
		t.Errorf("closed: %+v", got)
	}
	if got := ask(`{"role":"desk","tool":"read_file"}`); strings.Contains(got.Reason+got.Rule, "closed") {
		t.Errorf("a tool of no group of the role: %+v", got)
	}
	f.AddRole(t, "both", "office", "phones")
	if got := ask(`{"role":"both","tool":"ring"}`); !got.Allowed || strings.Contains(got.Reason+got.Rule, "closed") {
		t.Errorf("a tool of another group of the role: %+v", got)
	}
	switchTo(true)
	if got := ask(`{"role":"desk","tool":"ring"}`); !got.Allowed || got.Group != "office" || strings.Contains(got.Reason+got.Rule, "closed") {
		t.Errorf("open: %+v", got)
	}
}
