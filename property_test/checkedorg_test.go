package property_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// checkedOrg is an organization on a fixture with an oracle that predicts its
// permissions.
type checkedOrg struct {
	*fixture
	groups      *checkedManager
	oracle      *oracle
	roles       []identity.RoleID  // in order of creation
	agents      []identity.AgentID // in order of creation
	tasks       []identity.TaskID
	damaged     bool // a record was damaged
	parents     int  // roles that an agent created with a group that its limits cover only through a parent
	beyondReads int  // roles that were rejected, and would not have been with the read parts of their groups
}

// moduleGroups are registered when a checkedOrg is opened.
var moduleGroups = []groupSpec{
	{ID: "alpha", Owner: "module:a", Tools: []toolSpec{{Name: "t0"}, {Name: "t1", States: []string{"draft"}, Effect: tool.ReadOnly}, {Name: "t2", Moves: "draft"}}, Children: ids{"lab/one", "gamma"}},
	{ID: "beta", Owner: "module:b", Tools: []toolSpec{{Name: "t3", Effect: tool.ReadOnly}, {Name: "t4", States: []string{"draft", "final"}, Moves: "final"}}},
	{ID: "lab/one", Owner: "module:a", Tools: []toolSpec{{Name: "t5", Effect: tool.ReadOnly}, {Name: "t6", States: []string{toolgroups.UndefinedState}}}, Refs: []string{"t0"}},
	{ID: "lab/two", Owner: toolgroups.Config, Tools: []toolSpec{{Name: "t7"}}, Refs: []string{"t1", "t3", "create_role"}},
}

// roleGroupIDs are all ids that random roles may contain.
var roleGroupIDs = slices.Concat(groupIDs, builtinIDs(), withReads(groupIDs), ids{"org_management:read", "unknown:read", "unknown", "*"})

// newCheckedOrg opens an organization in dir with a task of the operator.
func newCheckedOrg(dir string) (*checkedOrg, error) {
	w := &checkedOrg{groups: newCheckedManager()}
	w.oracle = newOracle(&w.groups.Naive)
	f, err := openFixture(dir, w.groups.Manager)
	if err != nil {
		return nil, err
	}
	w.fixture = f
	for _, g := range slices.Concat(builtinSpecs, moduleGroups) {
		if _, err := w.groups.Register(g); err != nil {
			return w, err
		}
	}
	return w, w.start(nil)
}

// reopen closes the runtime and opens another on the same directory, like a
// restarted process, with the groups registered in the same order. between runs
// in between.
func (o *checkedOrg) reopen(between func(path string) error) error {
	if err := o.fixture.close(!o.damaged); err != nil {
		return err
	}
	if err := between(o.dir); err != nil {
		return err
	}
	groups := toolgroups.NewManager(o.groups.Naive.Reserved...)
	f, err := openFixture(o.dir, groups)
	if err != nil {
		return err
	}
	specs := o.groups.Naive.Groups
	o.fixture, o.groups.Manager, o.groups.Naive.Groups = f, groups, nil
	for _, g := range specs { // references are bound again, as at every start
		if _, err := o.groups.Register(g); err != nil {
			return err
		}
	}
	for _, id := range o.tasks {
		if err := o.ResumeTask(context.Background(), id); err != nil {
			return err
		}
		if err := o.waitOpened(id); err != nil {
			return err
		}
	}
	return nil
}

