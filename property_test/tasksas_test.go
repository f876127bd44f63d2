package property_test

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// Outcomes of attacks in tasks of callers.
const (
	deniedByTasksAs  = "denied by the role in tasks.as alone"
	allowedByTasksAs = "allowed beyond the caller's own use"
	tasksAsChanged   = "tasks.as or its role changed"
	callerStarted    = "the caller started another task"
	callerRejected   = "the caller may not start another task"
)

// newWeakCaller returns a caller with a weak role. Every second one has tasks.as with
// another weak role.
func (s *attackEnv) newWeakCaller(t *proptest.Choices) (identity.Principal, error) {
	spec := s.weakRole(t)
	if t.OneIn(2) {
		bound, err := s.CreateRole(context.Background(), newCall(operator), s.weakRole(t))
		if err != nil {
			return identity.Principal{}, err
		}
		own := toolgroups.SetOf(append(someOf(t, 2, targetIDs), "flow")...) // it may start tasks without org_management
		spec.TasksAs, spec.Use = new(string(bound.ID)), &own
	}
	weak, err := s.CreateRole(context.Background(), newCall(operator), spec)
	return identity.ByCaller("ann", weak.ID), err
}

// playDenials plays a task of a caller with tasks.as. Random attacks rarely have calls that
// one rule alone denies or allows. Here each such call happens.
func (s *attackEnv) playDenials() error {
	use := ids{"alpha", "gamma", toolgroups.OrgManagement}
	bound, err := s.createRole(use...)
	if err != nil {
		return err
	}
	weak, err := s.createRole("flow")
	if err != nil {
		return err
	}
	p := &attack{attackEnv: s, caller: identity.ByCaller("ann", weak), first: len(s.agents)}
	if err := p.changed(s.UpdateRole(operator, weak, org.RoleSpec{TasksAs: new(string(bound))}, false)); err != nil {
		return err
	}
	id, err := s.startTask(org.TaskSpec{Text: "go", Caller: p.caller})
	if err != nil {
		return err
	}
	s.applyCommits()
	p.root = s.rules.agents[s.rules.tasks[id].Top]
	if err := p.createManager(use, ids{}); err != nil {
		return err
	}
	narrow := toolgroups.SetOf("gamma")
	return errors.Join(
		p.wantOutcome(allowedByTasksAs, "t0"), // a tool of alpha, which the caller may not use
		p.wantOutcome(deniedByState, "t4"),    // a tool of gamma, which the first state lacks
		p.changed(p.PauseRole(operator, p.manager.role, "")),
		p.wantOutcome(deniedBySuspension, "t0"),
		p.changed(p.ResumeRole(operator, p.manager.role, "")),
		p.changed(p.UpdateRole(operator, bound, org.RoleSpec{Use: &narrow}, false)),
		p.wantOutcome(deniedByTasksAs, "t0"),
	)
}

// changed applies the commits of a change of a role.
func (p *attack) changed(_ org.Role, _ org.PermissionDiff, err error) error {
	p.applyCommits()
	return err
}

// createRole creates a role without limits as the operator.
func (s *attackEnv) createRole(use ...toolgroups.GroupID) (identity.RoleID, error) {
	set := toolgroups.SetOf(use...)
	r, err := s.CreateRole(context.Background(), newCall(operator), org.RoleSpec{Name: s.newRoleName(), Use: &set})
	s.applyCommits()
	return r.ID, err
}

// wantOutcome makes one call of the manager, which must have an outcome.
func (p *attack) wantOutcome(outcome, name string) error {
	before := p.outcomes[outcome]
	_, err := p.callWith(p.manager.id, name, struct{}{})
	if err == nil && p.outcomes[outcome] != before+1 {
		err = fmt.Errorf("the call of %s is not %s", name, outcome)
	}
	return err
}

// weakRole specifies a role that may start tasks, or bound them.
func (s *attackEnv) weakRole(t *proptest.Choices) org.RoleSpec {
	use := toolgroups.SetOf(append(someOf(t, 5, targetIDs), toolgroups.OrgManagement, "flow", "gamma", "lab/one")...)
	spec := org.RoleSpec{Name: s.newRoleName(), Use: &use, AllowUnknown: true}
	new(role).chooseLimits(t, &spec)
	return spec
}

// checkTask checks what a new task is recorded with: not more than its caller may grant.
func (s *attackEnv) checkTask(id identity.TaskID) error {
	task := s.rules.tasks[id]
	if task.CallerRole == "" {
		return nil
	}
	if got := grantSetOf(task.Ceiling.Set, task.Ceiling.Owners); !allCover(s.rules.callerBounds(task.CallerRole), got) {
		return s.filterViolation(newViolation(violationGrant, "task %s has the ceiling %v; all of %v must cover it", id, got, s.rules.callerBounds(task.CallerRole)))
	}
	return nil
}

// countTasksAs counts calls whose outcome tasks.as decides.
func (s *attackEnv) countTasksAs(p *agentRecord, name string, may bool) {
	if p == nil || p.root {
		return
	}
	caller := s.rules.roles[s.rules.tasks[p.task].CallerRole]
	if caller == nil || caller.tasksAs == "" || caller.gone {
		return
	}
	switch {
	case may && !s.rules.reaches(caller.use, name):
		s.outcomes[allowedByTasksAs]++
	case !may && s.rules.withoutTasksAs(caller).mayCall(p, name):
		s.outcomes[deniedByTasksAs]++
	}
}

