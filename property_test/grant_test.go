package property_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// staff is the real built-in groups over a runtime that can be exchanged:
// their schemas take longer than a case.
type staff struct {
	*runtime.ToolHost
	groups []toolgroups.Group
}

func newStaff(t *testing.T) *staff {
	t.Helper()
	s := &staff{}
	var err error
	if s.groups, err = builtin.Groups(s, builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	return s
}

// register has the staff work for a runtime, and gives its groups as the naive
// registry has them. The runtime before gets no calls any more.
func (s *staff) register(m *toolgroups.Manager, rt *runtime.Runtime) ([]spec, error) {
	s.ToolHost = rt.ToolHost()
	var list []spec
	for _, g := range s.groups {
		if _, err := m.Register(toolgroups.Builtin, g); err != nil {
			return nil, err
		}
		naive := spec{id: g.ID, owner: toolgroups.Builtin, text: g.Description}
		for _, t := range g.Tools {
			naive.tools = append(naive.tools, toolSpec{name: t.Definition().Name})
		}
		list = append(list, naive)
	}
	return list, nil
}

// newCourt is a world with the real built-in tools, in memory: agents act by
// calling them at the gate.
func newCourt(staff *staff) (*world, error) {
	w := &world{desk: newDesk()}
	w.oracle = newOracle(&w.desk.naive)
	b := newBrain()
	rt, err := newRuntime(newMemory(), w.desk.Manager, b)
	if err != nil {
		return nil, err
	}
	w.house = &house{Runtime: rt, brain: b}
	if w.desk.naive.groups, err = staff.register(w.desk.Manager, rt); err != nil {
		return w, err
	}
	for _, g := range modules {
		g.refs = slices.DeleteFunc(slices.Clone(g.refs), func(name string) bool { return name == "create_role" })
		if _, err := w.desk.register(g); err != nil {
			return w, err
		}
	}
	return w, w.start(nil)
}

// verdict is how a call of a built-in tool ended.
type verdict struct {
	code errcode.Code // "" when it succeeded
	body struct {
		ID    string
		Error errcode.Code
	}
}

// plead has an agent call a built-in tool.
func (w *world) plead(a *agent, name string, args any) (verdict, error) {
	var v verdict
	out, err := knock(w.Runtime, identity.ByAgent(a.id), name, string(mustJSON(args)))
	if err != nil {
		return v, err
	}
	_ = json.Unmarshal(out.Result.Structured, &v.body) // a text has no id
	v.code = errcode.Of(out.Err)
	if out.Err == nil && out.Result.IsError {
		v.code = v.body.Error
	}
	return v, nil
}

// rolePlea are the arguments of a create_role.
func rolePlea(name string, use, grant *ids) map[string]any {
	args := map[string]any{"name": name, "rolePrompt": "work"}
	if use != nil {
		args["toolGroups"] = append(ids{}, *use...)
	}
	if grant != nil {
		args["grant"] = append(ids{}, *grant...)
	}
	return args
}

// pleadRole has an agent ask for a role of a new name: it is made iff the
// agent sees create_role, use ⊆ its grant and grant ⊆ its grant, over all
// ceilings.
func (w *world) pleadRole(t *proptest.Choices, a *agent) error {
	limits := w.oracle.limits(a)
	_, use := anySet(t, limits)
	_, grant := anySet(t, limits)
	wantUse, wantGrant := complete(limits, use, grant)
	var want errcode.Code
	switch {
	case !slices.Contains(w.oracle.visible(a), "create_role"):
		want = errcode.ToolNotAvailable
	case !mayGive(limits, wantUse, wantGrant):
		want = errcode.InsufficientPermissions
	}
	v, err := w.plead(a, "create_role", rolePlea(fmt.Sprint("plea ", len(w.roles), " ", identity.NewID()), use, grant))
	if err != nil || v.code != want {
		return fmt.Errorf("create_role %v grant %v within %v: %q, %v; want %q", use, grant, limits, v.code, err, want)
	}
	if v.code == "" {
		return w.granted(v, a, wantUse, wantGrant)
	}
	return nil
}

// granted notes a role that an agent made.
func (w *world) granted(v verdict, maker *agent, use, grant ids) error {
	got, _ := w.Org().Role(identity.RoleID(v.body.ID))
	return w.note(got, &role{maker: maker.role}, use, grant)
}

// pleadAgent has an agent ask for an agent: it is made iff the one who asks
// sees spawn_agent and may grant all the role uses and grants.
func (w *world) pleadAgent(a *agent, id identity.RoleID) error {
	limits, r := w.oracle.limits(a), w.oracle.roles[id]
	var want errcode.Code
	switch {
	case !slices.Contains(w.oracle.visible(a), "spawn_agent"):
		want = errcode.ToolNotAvailable
	case r == nil || r.gone:
		want = errcode.RoleNotFound
	case !mayGive(limits, r.use.ids, r.grant.ids):
		want = errcode.InsufficientPermissions
	}
	v, err := w.plead(a, "spawn_agent", map[string]any{"roleId": id, "taskBrief": brief})
	if err != nil || v.code != want {
		return fmt.Errorf("spawn_agent %s within %v: %q, %v; want %q", id, limits, v.code, err, want)
	}
	if v.code == "" {
		record, _ := w.Org().Agent(identity.AgentID(v.body.ID))
		task, _ := w.Org().Task(record.Task)
		w.add(record.ID, &agent{role: id, parent: a, state: task.State})
	}
	return nil
}

// Use and grant: what an agent asks for with create_role and spawn_agent is
// made iff nobody gives what they may not grant; and whatever was made, and
// however roles and groups change later, what agents see is what the oracle
// says.
func TestRequestsAreGrantedIffCovered(t *testing.T) {
	staff := newStaff(t)
	flags.Check(t, proptest.Size{Choices: 250}, func(t *proptest.Choices) error {
		w, err := newCourt(staff)
		if w == nil {
			return err
		}
		defer w.Close()
		for err == nil && !t.Done() {
			switch t.Pick(10) {
			case 0, 1, 2:
				err = w.pleadRole(t, w.anyAgent(t))
			case 3, 4, 5:
				err = w.pleadSome(t, w.anyAgent(t))
			case 6, 7:
				err = w.meddle(t)
			case 8:
				if t.Chance(3) {
					err = w.start(t)
				}
			default:
				err = w.desk.step(t)
			}
			if err == nil {
				err = w.checkSeats()
			}
		}
		return err
	})
}

// pleadSome has an agent ask for an agent of a role, mostly one it may spawn.
func (w *world) pleadSome(t *proptest.Choices, a *agent) error {
	id, ok := w.anyRole(t)
	if fit := w.spawnable(a); len(fit) > 0 && !t.Chance(3) {
		id = proptest.OneOf(t, fit...)
	}
	if !ok {
		id = "nobody's"
	}
	return w.pleadAgent(a, id)
}

// meddle is the operator at work on roles.
func (w *world) meddle(t *proptest.Choices) error {
	switch t.Pick(4) {
	case 0:
		return w.createRole(t, nil)
	case 1:
		return w.deleteRole(t)
	}
	return w.updateRole(t)
}