// waitOpened waits until the model was asked for the agent at the top of a
// task. If that agent is tool-gated and has no tool, it waits until the task
// has failed instead.
func (o *checkedOrg) waitOpened(id identity.TaskID) error {
	record, _ := o.Org().TaskByID(id)
	top := o.oracle.agents[record.Top]
	switch {
	case top.taskEnded:
		return nil
	case !o.oracle.isToolGated(top) || len(o.oracle.visible(top)) > 0:
		_, err := await(o.model.firstRequest(top.id))
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	task, err := o.WaitTask(ctx, id)
	if err != nil || task.Error == nil || task.Error.Code != errcode.NoToolsAvailable {
		return fmt.Errorf("task %s of a tool-gated agent without tools: %v, %+v", id, err, task.Error)
	}
	for _, a := range o.oracle.agents {
		a.taskEnded = a.taskEnded || a.top() == top
	}
	return nil
}

// start starts a task with root or a role at its top, with or without a
// narrowing to groups.
func (o *checkedOrg) start(t *proptest.Choices) error {
	task := org.TaskSpec{Text: "go", Caller: operator}
	top := &agent{taskGroups: allGroups}
	if t != nil {
		task.State, top.state = proptest.PickFrom(t, states...), ""
		top.state = task.State
		if t.OneIn(2) {
			narrow := toolgroups.SetOf(someOf(t, 5, roleGroupIDs)...)
			task.Groups, top.taskGroups = &narrow, o.oracle.pinOwners(idsOf(narrow))
		}
		if id, ok := o.anyRole(t); ok && t.OneIn(2) && !o.oracle.roles[id].gone {
			task.Role, top.role = string(id), id
		}
	}
	id, err := o.StartTask(context.Background(), task)
	if want := o.wantWrite(true, task.Groups == nil, nil, &top.taskGroups.ids); want != errcode.CodeOf(err) {
		return fmt.Errorf("start %+v: %w, want %q", task, err, want)
	}
	if err != nil {
		return nil
	}
	record, _ := o.Org().TaskByID(id)
	o.tasks = append(o.tasks, id)
	o.addAgent(record.Top, top)
	return o.waitOpened(id)
}

// idsOf returns a set as a list of ids.
func idsOf(s toolgroups.GroupSet) ids {
	if s.IsAll() {
		return ids{"*"}
	}
	return s.GroupIDs()
}

func (o *checkedOrg) addAgent(id identity.AgentID, a *agent) {
	a.id = id
	o.oracle.agents[id] = a
	o.agents = append(o.agents, id)
}

func (o *checkedOrg) anyRole(t *proptest.Choices) (identity.RoleID, bool) {
	if len(o.roles) == 0 {
		return "", false
	}
	return proptest.PickFrom(t, o.roles...), true
}

// anyAgent returns a random active agent, half of the time one of the last
// three.
func (o *checkedOrg) anyAgent(t *proptest.Choices) *agent {
	list := slices.DeleteFunc(o.oracle.activeAgents(o.agents), func(a *agent) bool { return a.taskEnded })
	if t.OneIn(2) {
		list = list[max(0, len(list)-3):]
	}
	return proptest.PickFrom(t, list...)
}

// anyHeldRole returns a random role, half of the time one that an agent has.
func (o *checkedOrg) anyHeldRole(t *proptest.Choices) (identity.RoleID, bool) {
	var held []identity.RoleID
	for _, a := range o.oracle.activeAgents(o.agents) {
		if a.role != "" && !o.oracle.roles[a.role].gone {
			held = append(held, a.role)
		}
	}
	if len(held) > 0 && t.OneIn(2) {
		return proptest.PickFrom(t, held...), true
	}
	return o.anyRole(t)
}

// spawnable lists the roles that an agent may spawn.
func (o *checkedOrg) spawnable(a *agent) []identity.RoleID {
	limits := o.oracle.grantLimits(a)
	return slices.DeleteFunc(slices.Clone(o.roles), func(id identity.RoleID) bool {
		r := o.oracle.roles[id]
		return r.gone || !o.oracle.mayGrant(limits, r.use.ids, r.grant.ids)
	})
}

// newCall returns a call of a built-in tool by a principal.
func newCall(by identity.Principal) tool.Call {
	return tool.Call{ID: identity.CallID(identity.NewID()), By: by}
}

// anySet returns a random set, mostly within limits; one in four is nil.
func (o *checkedOrg) anySet(t *proptest.Choices, limits []pinnedSet) (*toolgroups.GroupSet, *ids) {
	if t.OneIn(4) {
		return nil, nil
	}
	from := roleGroupIDs
	if given, _ := o.oracle.withDefaults(limits, nil, nil); len(given) > 0 && !slices.Contains(given, "*") && !t.OneIn(4) {
		from = given
		for _, id := range given {
			whole, reads := grouptest.Whole(id)
			from = append(slices.Clip(from), o.oracle.registry.Descendants(whole)...)
			if reads && t.OneIn(3) {
				from = append(from, whole) // more than is given
			}
		}
		from = withReads(from)
	}
	set := toolgroups.SetOf(someOf(t, 7, from)...)
	list := idsOf(set)
	return &set, &list
}

// createRole creates a role as an agent, or as the operator if creator is nil.
func (o *checkedOrg) createRole(t *proptest.Choices, creator *agent) error {
	by, limits := operator, []pinnedSet(nil)
	made := &role{}
	if creator != nil {
		by, limits, made.creator = identity.ByAgent(creator.id), o.oracle.grantLimits(creator), creator.role
	}
	use, useIDs := o.anySet(t, limits)
	grant, grantIDs := o.anySet(t, limits)
	spec := org.RoleSpec{Name: fmt.Sprint("role ", len(o.roles), " ", identity.NewID()), Use: use, Grant: grant, AllowUnknown: t.OneIn(2)}
	if creator == nil {
		made.chooseLimits(t, &spec)
		made.chooseBounds(t, &spec, &o.groups.Naive)
	}
	wantUse, wantGrant := o.oracle.withDefaults(limits, useIDs, grantIDs)
	got, err := o.CreateRole(context.Background(), newCall(by), spec)
	insists := spec.AllowUnknown && creator == nil
	if want := o.wantWrite(o.oracle.mayGrant(limits, wantUse, wantGrant), insists, nil, useIDs, grantIDs); want != errcode.CodeOf(err) {
		return fmt.Errorf("create role use %v grant %v by %s within %v, unknown ones allowed %v: %v, want %q", useIDs, grantIDs, by, limits, insists, err, want)
	}
	if err != nil {
		return nil
	}
	if err := o.resumeNew(got); err != nil {
		return err
	}
	return o.addRole(got, made, wantUse, wantGrant)
}

// resumeNew resumes a new role that is paused: the damaged record of a role may be that of a paused one.
func (o *checkedOrg) resumeNew(r org.Role) error {
	if !r.Suspended() {
		return nil
	}
	if !o.damaged {
		return fmt.Errorf("role %q is new and paused, and no record is damaged", r.Name)
	}
	_, _, err := o.ResumeRole(operator, r.ID, "it is new")
	return err
}

// wantWrite returns the code with which a role is written: "" if it is accepted. A group
// that the role has held before is known.
func (o *checkedOrg) wantWrite(covered, insists bool, old *role, sets ...*ids) errcode.Code {
	if !covered {
		return errcode.InsufficientPermissions
	}
	for _, set := range sets {
		if set == nil || insists {
			continue
		}
		for _, id := range *set {
			if id != "*" && o.oracle.registry.OwnerOf(id) == "" && old.heldOwner(id) == "" {
				return errcode.GroupNotFound
			}
		}
	}
	return ""
}

// heldOwner returns the owner of a group that r names, "" if there is none.
func (r *role) heldOwner(id toolgroups.GroupID) toolgroups.GroupOwner {
	if r == nil {
		return ""
	}
	return cmp.Or(r.use.owners[id], r.grant.owners[id])
}

// repin pins a set that replaces one of r. Groups that are away stay with their owner.
func (o *checkedOrg) repin(r *role, set ids) pinnedSet {
	b := o.oracle.pinOwners(set)
	for _, id := range set {
		b.owners[id] = cmp.Or(b.owners[id], r.heldOwner(id))
	}
	return b
}

// serverNames are the servers that a role may be restricted to; "" means none.
var serverNames = []string{"", "a", "b", "nowhere"}

// chooseLimits randomly sets server and gating in the role and in the spec.
func (r *role) chooseLimits(t *proptest.Choices, spec *org.RoleSpec) {
	if t.OneIn(3) {
		r.server = proptest.PickFrom(t, serverNames...)
		spec.Server = &r.server
	}
	if t.OneIn(3) {
		r.gating = proptest.PickFrom(t, toolgroups.NotGated, toolgroups.Gated, toolgroups.StrictlyGated)
		spec.ToolGated = &r.gating
	}
}

// openTools are tools that take any arguments.
var openTools = []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7"}

// chooseBounds randomly bounds registered tools in the role and in the spec, so that surely no
// arguments are within the bounds.
func (r *role) chooseBounds(t *proptest.Choices, spec *org.RoleSpec, registry *naiveRegistry) {
	if !t.OneIn(4) {
		return
	}
	r.shut, spec.Bind = nil, bounds.Bind{}
	for _, name := range someOf(t, 2, openTools) {
		if registry.GroupOfTool(name) != nil {
			r.shut, spec.Bind[name] = append(r.shut, name), nothing
		}
	}
}

// No arguments are within nothing, and the arguments {} are within anything.
var (
	nothing  = mustRule(`{"/amount": {"min": 1, "max": 0}}`)
	anything = mustRule(`{"/amount": {"max": 1e300, "missing": "allow"}}`)
)

func mustRule(text string) bounds.Rule {
	r, err := bounds.ParseRule([]byte(text))
	if err != nil {
		panic(err)
	}
	return r
}

// addRole checks a created role and adds it to the oracle. The order of groups
// in a default set is not specified.
func (o *checkedOrg) addRole(got org.Role, made *role, use, grant ids) error {
	if !sameIDs(idsOf(got.Use), use) || !sameIDs(idsOf(got.Grant), grant) || got.Server != made.server || got.ToolGated != made.gating {
		return fmt.Errorf("the created role is %+v, want use %v grant %v server %q gated %v", got, use, grant, made.server, made.gating)
	}
	made.use, made.grant = o.oracle.pinOwners(idsOf(got.Use)), o.oracle.pinOwners(idsOf(got.Grant))
	o.oracle.roles[got.ID] = made
	o.roles = append(o.roles, got.ID)
	return nil
}

func sameIDs(a, b ids) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// updateRole changes the sets of a role and checks the returned diff.
func (o *checkedOrg) updateRole(t *proptest.Choices) error {
	id, ok := o.anyHeldRole(t)
	if !ok {
		return nil
	}
	use, grant := toolgroups.SetOf(someOf(t, 7, roleGroupIDs)...), toolgroups.SetOf(someOf(t, 7, roleGroupIDs)...)
	before, spec := o.callableNow(), org.RoleSpec{Use: &use, Grant: &grant, AllowUnknown: t.OneIn(2)}
	r := o.oracle.roles[id]
	next := *r
	next.chooseLimits(t, &spec)
	next.chooseBounds(t, &spec, &o.groups.Naive)
	_, diff, err := o.UpdateRole(operator, id, spec, false)
	if r.gone != (errcode.CodeOf(err) == errcode.RoleNotFound) {
		return fmt.Errorf("update role %s, gone %v: %v", id, r.gone, err)
	}
	if r.gone {
		return nil
	}
	useIDs, grantIDs := idsOf(use), idsOf(grant)
	if want := o.wantWrite(true, spec.AllowUnknown, r, &useIDs, &grantIDs); want != errcode.CodeOf(err) {
		return fmt.Errorf("update role %s use %v grant %v: %v, want %q", id, use, grant, err, want)
	}
	if err != nil {
		return nil
	}
	next.use, next.grant = o.repin(r, useIDs), o.repin(r, grantIDs)
	*r = next
	return o.checkDiff(diff, before)
}

func (o *checkedOrg) deleteRole(t *proptest.Choices) error {
	id, ok := o.anyHeldRole(t)
	if !ok || t.OneIn(2) {
		return nil
	}
	before := o.callableNow()
	diff, err := o.DeleteRole(operator, id, false)
	r := o.oracle.roles[id]
	if r.gone != (errcode.CodeOf(err) == errcode.RoleNotFound) {
		return fmt.Errorf("delete role %s, gone %v: %v", id, r.gone, err)
	}
	if r.gone {
		return nil
	}
	r.gone = true
	return o.checkDiff(diff, before)
}

// callable is what agents and roles may call in some state, sorted.
type callable struct {
	agents map[identity.AgentID][]string // active ones of running tasks
	roles  map[identity.RoleID][]string  // as an agent directly below root, whose task is not narrowed
}

// callableNow returns what agents and roles may call now.
func (o *checkedOrg) callableNow() callable {
	all := callable{map[identity.AgentID][]string{}, map[identity.RoleID][]string{}}
	for _, a := range o.oracle.activeAgents(o.agents) {
		if !a.taskEnded {
			all.agents[a.id] = o.everVisible(a)
		}
	}
	for _, id := range o.roles {
		if !o.oracle.roles[id].lost {
			all.roles[id] = o.everVisible(&agent{role: id, parent: &agent{taskGroups: allGroups}})
		}
	}
	return all
}

// everVisible returns what an agent may call in some state, sorted.
func (o *checkedOrg) everVisible(a *agent) []string {
	names := slices.DeleteFunc(o.oracle.effective(a), func(name string) bool {
		t, _ := o.groups.Naive.ToolByName(name)
		return t.States != nil && len(t.States) == 0
	})
	slices.Sort(names)
	return names
}

// checkDiff compares a permission diff with the oracle.
func (o *checkedOrg) checkDiff(got org.PermissionDiff, before callable) error {
	after := o.callableNow()
	agents, roles := changes(before.agents, after.agents), changes(before.roles, after.roles)
	if got.Counts.Agents != len(agents) || got.Counts.Roles != len(roles) || got.Counts.Callers > 0 && len(roles) == 0 {
		return fmt.Errorf("the change returned the diff %+v, want the agents %v and the roles %v", got, agents, roles)
	}
	for _, d := range got.Agents {
		if !agents[d.Agent].equal(d.AccessChange) {
			return fmt.Errorf("the diff has %+v, want %v", d, agents[d.Agent])
		}
	}
	for _, d := range got.Roles {
		if !roles[d.ID].equal(d.AccessChange) {
			return fmt.Errorf("the diff has %+v, want %v", d, roles[d.ID])
		}
	}
	if len(got.Agents) != min(len(agents), org.MaxDiffNames) || len(got.Roles) != min(len(roles), org.MaxDiffNames) {
		return fmt.Errorf("the diff names %d of %d agents and %d of %d roles", len(got.Agents), len(agents), len(got.Roles), len(roles))
	}
	return nil
}

// gainsLosses are the tools that a principal gains and loses.
type gainsLosses struct{ gains, loses []string }

func (g gainsLosses) equal(c org.AccessChange) bool {
	return slices.Equal(g.gains, c.Gains) && slices.Equal(g.loses, c.Loses) && len(g.gains)+len(g.loses) > 0
}

// changes returns the principals that gain or lose something.
func changes[K comparable](before, after map[K][]string) map[K]gainsLosses {
	list := map[K]gainsLosses{}
	for id, names := range after {
		g := gainsLosses{without(names, before[id]), without(before[id], names)}
		if len(g.gains)+len(g.loses) > 0 {
			list[id] = g
		}
	}
	return list
}

// without returns the elements of list that are not in others.
func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(others, name) })
}

