package toolgroups_test

import (
	"testing"

	"github.com/rolecall/rolecall/toolgroups"
)

// A View names the group through which it allows a tool. That is the own group of the tool
// if all sets have it, else a group that all sets have. Otherwise it is a group of the set
// that comes first.
func TestView_GrantingGroup(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "secret", Tools: stubs("a", "b", "c")})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "kit", Refs: []string{"a", "b"}})
	register(t, m, toolgroups.Config, toolgroups.Group{ID: "case", Refs: []string{"a"}})
	s := m.CurrentSnapshot()
	pin := func(ids ...toolgroups.GroupID) toolgroups.PinnedSet { return s.PinOwners(toolgroups.SetOf(ids...)) }
	for name, tt := range map[string]struct {
		sets []toolgroups.PinnedSet
		want map[string]toolgroups.GroupID // "" is denied
	}{
		"its own group":              {[]toolgroups.PinnedSet{pin("secret")}, map[string]toolgroups.GroupID{"a": "secret", "c": "secret"}},
		"all groups":                 {[]toolgroups.PinnedSet{pin("*")}, map[string]toolgroups.GroupID{"a": "secret", "b": "secret"}},
		"its own group and another":  {[]toolgroups.PinnedSet{pin("kit", "secret")}, map[string]toolgroups.GroupID{"a": "secret", "b": "secret"}},
		"a toolset":                  {[]toolgroups.PinnedSet{pin("kit")}, map[string]toolgroups.GroupID{"a": "kit", "b": "kit", "c": ""}},
		"the first toolset":          {[]toolgroups.PinnedSet{pin("case", "kit")}, map[string]toolgroups.GroupID{"a": "case", "b": "kit"}},
		"all groups, limited":        {[]toolgroups.PinnedSet{pin("*"), pin("kit")}, map[string]toolgroups.GroupID{"a": "kit", "b": "kit", "c": ""}},
		"a toolset that all have":    {[]toolgroups.PinnedSet{pin("case", "kit"), pin("*"), pin("kit")}, map[string]toolgroups.GroupID{"a": "kit"}},
		"its own group, limited":     {[]toolgroups.PinnedSet{pin("secret"), pin("kit")}, map[string]toolgroups.GroupID{"a": "secret", "c": ""}},
		"different toolsets":         {[]toolgroups.PinnedSet{pin("case"), pin("kit")}, map[string]toolgroups.GroupID{"a": "case", "b": ""}},
		"a toolset of another owner": {[]toolgroups.PinnedSet{{Set: toolgroups.SetOf("kit", "case"), Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{"kit": "thief", "case": toolgroups.Config}}}, map[string]toolgroups.GroupID{"a": "case", "b": ""}},
	} {
		t.Run(name, func(t *testing.T) {
			view := s.Compile(tt.sets[0], tt.sets[1:]...)
			for tool, want := range tt.want {
				h, _ := s.LookupTool(tool)
				if got := view.GrantingGroup(h); got != want {
					t.Errorf("%s is granted through %q, want %q", tool, got, want)
				}
				if got := view.RuleEvaluation(toolgroups.Granted).GrantingGroup(h); got != want {
					t.Errorf("the decision on %s names %q, want %q", tool, got, want)
				}
			}
		})
	}
	h, _ := s.LookupTool("a")
	if got := new(toolgroups.Evaluation).GrantingGroup(h); got != "" {
		t.Errorf("a zero Evaluation names %q", got)
	}
}
