package property_test

import (
	"context"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Children of groups never add just any tool to a role. The tool is in a group that the role
// lists, or in a descendant that the owner of that group has declared. An agent that may grant a
// group creates and spawns roles with its descendants, and with nothing else. That holds while
// groups are registered, unregistered, and change their children and owners.
func TestHierarchy_GrantsDescendantsAlone(t *testing.T) {
	builtins, reached := newBuiltinGroups(t), situations{}
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 250}, func(t *proptest.Choices) error {
		w, err := newBuiltinOrg(builtins)
		if w == nil {
			return err
		}
		defer w.Close()
		defer func() {
			reached["a role with a group that only a parent covers"] += w.parents
			reached["a role with a group of which only the read part is covered"] += w.beyondReads
		}()
		lead, err := w.hireLead(slices.Concat(ids{toolgroups.OrgManagement, proptest.PickFrom(t, ids{"alpha", "alpha:read"}...)}, someOf(t, 2, withReads(groupIDs))))
		for err == nil && !t.IsEmpty() {
			switch t.Pick(6) {
			case 0, 1, 2:
				err = w.tryCreateRole(t, lead)
			case 3:
				err = w.trySpawnAny(t, lead)
			default:
				err = w.groups.step(t)
			}
			if err == nil {
				err = w.checkSubjects()
			}
		}
		return err
	})
	reached.check(t, "a role with a group that only a parent covers", "a role with a group of which only the read part is covered")
}

// hireLead returns an agent below root that may grant a list of groups.
func (o *checkedOrg) hireLead(grant ids) (*agent, error) {
	use, set := toolgroups.SetOf(toolgroups.OrgManagement), toolgroups.SetOf(grant...)
	made, err := o.CreateRole(context.Background(), newCall(operator), org.RoleSpec{Name: "lead", Use: &use, Grant: &set, AllowUnknown: true})
	if err == nil {
		err = o.addRole(made, &role{}, idsOf(use), idsOf(set))
	}
	if err == nil {
		err = o.trySpawn(o.oracle.agents[o.agents[0]], made.ID)
	}
	return o.oracle.agents[o.agents[len(o.agents)-1]], err
}