var taskBrief = org.TaskBrief{Objective: "o", Constraints: org.TextLines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}

// spawn spawns an agent of a random role.
func (o *checkedOrg) spawn(t *proptest.Choices) error {
	parent := o.anyAgent(t)
	id, ok := o.anyRole(t)
	if fit := o.spawnable(parent); len(fit) > 0 && !t.OneIn(4) {
		id = proptest.PickFrom(t, fit...)
	}
	if !ok {
		return nil
	}
	r, limits := o.oracle.roles[id], o.oracle.grantLimits(parent)
	var want errcode.Code
	switch {
	case r.gone:
		want = errcode.RoleNotFound
	case !o.oracle.mayGrant(limits, r.use.ids, r.grant.ids):
		want = errcode.InsufficientPermissions
	}
	got, err := o.SpawnAgent(context.Background(), newCall(identity.ByAgent(parent.id)), org.SpawnSpec{Role: id, Brief: taskBrief}, nil)
	if errcode.CodeOf(err) != want {
		return fmt.Errorf("spawn use %v grant %v within %v: %v, want %q", r.use.ids, r.grant.ids, limits, err, want)
	}
	if err == nil {
		record, _ := o.Org().AgentByID(got.ID)
		task, _ := o.Org().TaskByID(record.Task)
		o.addAgent(got.ID, &agent{role: id, parent: parent, state: task.State})
	}
	return nil
}

