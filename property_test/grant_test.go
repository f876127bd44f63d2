package property_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// builtinGroups are the real built-in groups on a runtime that can be replaced.
// They are shared by all cases, since compiling their schemas takes longer than
// a case.
type builtinGroups struct {
	*runtime.ToolHost
	groups []toolgroups.Group
}

func newBuiltinGroups(t *testing.T) *builtinGroups {
	t.Helper()
	s := &builtinGroups{}
	var err error
	if s.groups, err = builtin.NewGroups(s, builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// register connects the groups to a runtime, registers them, and returns their
// specs for the naive registry. The previous runtime gets no more calls.
func (s *builtinGroups) register(m *toolgroups.Manager, rt *runtime.Runtime) ([]groupSpec, error) {
	s.ToolHost = rt.ToolHost()
	var list []groupSpec
	for _, g := range s.groups {
		if _, err := grouptest.RegisterGroup(m, toolgroups.Builtin, g); err != nil {
			return nil, err
		}
		naive := groupSpec{ID: g.ID, Owner: toolgroups.Builtin, Text: g.Description}
		for _, t := range g.Tools {
			naive.Tools = append(naive.Tools, toolSpec{Name: t.Definition().Name, Effect: t.Definition().Effect})
		}
		list = append(list, naive)
	}
	return list, nil
}

// newBuiltinOrg returns an organization in memory with the real built-in tools.
// Agents act by calling them at the gate.
func newBuiltinOrg(builtins *builtinGroups) (*checkedOrg, error) {
	w := &checkedOrg{groups: newCheckedManager()}
	w.oracle = newOracle(&w.groups.Naive)
	b := newScriptedModel()
	rt, err := newRuntime(newMemoryStore(), w.groups.Manager, b)
	if err != nil {
		return nil, err
	}
	w.fixture = &fixture{Runtime: rt, model: b}
	if w.groups.Naive.Groups, err = builtins.register(w.groups.Manager, rt); err != nil {
		return w, err
	}
	for _, g := range moduleGroups {
		g.Refs = slices.DeleteFunc(slices.Clone(g.Refs), func(name string) bool { return name == "create_role" })
		if _, err := w.groups.Register(g); err != nil {
			return w, err
		}
	}
	return w, w.start(nil)
}

// toolOutcome is the outcome of a call of a built-in tool.
type toolOutcome struct {
	code errcode.Code // "" on success
	body struct {
		ID    string
		Error errcode.Code
	}
}

// callBuiltin calls a built-in tool as an agent.
func (o *checkedOrg) callBuiltin(a *agent, name string, args any) (toolOutcome, error) {
	var v toolOutcome
	out, err := callTool(o.Runtime, identity.ByAgent(a.id), name, string(mustJSON(args)))
	if err != nil {
		return v, err
	}
	_ = json.Unmarshal(out.Result.Structured, &v.body) // text results have no id
	v.code = errcode.CodeOf(out.Err)
	if out.Err == nil && out.Result.IsError {
		v.code = v.body.Error
	}
	return v, nil
}

// createRoleArgs returns the arguments of create_role; a nil set is left out.
func createRoleArgs(name string, use, grant *ids) map[string]any {
	args := map[string]any{"name": name, "rolePrompt": "work"}
	if use != nil {
		args["toolGroups"] = append(ids{}, *use...)
	}
	if grant != nil {
		args["grant"] = append(ids{}, *grant...)
	}
	return args
}

// tryCreateRole calls create_role with a new name. It must succeed if and only
// if the agent sees create_role, its grant, under all ceilings, covers use and
// grant of the role, and all groups that it names exist.
func (o *checkedOrg) tryCreateRole(t *proptest.Choices, a *agent) error {
	limits := o.oracle.grantLimits(a)
	_, use := o.anySet(t, limits)
	_, grant := o.anySet(t, limits)
	wantUse, wantGrant := o.oracle.withDefaults(limits, use, grant)
	want := o.wantWrite(o.oracle.mayGrant(limits, wantUse, wantGrant), false, nil, use, grant)
	if !slices.Contains(o.oracle.visible(a), "create_role") {
		want = errcode.ToolNotAvailable
	}
	if want == errcode.InsufficientPermissions && o.oracle.mayGrant(limits, readsOf(wantUse), readsOf(wantGrant)) {
		o.beyondReads++
	}
	v, err := o.callBuiltin(a, "create_role", createRoleArgs(fmt.Sprint("new role ", len(o.roles), " ", identity.NewID()), use, grant))
	if err != nil || v.code != want {
		return fmt.Errorf("create_role %v grant %v within %v: %q, %v; want %q", use, grant, limits, v.code, err, want)
	}
	if v.code == "" {
		if slices.ContainsFunc(wantUse, func(id toolgroups.GroupID) bool { return coveredByParent(limits, id) }) {
			o.parents++
		}
		return o.addCreatedRole(v, a, wantUse, wantGrant)
	}
	return nil
}

// readsOf returns the read parts of groups, without the built-in ones.
func readsOf(list ids) (reads ids) {
	for _, id := range list {
		if id != toolgroups.OrgManagement {
			id = readPart(id)
		}
		reads = append(reads, id)
	}
	return reads
}

// coveredByParent reports whether a limit that covers a group does not list it.
func coveredByParent(limits []pinnedSet, id toolgroups.GroupID) bool {
	return slices.ContainsFunc(limits, func(b pinnedSet) bool {
		return !slices.Contains(b.ids, "*") && !slices.Contains(b.ids, id)
	})
}

// addCreatedRole adds a role that an agent created to the oracle.
func (o *checkedOrg) addCreatedRole(v toolOutcome, creator *agent, use, grant ids) error {
	got, _ := o.Org().RoleByID(identity.RoleID(v.body.ID))
	return o.addRole(got, &role{creator: creator.role}, use, grant)
}

// trySpawn calls spawn_agent. It must succeed if and only if the agent sees
// spawn_agent and its grant covers use and grant of the role.
func (o *checkedOrg) trySpawn(a *agent, id identity.RoleID) error {
	limits, r := o.oracle.grantLimits(a), o.oracle.roles[id]
	var want errcode.Code
	switch {
	case !slices.Contains(o.oracle.visible(a), "spawn_agent"):
		want = errcode.ToolNotAvailable
	case r == nil || r.gone:
		want = errcode.RoleNotFound
	case !o.oracle.mayGrant(limits, r.use.ids, r.grant.ids):
		want = errcode.InsufficientPermissions
	}
	v, err := o.callBuiltin(a, "spawn_agent", map[string]any{"roleId": id, "taskBrief": taskBrief})
	if err != nil || v.code != want {
		return fmt.Errorf("spawn_agent %s within %v: %q, %v; want %q", id, limits, v.code, err, want)
	}
	if v.code == "" {
		record, _ := o.Org().AgentByID(identity.AgentID(v.body.ID))
		task, _ := o.Org().TaskByID(record.Task)
		o.addAgent(record.ID, &agent{role: id, parent: a, state: task.State})
	}
	return nil
}

// Use and grant: create_role and spawn_agent succeed if and only if the caller
// does not grant beyond its own grant. Whatever was created, and however roles
// and groups change later, agents see what the oracle computes.
func TestGrant_AllowedIffCovered(t *testing.T) {
	builtins := newBuiltinGroups(t)
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 250}, func(t *proptest.Choices) error {
		w, err := newBuiltinOrg(builtins)
		if w == nil {
			return err
		}
		defer w.Close()
		for err == nil && !t.IsEmpty() {
			switch t.Pick(10) {
			case 0, 1, 2:
				err = w.tryCreateRole(t, w.anyAgent(t))
			case 3, 4, 5:
				err = w.trySpawnAny(t, w.anyAgent(t))
			case 6, 7:
				err = w.changeRoles(t)
			case 8:
				if t.OneIn(3) {
					err = w.start(t)
				}
			default:
				err = w.groups.step(t)
			}
			if err == nil {
				err = w.checkSubjects()
			}
		}
		return err
	})
}

// trySpawnAny calls trySpawn with a random role, mostly one that the agent may
// spawn.
func (o *checkedOrg) trySpawnAny(t *proptest.Choices, a *agent) error {
	id, ok := o.anyRole(t)
	if fit := o.spawnable(a); len(fit) > 0 && !t.OneIn(3) {
		id = proptest.PickFrom(t, fit...)
	}
	if !ok {
		id = "unknown"
	}
	return o.trySpawn(a, id)
}

// changeRoles creates, updates or deletes a role as the operator.
func (o *checkedOrg) changeRoles(t *proptest.Choices) error {
	switch t.Pick(4) {
	case 0:
		return o.createRole(t, nil)
	case 1:
		return o.deleteRole(t)
	}
	return o.updateRole(t)
}
