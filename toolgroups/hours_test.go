package toolgroups_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// stubHours are hours that change at a fixed time.
type stubHours time.Time

func (h stubHours) Zone() string          { return "UTC" }
func (h stubHours) Spans() []string       { return []string{"mon 08:00-09:00"} }
func (h stubHours) NextChange() time.Time { return time.Time(h) }

var changeAt = stubHours(time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC))

// hourFixture is a registry with the tools read and write and toolsets of them.
type hourFixture struct {
	*toolgroups.Manager
	t      *testing.T
	config *toolgroups.Owner
	disk   *toolgroups.Owner
}

func newHourFixture(t *testing.T) *hourFixture {
	t.Helper()
	m := toolgroups.NewManager()
	f := &hourFixture{Manager: m, t: t, config: claim(t, m, toolgroups.Config), disk: claim(t, m, "disk")}
	f.must(f.disk.RegisterGroup(toolgroups.Group{ID: "disk", Tools: stubs("read", "write")}))
	f.must(f.config.RegisterGroup(f.office()))
	f.must(f.config.RegisterGroup(toolgroups.Group{ID: "reading", Refs: []string{"read"}}))
	return f
}

// office is a closed toolset with hours.
func (f *hourFixture) office() toolgroups.Group {
	return toolgroups.Group{ID: "office", Refs: []string{"write", "read"}, Hours: changeAt, Prompts: []toolgroups.Prompt{stubPrompt("letter")}}
}

func (f *hourFixture) must(_ toolgroups.WarningCode, err error) {
	f.t.Helper()
	if err != nil {
		f.t.Fatal(err)
	}
}

func (f *hourFixture) switchTo(open bool) error {
	return f.Update(func(tx *toolgroups.Tx) error { return tx.SwitchGroup(f.config, "office", open) })
}

// allowed lists the tools and prompts of groups, within limits.
func (f *hourFixture) allowed(use toolgroups.GroupSet, limits ...toolgroups.GroupSet) string {
	s := f.CurrentSnapshot()
	limited := make([]toolgroups.PinnedSet, len(limits))
	for i, l := range limits {
		limited[i] = s.PinOwners(l)
	}
	v := s.Compile(s.PinOwners(use), limited...)
	return strings.Join(append(v.ToolNames(), promptNames(v.ListPrompts(""))...), " ")
}

// A group with hours is closed until it is opened. Closed, it has neither tools nor prompts,
// neither as what a role uses nor as what limits it. Its tools stay in other groups.
func TestSwitchGroup_ClosedGroupHasNothing(t *testing.T) {
	f := newHourFixture(t)
	check := func(state string, want ...string) {
		t.Helper()
		got := []string{
			f.allowed(toolgroups.SetOf("office")), f.allowed(toolgroups.SetOf("office", "reading")), f.allowed(toolgroups.AllGroups()),
			f.allowed(toolgroups.SetOf("disk"), toolgroups.SetOf("office")), f.allowed(toolgroups.SetOf("office"), toolgroups.SetOf("disk")),
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", state, got, want)
		}
		s := f.CurrentSnapshot()
		inGroup := want[0] != ""
		if got := s.InGroups("write", "office"); got != inGroup || len(s.ToolDefinitions("office")) > 0 != inGroup {
			t.Errorf("%s: write in office %t", state, got)
		}
		if !s.CoversGroup(s.PinOwners(toolgroups.SetOf("office")), "office") {
			t.Errorf("%s: the group does not exist", state)
		}
	}
	check("registered", "", "read", "read write", "", "")
	if err := f.switchTo(true); err != nil {
		t.Fatal(err)
	}
	check("open", "write read letter", "write read letter", "read write letter", "read write", "write read")
	if err := f.switchTo(false); err != nil {
		t.Fatal(err)
	}
	check("closed", "", "read", "read write", "", "")
	office := f.office()
	office.Open = true
	f.must(f.config.RegisterGroup(office))
	check("registered open", "write read letter", "write read letter", "read write letter", "read write", "write read")
	office.Hours, office.Open = nil, false
	f.must(f.config.RegisterGroup(office))
	check("without hours", "write read letter", "write read letter", "read write letter", "read write", "write read")
}

