package property_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// recordedCall is a call that was allowed.
type recordedCall struct {
	by   identity.Principal
	tool string
}

// recordedSpawn is an agent that was spawned.
type recordedSpawn struct {
	parent identity.AgentID
	role   identity.RoleID
}

// recorded lists the allowed calls of agents and callers, and the spawned agents, of the record.
func (c *callerOrg) recorded() (calls []recordedCall, spawns []recordedSpawn, err error) {
	for e, err := range c.JournalStore().FollowEvents(context.Background(), 0, journal.StoredOnly) {
		if err != nil {
			return nil, nil, err
		}
		switch b := e.Body.(type) {
		case journal.ToolCall:
			by, external := identity.ParseCaller(b.Caller)
			if !external {
				by = identity.ByAgent(e.Agent)
			}
			if b.Decision == journal.Allowed {
				calls = append(calls, recordedCall{by, b.Tool})
			}
		case journal.AgentSpawned:
			spawns = append(spawns, recordedSpawn{b.Parent, b.RoleID})
		}
	}
	return calls, spawns, nil
}

// mayCall reports whether a principal may call a tool in some state.
func (c *callerOrg) mayCall(r recordedCall) bool {
	ref, _ := c.Org().ResolveView(r.by)
	h, ok := c.groups.CurrentSnapshot().LookupTool(r.tool)
	return ok && ref.CurrentView().HasTool(h)
}

// maySpawn reports whether an agent may spawn a role, as the naive model has it.
func (c *callerOrg) maySpawn(s recordedSpawn) bool {
	parent, r := c.oracle.agents[s.parent], c.oracle.roles[s.role]
	return parent != nil && !parent.gone && r != nil && !r.gone && c.oracle.mayGrant(c.oracle.grantLimits(parent), r.use.ids, r.grant.ids)
}

// possible returns the recorded calls and spawns that are permitted now.
func (c *callerOrg) possible() (calls []recordedCall, spawns []recordedSpawn, err error) {
	calls, spawns, err = c.recorded()
	calls = slices.DeleteFunc(calls, func(r recordedCall) bool { return !c.mayCall(r) })
	spawns = slices.DeleteFunc(spawns, func(s recordedSpawn) bool { return !c.maySpawn(s) })
	return calls, spawns, err
}

// isDangling reports whether a role names a group that has another owner now. A lint drops it
// rather than bind it to that.
func (c *callerOrg) isDangling(r *role) bool {
	return slices.ContainsFunc(slices.Concat(r.use.ids, r.grant.ids), func(id toolgroups.GroupID) bool {
		owner := c.oracle.registry.OwnerOf(id)
		return owner != "" && owner != cmp.Or(r.use.owners[id], r.grant.owners[id])
	})
}

// follow writes what a lint of a role recommends. No principal gains a tool, and what the record shows
// as used stays permitted.
func (c *callerOrg) follow(id identity.RoleID, reached situations) error {
	calls, spawns, err := c.possible()
	if err != nil {
		return err
	}
	lint, err := c.LintRole(context.Background(), runtime.LintQuery{Role: id})
	if err != nil || !lint.IsUsed() {
		return err
	}
	r, before := c.oracle.roles[id], c.callableNow()
	dangling := c.isDangling(r)
	spec := org.RoleSpec{Use: &lint.Use.Kept, Grant: &lint.Grant.Kept, AllowUnknown: true}
	if lint.Narrows() {
		_, diff, err := c.UpdateRole(operator, id, spec, false)
		if err != nil {
			return err
		}
		if err := hasGains(diff); err != nil {
			return err
		}
		r.use, r.grant = c.repin(r, idsOf(lint.Use.Kept)), c.repin(r, idsOf(lint.Grant.Kept))
		if err := c.checkDiff(diff, before); err != nil {
			return err
		}
	}
	for _, call := range calls {
		if !c.mayCall(call) {
			return fmt.Errorf("after %v in place of %v, and the grant %v in place of %v, %s may not call %s", lint.Use.Kept, lint.Use.Held, lint.Grant.Kept, lint.Grant.Held, call.by, call.tool)
		}
	}
	for _, spawn := range spawns {
		if !dangling && !c.maySpawn(spawn) {
			return fmt.Errorf("with the grant %v in place of %v, agent %s may not spawn role %s", lint.Grant.Kept, lint.Grant.Held, spawn.parent, spawn.role)
		}
	}
	reached.count(lint, len(spawns) > 0)
	again, err := c.LintRole(context.Background(), runtime.LintQuery{Role: id})
	if err == nil && again.Narrows() {
		err = fmt.Errorf("after %v and the grant %v, a lint recommends %v and %v", lint.Use.Kept, lint.Grant.Kept, again.Use.Kept, again.Grant.Kept)
	}
	return err
}

