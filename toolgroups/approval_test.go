package toolgroups_test

import (
	"testing"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// A rule selects the tools that fit all that it names: by name, by a group or the parent of a
// group, and by effect class. Equal rules count once.
func TestView_ApprovalRules(t *testing.T) {
	m := toolgroups.NewManager()
	register(t, m, "o", toolgroups.Group{ID: "g", Children: []toolgroups.GroupID{"below"}, Tools: stubs("a", "b")})
	register(t, m, "o", toolgroups.Group{ID: "below", Tools: stubs("c")})
	register(t, m, "o", toolgroups.Group{ID: "other", Tools: []tool.Tool{toolInStates("d")}})
	s := m.CurrentSnapshot()
	from := approval.Approvers{Any: []approval.Quorum{{Operator: true}}}
	tests := []struct {
		name string
		rule approval.Rule
		want string
	}{
		{"tools", approval.Rule{Tools: []string{"a", "c", "zzz"}}, "ac"},
		{"group with its children", approval.Rule{Groups: []string{"g"}}, "abc"},
		{"all groups", approval.Rule{Groups: []string{"*"}}, "abcd"},
		{"unknown group", approval.Rule{Groups: []string{"lost"}}, ""},
		{"effect", approval.Rule{Effect: "mutating"}, "abcd"},
		{"other effect", approval.Rule{Effect: "readOnly"}, ""},
		{"group and tool", approval.Rule{Groups: []string{"below"}, Tools: []string{"a", "c"}}, "c"},
		{"nothing named", approval.Rule{}, "abcd"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			tt.rule.From = from
			view := s.Compile(s.PinOwners(toolgroups.AllGroups()))
			s.SetApprovalRules(view, []approval.Rule{tt.rule, tt.rule})
			got := ""
			for _, h := range s.ListTools() {
				rules := view.RuleEvaluation(toolgroups.Granted).ApprovalRules(h)
				if len(rules) > 1 {
					t.Errorf("%s: %d rules", h.Definition.Name, len(rules))
				}
				for range rules {
					got += h.Definition.Name
				}
			}
			if got != tt.want {
				t.Errorf("%q, want %q", got, tt.want)
			}
		})
	}
	if h, _ := s.LookupTool("a"); new(toolgroups.Evaluation).ApprovalRules(h) != nil {
		t.Error("the zero Evaluation has rules")
	}
}

// A rule by a group with hours selects its tools also while the group is closed: another group may
// still have them.
func TestView_ApprovalRulesOfClosedGroup(t *testing.T) {
	f := newHourFixture(t)
	f.must(f.config.RegisterGroup(toolgroups.Group{ID: "above", Children: []toolgroups.GroupID{"office"}}))
	for _, open := range []bool{true, false} {
		if err := f.switchTo(open); err != nil {
			t.Fatal(err)
		}
		for _, group := range []string{"office", "above"} {
			s := f.CurrentSnapshot()
			view := s.Compile(s.PinOwners(toolgroups.SetOf("disk")))
			s.SetApprovalRules(view, []approval.Rule{{Groups: []string{group}, From: approval.Approvers{Any: []approval.Quorum{{Operator: true}}}}})
			h, _ := s.LookupTool("write")
			if rules := view.RuleEvaluation(toolgroups.Granted).ApprovalRules(h); len(rules) != 1 {
				t.Errorf("%s is open %v: %d rules", group, open, len(rules))
			}
		}
	}
}