func TestSwitchGroup_IsReported(t *testing.T) {
	f := newHourFixture(t)
	var changes []string
	f.SetCommit(func(c toolgroups.Change) error {
		c.Publish()
		for _, g := range c.Groups {
			changes = append(changes, fmt.Sprintf("%s switched %t closed %t tools %v", g.Group.ID, g.Switched, g.Group.Hours.Closed, g.Group.Tools))
		}
		return nil
	})
	var watched []toolgroups.GroupID
	f.WatchGroups(func(ids []toolgroups.GroupID) { watched = append(watched, ids...) })
	before, _ := f.CurrentSnapshot().LookupGroup("office")
	for _, open := range []bool{true, true, false, false} { // the second of each changes nothing
		if err := f.switchTo(open); err != nil {
			t.Fatal(err)
		}
	}
	want := []string{"office switched true closed false tools [write read]", "office switched true closed true tools []"}
	if !slices.Equal(changes, want) || len(watched) != 2 {
		t.Errorf("changes %q, watched %v", changes, watched)
	}
	after, _ := f.CurrentSnapshot().LookupGroup("office")
	if !after.RegisteredAt.Equal(before.RegisteredAt) || !after.Hours.NextChange.Equal(time.Time(changeAt)) || after.Hours.Zone != "UTC" || len(after.Hours.Open) != 1 {
		t.Errorf("before %+v, after %+v %+v", before, after, after.Hours)
	}
}

// A switch does not bind references again: a tool that is missing meanwhile comes back, and
// one that another owner has registered since stays out.
func TestSwitchGroup_KeepsReferences(t *testing.T) {
	f := newHourFixture(t)
	if err := f.disk.UnregisterGroup("disk"); err != nil {
		t.Fatal(err)
	}
	f.must(claim(t, f.Manager, "other").RegisterGroup(toolgroups.Group{ID: "other", Tools: stubs("read")}))
	if err := f.switchTo(true); err != nil {
		t.Fatal(err)
	}
	if got := f.allowed(toolgroups.SetOf("office")); got != "letter" {
		t.Errorf("without the tools: %q", got)
	}
	f.must(f.disk.RegisterGroup(toolgroups.Group{ID: "disk", Tools: stubs("write")}))
	if got := f.allowed(toolgroups.SetOf("office")); got != "write letter" {
		t.Errorf("the tool is back: %q", got)
	}
}

func TestSwitchGroup_Rejects(t *testing.T) {
	f := newHourFixture(t)
	other := claim(t, f.Manager, "other")
	for name, tt := range map[string]struct {
		do   func(*toolgroups.Tx) error
		code errcode.Code
		text string
	}{
		"unknown group": {func(tx *toolgroups.Tx) error { return tx.SwitchGroup(f.config, "none", true) }, errcode.GroupNotFound, `"none"`},
		"other owner":   {func(tx *toolgroups.Tx) error { return tx.SwitchGroup(other, "office", true) }, errcode.GroupNotFound, "other has no group"},
		"zero owner":    {func(tx *toolgroups.Tx) error { return tx.SwitchGroup(nil, "office", true) }, errcode.InvalidGroupDef, "not claimed"},
		"without hours": {func(tx *toolgroups.Tx) error { return tx.SwitchGroup(f.config, "reading", false) }, errcode.InvalidGroupDef, "has no hours"},
		"removed": {func(tx *toolgroups.Tx) error {
			if err := tx.UnregisterGroup(f.config, "office"); err != nil {
				return err
			}
			return tx.SwitchGroup(f.config, "office", true)
		}, errcode.GroupNotFound, "office"},
		"registered": {func(tx *toolgroups.Tx) error {
			if _, err := tx.RegisterGroup(f.config, f.office()); err != nil {
				return err
			}
			return tx.SwitchGroup(f.config, "office", true)
		}, errcode.InvalidGroupDef, "register it open or closed"},
		"tools of its own": {func(tx *toolgroups.Tx) error {
			_, err := tx.RegisterGroup(f.config, toolgroups.Group{ID: "own", Tools: stubs("own"), Hours: changeAt})
			return err
		}, errcode.InvalidGroupDef, "tools of its own"},
	} {
		t.Run(name, func(t *testing.T) {
			before := render(f.CurrentSnapshot())
			wantCode(t, f.Update(tt.do), tt.code, tt.text)
			if after := render(f.CurrentSnapshot()); after != before {
				t.Errorf("before %s, after %s", before, after)
			}
		})
	}
	wantCode(t, f.config.ReplaceTools("office", stubs("own")), errcode.InvalidGroupDef, "has hours")
}