// hasGains returns an error if a principal gains something by a change.
func hasGains(d org.PermissionDiff) error {
	for _, a := range d.Agents {
		if len(a.Gains) > 0 {
			return fmt.Errorf("agent %s gains %v", a.Agent, a.Gains)
		}
	}
	for _, r := range d.Roles {
		if len(r.Gains) > 0 {
			return fmt.Errorf("role %s gains %v", r.ID, r.Gains)
		}
	}
	return nil
}

// count counts what a lint has narrowed.
func (s situations) count(l runtime.RoleLint, spawned bool) {
	for name, is := range map[string]bool{
		"fewer tools to use":   l.Calls > 0 && l.Use.KeptTools < l.Use.HeldTools,
		"fewer tools to grant": l.Others+l.Grants > 0 && l.Grant.KeptTools < l.Grant.HeldTools,
		"calls of others":      l.Others > 0,
		"agents were spawned":  spawned && l.Grants > 0,
		"a read part is enough": slices.ContainsFunc(slices.Concat(l.Use.Groups, l.Grant.Groups), func(g runtime.GroupLint) bool {
			_, reads := grouptest.Whole(g.ID)
			return reads && g.Kept && !g.Held
		}),
	} {
		if is {
			s[name]++
		}
	}
}

// hireGrantor spawns an agent below root that uses and may grant a list of groups.
func (c *callerOrg) hireGrantor(list ids) error {
	set, root := toolgroups.SetOf(list...), c.oracle.agents[c.agents[0]]
	made, err := c.CreateRole(context.Background(), newCall(operator), org.RoleSpec{Name: "grantor", Use: &set, Grant: &set, AllowUnknown: true})
	if err == nil {
		err = c.addRole(made, &role{}, idsOf(set), idsOf(set))
	}
	if err != nil {
		return err
	}
	got, err := c.SpawnAgent(context.Background(), newCall(identity.ByAgent(root.id)), org.SpawnSpec{Role: made.ID, Brief: taskBrief}, nil)
	if err == nil {
		c.addAgent(got.ID, &agent{role: made.ID, parent: root, state: root.state})
	}
	return err
}

// lintStep is a step with more calls of agents that others have created.
func (c *callerOrg) lintStep(t *proptest.Choices) error {
	switch t.Pick(8) {
	case 0:
		return c.createRole(t, c.anyAgent(t))
	case 1:
		return c.spawn(t)
	case 2, 3, 4:
		return c.callInTurn(t)
	}
	return c.step(t)
}

// A change that the lint of any role recommends, in any organization, removes nothing that the
// record shows as used, and adds nothing.
func TestLint_LosesNothingAndWidensNothing(t *testing.T) {
	dir, n, reached := newStoreDir(t), 0, situations{}
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 350}, func(t *proptest.Choices) error {
		n++
		w, err := newCheckedOrg(fmt.Sprint(dir, "/", n))
		if w == nil {
			return err
		}
		c := &callerOrg{checkedOrg: w, callers: map[identity.Principal]*agent{}}
		if err == nil {
			err = c.hireGrantor(slices.Concat(ids{toolgroups.OrgManagement, "alpha"}, someOf(t, 4, roleGroupIDs)))
		}
		for err == nil && !t.IsEmpty() {
			err = c.lintStep(t)
		}
		for _, id := range c.roles {
			if err == nil && !c.oracle.roles[id].gone {
				err = c.follow(id, reached)
			}
		}
		return cmp.Or(err, w.fixture.close(!w.damaged))
	})
	reached.check(t, "fewer tools to use", "fewer tools to grant", "calls of others", "agents were spawned", "a read part is enough")
}
