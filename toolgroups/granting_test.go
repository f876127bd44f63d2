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
	bind := func(ids ...toolgroups.GroupID) toolgroups.BoundSet { return s.BindSet(toolgroups.SetOf(ids...)) }
	for name, tt := range map[string]struct {
		sets []toolgroups.BoundSet
		want map[string]toolgroups.GroupID // "" is denied
	}{
		"its own group":              {[]toolgroups.BoundSet{bind("secret")}, map[string]toolgroups.GroupID{"a": "secret", "c": "secret"}},
		"all groups":                 {[]toolgroups.BoundSet{bind("*")}, map[string]toolgroups.GroupID{"a": "secret", "b": "secret"}},
		"its own group and another":  {[]toolgroups.BoundSet{bind("kit", "secret")}, map[string]toolgroups.GroupID{"a": "secret", "b": "secret"}},
		"a toolset":                  {[]toolgroups.BoundSet{bind("kit")}, map[string]toolgroups.GroupID{"a": "kit", "b": "kit", "c": ""}},
		"the first toolset":          {[]toolgroups.BoundSet{bind("case", "kit")}, map[string]toolgroups.GroupID{"a": "case", "b": "kit"}},
		"all groups, limited":        {[]toolgroups.BoundSet{bind("*"), bind("kit")}, map[string]toolgroups.GroupID{"a": "kit", "b": "kit", "c": ""}},
		"a toolset that all have":    {[]toolgroups.BoundSet{bind("case", "kit"), bind("*"), bind("kit")}, map[string]toolgroups.GroupID{"a": "kit"}},
		"its own group, limited":     {[]toolgroups.BoundSet{bind("secret"), bind("kit")}, map[string]toolgroups.GroupID{"a": "secret", "c": ""}},
		"different toolsets":         {[]toolgroups.BoundSet{bind("case"), bind("kit")}, map[string]toolgroups.GroupID{"a": "case", "b": ""}},
		"a toolset of another owner": {[]toolgroups.BoundSet{{Set: toolgroups.SetOf("kit", "case"), Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{"kit": "thief", "case": toolgroups.Config}}}, map[string]toolgroups.GroupID{"a": "case", "b": ""}},
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