func (o *checkedOrg) terminate(t *proptest.Choices) error {
	target := o.anyAgent(t)
	err := o.TerminateAgent(context.Background(), newCall(operator), target.id, "why not")
	if (target.parent == nil) != (errcode.CodeOf(err) == errcode.NotChildAgent) {
		return fmt.Errorf("terminate agent %s, at the top %v: %v", target.id, target.parent == nil, err)
	}
	if err == nil {
		o.oracle.terminate(target)
	}
	return nil
}

// callInTurn makes an agent call a tool in its own turn, which may change its
// state.
func (o *checkedOrg) callInTurn(t *proptest.Choices) error {
	a := o.anyAgent(t)
	if a.parent == nil { // the model never answers for these
		return nil
	}
	name := proptest.PickFrom(t, toolNames...)
	if o.oracle.isToolGated(a) && len(o.oracle.visible(a)) == 0 {
		return o.checkTurnFails(a)
	}
	replies := o.model.queueCalls(a.id, model.Call{Name: name, Args: []byte(`{}`)})
	if _, err := o.SendMessage(context.Background(), newCall(operator), string(a.id), []byte(`"go"`), 0); err != nil {
		return fmt.Errorf("send to agent %s: %w", a.id, err)
	}
	got, err := await(replies)
	if err != nil {
		return fmt.Errorf("agent %s in its turn: %w", a.id, err)
	}
	allowed := slices.Contains(o.oracle.visible(a), name)
	if len(got) != 1 || got[0].IsError == allowed {
		return fmt.Errorf("agent %s called %s: %+v, want allowed %v", a.id, name, got, allowed)
	}
	if tool, _ := o.groups.Naive.ToolByName(name); allowed && tool.Moves != "" {
		a.state = tool.Moves
	}
	return nil
}