// withoutTasksAs returns the invariants with a caller's role that may use everything in
// place of its tasks.as: the start of a task alone limits it.
func (v *invariants) withoutTasksAs(caller *rolePermissions) *invariants {
	other, free := *v, *caller
	free.tasksAs, free.use = "", grantSet{"*": ""}
	other.roles = map[identity.RoleID]*rolePermissions{caller.id: &free}
	for id, r := range v.roles {
		if id != caller.id {
			other.roles[id] = r
		}
	}
	return &other
}

// changeTasks changes what the caller's tasks may use, as the operator, or lets the caller
// start another task.
func (p *attack) changeTasks(t *proptest.Choices) error {
	caller := p.rules.roles[p.caller.Role]
	bound := p.rules.boundingRole(p.caller.Role)
	switch t.Pick(12) {
	case 0, 1, 2: // widen or narrow the role that bounds the tasks
		p.updateTaskRole(bound.id, p.weakRole(t))
	case 3: // bound them by a new role
		if made, err := p.CreateRole(context.Background(), newCall(operator), p.weakRole(t)); err == nil {
			p.updateTaskRole(caller.id, org.RoleSpec{TasksAs: new(string(made.ID))})
		}
	case 4: // by the caller's role, which has it already, or by an agent's
		p.updateTaskRole(caller.id, org.RoleSpec{TasksAs: new(string(proptest.PickFrom(t, append(p.recentRoles(), "", caller.id)...)))})
	case 5: // what bounds the tasks of that role does not count
		p.updateTaskRole(bound.id, org.RoleSpec{TasksAs: new(string(proptest.PickFrom(t, p.roles[0], caller.id)))})
	case 6: // an agent's role never has tasks.as
		p.updateTaskRole(p.manager.role, org.RoleSpec{TasksAs: new(string(p.roles[0]))})
	case 7:
		if id := proptest.PickFrom(t, bound.id, caller.id); t.OneIn(4) {
			_, _ = p.DeleteRole(operator, id, false)
		}
	default:
		return p.startTask(t)
	}
	p.applyCommits()
	p.outcomes[tasksAsChanged]++
	if r := p.rules.roles[p.manager.role]; r.tasksAs != "" {
		return newViolation(violationRecord, "the role of an agent has tasks.as %q", r.tasksAs)
	}
	return nil
}

// updateTaskRole changes a role as the operator. It may be deleted.
func (p *attack) updateTaskRole(id identity.RoleID, spec org.RoleSpec) {
	spec.Name = ""
	_, _, _ = p.UpdateRole(operator, id, spec, false)
}

// startTask lets the caller start a task, mostly for some groups. It must be rejected
// exactly if the role that bounds it is deleted or suspended, or if the groups exceed it.
func (p *attack) startTask(t *proptest.Choices) error {
	narrow := toolgroups.SetOf(someOf(t, 2, p.registered(targetIDs))...)
	task := org.TaskSpec{Text: "more", Caller: p.caller, Groups: &narrow}
	if t.OneIn(3) {
		task.Groups, narrow = nil, toolgroups.SetOf()
	}
	bounds := p.rules.callerBounds(p.caller.Role)
	may := allCover(bounds, grantSetOf(narrow, nil)) && !p.rules.boundingRole(p.caller.Role).off()
	id, err := p.StartTask(context.Background(), task)
	p.applyCommits()
	switch {
	case err == nil && !may:
		return p.filterViolation(newViolation(violationGrant, "the caller started a task for %v; all of %v must cover it", narrow, bounds))
	case err != nil && may && !(errcode.CodeOf(err) == errcode.GroupNotFound && p.lacksGroup(narrow)):
		return fmt.Errorf("the caller may start a task for %v within %v: %w", narrow, bounds, err)
	case err != nil:
		p.outcomes[callerRejected]++
		return nil
	}
	p.outcomes[callerStarted]++
	return p.checkTask(id)
}

// lacksGroup reports whether a set has a group in which the caller's tasks may use no tool, or
// which belongs to another owner than when the caller's bounds were written.
func (p *attack) lacksGroup(set toolgroups.GroupSet) bool {
	bounds, chain := p.rules.callerBounds(p.caller.Role), p.rules.creatorChain(p.rules.boundingRole(p.caller.Role).id)
	return slices.ContainsFunc(set.GroupIDs(), func(id toolgroups.GroupID) bool {
		g := p.groups.Naive.Find(id)
		return g == nil || !holdsOwner(bounds, g) || !slices.ContainsFunc(p.groups.Naive.Members(g), func(name string) bool {
			return p.rules.allReach(bounds, name) && ofServers(chain, p.groups.Naive.GroupOfTool(name).Owner)
		})
	})
}

// holdsOwner reports whether all sets contain a group, pinned to the owner that it has now.
func holdsOwner(sets []grantSet, g *groupSpec) bool {
	return !slices.ContainsFunc(sets, func(s grantSet) bool {
		_, all := s["*"]
		return !all && s[g.ID] != g.Owner
	})
}
