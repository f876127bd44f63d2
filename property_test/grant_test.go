package property_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// staff is the real built-in groups over a runtime that can be exchanged:
// their schemas take longer than a case.
type staff struct {
	*runtime.Runtime
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
	s.Runtime = rt
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
	rt, err := newRuntime(newMemory(), w.desk.Manager, newBrain())
	if err != nil {
		return nil, err
	}
	w.house = &house{Runtime: rt}
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
	v.code = errcode.Of(out.Denial)
	if out.Denial == nil && out.Result.IsError {
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
func (w *world) pleadRole(t *tape, a *agent) error {
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
	v, err := w.plead(a, "create_role", rolePlea(fmt.Sprint("plea ", len(w.roles), " ", identity.Fresh()), use, grant))
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
	check(t, scale{choices: 250}, func(t *tape) error {
		w, err := newCourt(staff)
		if w == nil {
			return err
		}
		defer w.Close()
		for err == nil && !t.done() {
			switch t.pick(10) {
			case 0, 1, 2:
				err = w.pleadRole(t, w.anyAgent(t))
			case 3, 4, 5:
				err = w.pleadSome(t, w.anyAgent(t))
			case 6, 7:
				err = w.meddle(t)
			case 8:
				if t.chance(3) {
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
func (w *world) pleadSome(t *tape, a *agent) error {
	id, ok := w.anyRole(t)
	if fit := w.spawnable(a); len(fit) > 0 && !t.chance(3) {
		id = oneOf(t, fit)
	}
	if !ok {
		id = "nobody's"
	}
	return w.pleadAgent(a, id)
}

// meddle is the operator at work on roles.
func (w *world) meddle(t *tape) error {
	switch t.pick(4) {
	case 0:
		return w.createRole(t, nil)
	case 1:
		return w.deleteRole(t)
	}
	return w.updateRole(t)
}

// Closure: nothing an agent creates can ever call a tool outside what root
// granted. A manager is compromised, and with it everybody it spawns; they
// make 30 calls of whatever they like, while groups come and go. Then no agent
// below root sees, and at no time a handler ran, what root had not granted the
// manager; and all is as the oracle says.
func TestClosureOfACompromisedManager(t *testing.T) {
	staff := newStaff(t)
	check(t, scale{choices: 400, times: 3}, func(t *tape) error {
		w, err := newCourt(staff)
		if w == nil {
			return err
		}
		defer w.Close()
		plot, err := newPlot(t, w)
		for i := 0; err == nil && i < 30; i++ {
			err = plot.move(t)
		}
		if err != nil {
			return err
		}
		return plot.check()
	})
}

// plot is a compromised manager in a world.
type plot struct {
	*world
	root, manager *agent
	spoils        bound // what root granted: the manager's use and grant
	grant         bound // what the manager may give
}

// newPlot has the operator make a rich role, and root a manager.
func newPlot(t *tape, w *world) (*plot, error) {
	p := &plot{world: w, root: w.oracle.agents[w.agents[0]]}
	all := ids{"*"}
	rich, err := w.CreateRole(context.Background(), call(operator), org.RoleSpec{Name: "rich"})
	if err != nil {
		return nil, err
	}
	if err := w.note(rich, &role{}, all, all); err != nil {
		return nil, err
	}
	from := append(ids{toolgroups.Artifact}, groupIDs...)
	use, grant := append(someOf(t, 3, from), toolgroups.OrgManagement), someOf(t, 5, from)
	if !t.chance(3) {
		grant = append(grant, toolgroups.OrgManagement)
	}
	v, err := w.plead(p.root, "create_role", rolePlea("manager", &use, &grant))
	if err != nil || v.code != "" {
		return nil, fmt.Errorf("root makes a manager: %q, %v", v.code, err)
	}
	use, grant = listed(toolgroups.Of(use...)), listed(toolgroups.Of(grant...))
	if err := w.granted(v, p.root, use, grant); err != nil {
		return nil, err
	}
	p.grant, p.spoils = w.oracle.bind(grant), w.oracle.bind(slices.Concat(use, grant))
	if err := w.pleadAgent(p.root, identity.RoleID(v.body.ID)); err != nil {
		return nil, err
	}
	p.manager = w.oracle.agents[w.agents[1]]
	return p, nil
}

// gang lists the manager and whoever it, and they, spawned.
func (p *plot) gang() []*agent {
	return slices.DeleteFunc(p.oracle.living(p.agents), func(a *agent) bool { return a == p.root })
}

// move is one call by one of the gang or, once in seven, somebody else's
// change of a group.
func (p *plot) move(t *tape) error {
	if t.chance(7) {
		return p.desk.step(t)
	}
	a := oneOf(t, p.gang())
	switch t.pick(7) {
	case 0, 1:
		return p.pleadRole(t, a)
	case 2, 3:
		return p.pleadSome(t, a)
	case 4:
		return p.lie(t, a)
	case 5:
		return p.strike(t, a)
	}
	return p.reach(t, a)
}

// lie asks for what no honest agent asks for; all of it must be refused.
func (p *plot) lie(t *tape, a *agent) error {
	ask := func(name string, args any) error {
		v, err := p.plead(a, name, args)
		if err == nil && v.code == "" {
			err = fmt.Errorf("%s of %s by agent %s was granted", name, mustJSON(args), a.id)
		}
		return err
	}
	switch t.pick(5) {
	case 0: // a name that passes for root's, or is another's
		return ask("create_role", rolePlea(oneOf(t, []string{"root", "R\u043eot", "r\uff4fot", "manager", "rich"}), &ids{}, &ids{}))
	case 1: // more than anybody below root has
		return ask("create_role", rolePlea("mine "+identity.Fresh(), &ids{"alpha", "*"}, nil))
	case 2:
		return ask("spawn_agent", map[string]any{"roleId": oneOf(t, []string{"root", "operator", "config", "rich"}), "taskBrief": brief})
	case 3: // under another's name
		return ask("spawn_agent", map[string]any{"roleId": oneOf(t, p.roles), "taskBrief": brief, "parentAgentId": p.root.id})
	}
	return ask("create_role", map[string]any{"name": "x", "rolePrompt": "x", "toolGroups": ids{}, "createdBy": "root"})
}

// strike ends somebody, which an agent may do to those below it only.
func (p *plot) strike(t *tape, a *agent) error {
	target := oneOf(t, p.oracle.living(p.agents))
	v, err := p.plead(a, "terminate_agent", map[string]any{"agentId": target.id})
	if err != nil || v.code != "" {
		return err
	}
	if !below(target, a) {
		return fmt.Errorf("agent %s terminated %s, which is not below it", a.id, target.id)
	}
	p.oracle.end(target)
	return nil
}

func below(a, ancestor *agent) bool {
	for a = a.parent; a != nil; a = a.parent {
		if a == ancestor {
			return true
		}
	}
	return false
}

// reach calls any tool; its handler runs only if root granted it.
func (p *plot) reach(t *tape, a *agent) error {
	name := oneOf(t, toolNames)
	before := p.desk.runs.of(name)
	if _, err := knock(p.Runtime, identity.ByAgent(a.id), name, `{}`); err != nil {
		return err
	}
	if ran := p.desk.runs.of(name) > before; ran && !slices.Contains(p.oracle.tools(p.spoils), name) {
		return fmt.Errorf("agent %s ran %s; root granted %v", a.id, name, p.oracle.tools(p.spoils))
	}
	return nil
}

// check looks at every agent there is, also those the plot does not know of.
func (p *plot) check() error {
	spoils, grant := p.oracle.tools(p.spoils), p.oracle.tools(p.grant)
	living := p.Org().Agents("")
	if len(living) != len(p.gang())+1 {
		return fmt.Errorf("%d agents live, want root and %d", len(living), len(p.gang()))
	}
	for _, a := range living {
		within := grant
		switch a.ID {
		case p.root.id:
			continue
		case p.manager.id:
			within = spoils
		}
		seat := p.Gate().Bind(identity.ByAgent(a.ID))
		if got := beyond(seat, within); len(got) > 0 {
			return fmt.Errorf("agent %s sees %v; root granted %v", a.ID, got, within)
		}
	}
	return p.checkSeats()
}

// beyond lists what a seat sees that is not within a list.
func beyond(s *gate.Seat, within []string) []string {
	return slices.DeleteFunc(definitionNames(s.Visible()), func(name string) bool { return slices.Contains(within, name) })
}