// A group that is switched can be removed or registered again in the same change.
func TestSwitchGroup_WithOtherChanges(t *testing.T) {
	f := newHourFixture(t)
	err := f.Update(func(tx *toolgroups.Tx) error {
		if err := tx.SwitchGroup(f.config, "office", true); err != nil {
			return err
		}
		_, err := tx.RegisterGroup(f.config, f.office())
		return err
	})
	if got := f.allowed(toolgroups.SetOf("office")); err != nil || got != "" {
		t.Errorf("registered closed: %q, %v", got, err)
	}
	err = f.Update(func(tx *toolgroups.Tx) error {
		if err := tx.SwitchGroup(f.config, "office", true); err != nil {
			return err
		}
		return tx.UnregisterGroup(f.config, "office")
	})
	if _, there := f.CurrentSnapshot().LookupGroup("office"); err != nil || there {
		t.Errorf("removed: there %t, %v", there, err)
	}
}

// A switch is made in the registry as it is when the change is made.
func TestSwitchGroup_AfterOtherChange(t *testing.T) {
	for name, tt := range map[string]struct {
		meanwhile func(*hourFixture) error
		code      errcode.Code
		want      string
	}{
		"other references": {func(f *hourFixture) error {
			_, err := f.config.RegisterGroup(toolgroups.Group{ID: "office", Refs: []string{"read"}, Hours: changeAt})
			return err
		}, "", "read"},
		"no hours": {func(f *hourFixture) error {
			_, err := f.config.RegisterGroup(toolgroups.Group{ID: "office", Refs: []string{"read"}})
			return err
		}, errcode.InvalidGroupDef, "read"},
		"removed": {func(f *hourFixture) error { return f.config.UnregisterGroup("office") }, errcode.GroupNotFound, ""},
	} {
		t.Run(name, func(t *testing.T) {
			f := newHourFixture(t)
			err := f.Update(func(tx *toolgroups.Tx) error {
				if err := tx.SwitchGroup(f.config, "office", true); err != nil {
					return err
				}
				return tt.meanwhile(f)
			})
			if got := f.allowed(toolgroups.SetOf("office")); got != tt.want {
				t.Errorf("allowed %q, want %q", got, tt.want)
			}
			if tt.code != "" {
				wantCode(t, err, tt.code, "office")
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestFindClosed(t *testing.T) {
	f := newHourFixture(t)
	find := func(b toolgroups.PinnedSet, tool string) toolgroups.GroupID {
		s := f.CurrentSnapshot()
		g, _ := s.FindClosed(b, lookup(t, s, tool))
		return g.ID
	}
	pin := func(set toolgroups.GroupSet) toolgroups.PinnedSet { return f.CurrentSnapshot().PinOwners(set) }
	only := pin(toolgroups.SetOf("office"))
	only.Only = "other"
	f.must(claim(t, f.Manager, "else").RegisterGroup(toolgroups.Group{ID: "else", Tools: stubs("else")}))
	for _, tt := range []struct {
		in   toolgroups.PinnedSet
		tool string
		want toolgroups.GroupID
	}{
		{pin(toolgroups.SetOf("reading", "office")), "write", "office"},
		{pin(toolgroups.SetOf("reading")), "write", ""},
		{pin(toolgroups.SetOf("office")), "else", ""},
		{only, "write", ""},
	} {
		if got := find(tt.in, tt.tool); got != tt.want {
			t.Errorf("%v, %s: %q, want %q", tt.in, tt.tool, got, tt.want)
		}
	}
	if err := f.switchTo(true); err != nil {
		t.Fatal(err)
	}
	if got := find(pin(toolgroups.SetOf("office")), "write"); got != "" {
		t.Errorf("open: %q", got)
	}
}

// A closed group holds nothing of its children, however it is reached, and as a limit it
// allows nothing of them. A child that opens changes the groups above.
func TestSwitchGroup_ClosedParentHoldsNoChildren(t *testing.T) {
	f := newHourFixture(t)
	closed := f.office()
	closed.Refs, closed.Prompts, closed.Children = nil, nil, []toolgroups.GroupID{"desk"}
	f.must(f.config.RegisterGroup(closed))
	f.must(f.config.RegisterGroup(toolgroups.Group{ID: "desk", Refs: []string{"read"}, Prompts: []toolgroups.Prompt{stubPrompt("letter")}}))
	f.must(f.config.RegisterGroup(toolgroups.Group{ID: "house", Children: []toolgroups.GroupID{"office"}}))
	var changed []toolgroups.GroupID
	f.WatchGroups(func(ids []toolgroups.GroupID) { changed = ids })
	check := func(state string, want ...string) {
		t.Helper()
		desk, office := toolgroups.SetOf("desk"), toolgroups.SetOf("office")
		got := []string{f.allowed(office), f.allowed(toolgroups.SetOf("house")), f.allowed(desk, office), f.allowed(desk)}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", state, got, want)
		}
	}
	check("closed", "", "", "", "read letter")
	if err := f.switchTo(true); err != nil {
		t.Fatal(err)
	}
	check("open", "read letter", "read letter", "read letter", "read letter")
	if want := []toolgroups.GroupID{"house", "office"}; !slices.Equal(changed, want) {
		t.Errorf("watchers were told of %v, want %v", changed, want)
	}
	if err := f.switchTo(false); err != nil {
		t.Fatal(err)
	}
	check("closed again", "", "", "", "read letter")
}

// While a group is closed, the tools that it has when it is open are found, but none that bounds or
// states never let run.
func TestVisibleWhenOpen_ClosedGroups(t *testing.T) {
	f := newHourFixture(t)
	nowhere := &stub{tool.Definition{Name: "nowhere", Input: json.RawMessage(anyObject), States: []string{}}}
	f.must(f.disk.RegisterGroup(toolgroups.Group{ID: "stateless", Tools: []tool.Tool{nowhere}}))
	s := f.CurrentSnapshot()
	office := s.PinOwners(toolgroups.SetOf("office", "stateless", "unknown"))
	bound, other := office, office
	bound.Bind = parsed(t, `{"write": {"/amount": {"min": 2, "max": 1}}}`)
	other.Owners = map[toolgroups.GroupID]toolgroups.GroupOwner{"office": "former"}
	own := s.PinOwners(toolgroups.AllGroups())
	own.Only = "somebody"
	for name, c := range map[string]struct {
		set  toolgroups.PinnedSet
		want string
	}{
		"a closed group": {office, "write read"}, "all groups": {s.PinOwners(toolgroups.AllGroups()), "read write"},
		"a bound that lets nothing through": {bound, "read"}, "a group of another owner": {other, ""}, "tools of another owner": {own, ""},
	} {
		var names []string
		for _, h := range s.VisibleWhenOpen(c.set) {
			names = append(names, h.Definition.Name)
		}
		if got := strings.Join(names, " "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