// checkTurnFails sends a message to a tool-gated agent without tools. Its turn
// must fail without a request to the model.
func (o *checkedOrg) checkTurnFails(a *agent) error {
	from, asked := o.store.LastSeq(), o.model.requestCount(a.id)
	if _, err := o.SendMessage(context.Background(), newCall(operator), string(a.id), []byte(`"go"`), 0); err != nil {
		return fmt.Errorf("send to agent %s: %w", a.id, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), waitTimeout)
	defer cancel()
	for e, err := range o.store.FollowEvents(ctx, from, journal.WaitForMore) {
		if failed, ok := e.Body.(journal.TurnFailed); err != nil || ok && e.Agent == a.id {
			if err != nil || failed.Code != errcode.NoToolsAvailable || o.model.requestCount(a.id) != asked {
				return fmt.Errorf("a turn of agent %s, which is tool-gated and has no tool: %v, %+v, asked %d times, want %d", a.id, err, failed, o.model.requestCount(a.id), asked)
			}
			return nil
		}
	}
	return fmt.Errorf("a turn of agent %s, which is tool-gated and has no tool, did not fail", a.id)
}

// damage flips a bit in the record of a role while the store is closed.
func (o *checkedOrg) damage(t *proptest.Choices) error {
	id, ok := o.anyRole(t)
	if !ok || o.oracle.roles[id].gone {
		return o.reopen(func(string) error { return nil })
	}
	return o.reopen(func(dir string) error {
		o.damaged, o.oracle.roles[id].gone, o.oracle.roles[id].lost = true, true, true
		return flipBit(dir, "role\x00"+string(id), t.Pick(200))
	})
}

// flipBit flips a bit in the value of a record in the data file, wherever the file has the
// record. The store refuses a file with a damaged head of a value, so that stays as it is.
func flipBit(dir, key string, at int) error {
	path := dir + "/" + persist.FileName
	value, err := storedValue(path, key)
	if err != nil {
		return err
	}
	file, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	const head = 6
	damaged := slices.Clone(value)
	damaged[head+at%(len(value)-head)] ^= 1
	file = bytes.ReplaceAll(file, slices.Concat([]byte(key), value), slices.Concat([]byte(key), damaged))
	return os.WriteFile(path, file, 0o600)
}

// storedValue returns the value of a record as it is in the data file.
func storedValue(path, key string) (value []byte, err error) {
	db, err := bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true})
	if err != nil {
		return nil, err
	}
	defer db.Close()
	err = db.View(func(tx *bolt.Tx) error {
		value = slices.Clone(tx.Bucket([]byte("records")).Get([]byte(key)))
		return nil
	})
	if err == nil && len(value) == 0 {
		err = fmt.Errorf("no record %q", key)
	}
	return value, err
}

// step makes one random change.
func (o *checkedOrg) step(t *proptest.Choices) error {
	switch t.Pick(18) {
	case 0, 1:
		return o.createRole(t, nil)
	case 2, 3, 4:
		return o.createRole(t, o.anyAgent(t))
	case 5, 6, 7:
		return o.spawn(t)
	case 8, 9:
		return o.callInTurn(t)
	case 10, 16, 17:
		return o.updateRole(t)
	case 11:
		return o.deleteRole(t)
	case 12:
		return o.terminate(t)
	case 13:
		if t.OneIn(2) {
			return o.damage(t)
		}
		return o.start(t)
	}
	return o.groups.step(t)
}

// checkSubjects compares the permissions of all agents, and of invalid
// principals, with the oracle.
func (o *checkedOrg) checkSubjects() error {
	for _, id := range o.agents {
		a := o.oracle.agents[id]
		if err := o.checkSubject(identity.ByAgent(id), o.oracle.visible(a), o.oracle.gatingOf(a)); err != nil {
			return fmt.Errorf("agent %s of role %q in state %q: %w", id, a.role, a.state, err)
		}
	}
	for _, p := range []identity.Principal{{}, operator, identity.ByAgent("nobody"), identity.ByCaller("u", "root")} {
		if err := o.checkSubject(p, nil, toolgroups.NotGated); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// checkSubject checks what a principal sees and is authorized to call.
func (o *checkedOrg) checkSubject(p identity.Principal, want []string, gating toolgroups.Gating) error {
	subject := o.Gate().Subject(p)
	if offer := subject.ListTools(); offer.Gating != gating || !slices.Equal(offer.Names, want) {
		return fmt.Errorf("has tools %v, gated %v; want %v, %v", offer.Names, offer.Gating, want, gating)
	}
	if got := definitionNames(subject.VisibleTools()); !slices.Equal(got, want) {
		return fmt.Errorf("sees %v, want %v", got, want)
	}
	for _, name := range o.allNames() {
		d := subject.AuthorizeTool(name)
		code := errcode.UnknownTool
		switch {
		case slices.Contains(want, name):
			code = ""
		case gating != toolgroups.NotGated || o.groups.Naive.GroupOfTool(name) != nil:
			code = errcode.ToolNotAvailable
		}
		if d.Allowed() != (code == "") || d.Code() != code {
			return fmt.Errorf("authorize %q: %q (%s), want %q", name, d.Code(), d.Reason(), code)
		}
	}
	return nil
}

func (o *checkedOrg) allNames() []string {
	return slices.Concat(countedNames, invalidNames)
}

// checkCalls calls every name at the gate as an agent: a tool must run if and
// only if it is visible.
func (o *checkedOrg) checkCalls(a *agent) error {
	want := o.oracle.visible(a)
	for _, name := range o.allNames() {
		before := o.groups.Runs.Of(name)
		out, err := callTool(o.Runtime, identity.ByAgent(a.id), name, `{}`)
		if err != nil {
			return err
		}
		ran, allowed := o.groups.Runs.Of(name)-before, slices.Contains(want, name)
		if out.Allowed() != allowed || (ran == 1) != allowed || ran > 1 {
			return fmt.Errorf("agent %s called %q: allowed %v, ran %d times; want allowed %v", a.id, name, out.Allowed(), ran, allowed)
		}
	}
	return nil
}

// VisibleTools equals callable in every state: after any change, an agent may call
// exactly what it sees, and that is
//
//	effective(agent) = use ∩ task ∩ ceiling(creators) ∩ its parent's effective grant
//
// as a set of tools. Tools of servers that a bounding role is not restricted
// to, and tools that the workflow state does not allow, are excluded. This
// holds also with deleted roles, unregistered groups and damaged records. The
// model is not asked for an agent without tools that is tool-gated, or limited
// by a role that is or may have been tool-gated.
func TestVisible_EqualsCallableInEveryState(t *testing.T) {
	dir, n := newStoreDir(t), 0
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 400, ShortCases: 30}, func(t *proptest.Choices) error {
		n++
		w, err := newCheckedOrg(fmt.Sprint(dir, "/", n))
		if w == nil {
			return err
		}
		for err == nil && !t.IsEmpty() {
			if err = w.step(t); err == nil {
				err = w.checkSubjects()
			}
			if err == nil {
				err = w.checkCalls(proptest.PickFrom(t, w.oracle.activeAgents(w.agents)...))
			}
		}
		return cmp.Or(err, w.fixture.close(!w.damaged))
	})
}
