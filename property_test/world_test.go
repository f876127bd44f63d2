package property_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"testing"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// world is an organization in a house, and what the oracle thinks of it.
type world struct {
	*house
	desk    *desk
	oracle  *oracle
	roles   []identity.RoleID  // in order of creation
	agents  []identity.AgentID // in order of creation
	tasks   []identity.TaskID
	damaged bool // a record was
}

// builtins stand for the built-in groups; their tools only count.
var builtins = []spec{
	{id: toolgroups.OrgManagement, owner: toolgroups.Builtin, tools: []toolSpec{{name: "create_role"}, {name: "spawn_agent"}}},
	{id: toolgroups.Artifact, owner: toolgroups.Builtin, tools: []toolSpec{{name: "put_artifact"}}},
}

// modules are there when a world begins.
var modules = []spec{
	{id: "alpha", owner: "module:a", tools: []toolSpec{{name: "t0"}, {name: "t1", states: []string{"draft"}}, {name: "t2", moves: "draft"}}},
	{id: "beta", owner: "module:b", tools: []toolSpec{{name: "t3"}, {name: "t4", states: []string{"draft", "final"}, moves: "final"}}},
	{id: "lab/one", owner: "module:a", tools: []toolSpec{{name: "t5"}, {name: "t6", states: []string{toolgroups.Undefined}}}, refs: []string{"t0"}},
	{id: "lab/two", owner: toolgroups.Config, tools: []toolSpec{{name: "t7"}}, refs: []string{"t1", "t3", "create_role"}},
}

// choices is every id somebody may put into a role.
var choices = append(append(ids{}, groupIDs...), toolgroups.OrgManagement, toolgroups.Artifact, "unknown", "*")

func newWorld(dir string) (*world, error) {
	w := &world{desk: newDesk()}
	w.oracle = newOracle(&w.desk.naive)
	house, err := openHouse(dir, w.desk.Manager)
	if err != nil {
		return nil, err
	}
	w.house = house
	for _, g := range slices.Concat(builtins, modules) {
		if _, err := w.desk.register(g); err != nil {
			return w, err
		}
	}
	return w, w.start(nil)
}

// reopen ends the process, so to say, and begins another on the same
// directory, where the groups are registered again in their order.
func (w *world) reopen(between func(path string) error) error {
	if err := w.house.close(!w.damaged); err != nil {
		return err
	}
	if err := between(w.dir); err != nil {
		return err
	}
	groups := toolgroups.NewManager(w.desk.naive.reserved...)
	house, err := openHouse(w.dir, groups)
	if err != nil {
		return err
	}
	brought := w.desk.naive.groups
	w.house, w.desk.Manager, w.desk.naive.groups = house, groups, nil
	for _, g := range brought { // references are bound anew, as they are at every start
		if _, err := w.desk.register(g); err != nil {
			return err
		}
	}
	for _, id := range w.tasks {
		if err := w.Resume(context.Background(), id); err != nil {
			return err
		}
		if err := w.opened(id); err != nil {
			return err
		}
	}
	return nil
}

// opened waits until the agent at the top of a task was asked; or, if it is
// tool-gated and has no tool, until it was not and the task has failed.
func (w *world) opened(id identity.TaskID) error {
	record, _ := w.Org().Task(id)
	top := w.oracle.agents[record.Top]
	switch {
	case top.over:
		return nil
	case !w.oracle.gated(top) || len(w.oracle.visible(top)) > 0:
		_, err := await(w.brain.met(top.id))
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	task, err := w.Wait(ctx, id)
	if err != nil || task.Error == nil || task.Error.Code != errcode.NoToolsAvailable {
		return fmt.Errorf("task %s of a tool-gated agent without tools: %v, %+v", id, err, task.Error)
	}
	for _, a := range w.oracle.agents {
		a.over = a.over || a.top() == top
	}
	return nil
}

// start gives a task to root, or to an agent of a role, narrowed to a set or not.
func (w *world) start(t *proptest.Choices) error {
	task := org.TaskSpec{Text: "go", Caller: operator}
	top := &agent{narrow: everything}
	if t != nil {
		task.State, top.state = proptest.OneOf(t, states...), ""
		top.state = task.State
		if t.Chance(2) {
			narrow := toolgroups.Of(someOf(t, 5, choices)...)
			task.Groups, top.narrow = &narrow, w.oracle.bind(listed(narrow))
		}
		if id, ok := w.anyRole(t); ok && t.Chance(2) && !w.oracle.roles[id].gone {
			task.Role, top.role = string(id), id
		}
	}
	id, err := w.Start(context.Background(), task)
	if err != nil {
		return fmt.Errorf("start %+v: %w", task, err)
	}
	record, _ := w.Org().Task(id)
	w.tasks = append(w.tasks, id)
	w.add(record.Top, top)
	return w.opened(id)
}

// listed gives a set as the oracle has it.
func listed(s toolgroups.Set) ids {
	if s.IsAll() {
		return ids{"*"}
	}
	return s.IDs()
}

func (w *world) add(id identity.AgentID, a *agent) {
	a.id = id
	w.oracle.agents[id] = a
	w.agents = append(w.agents, id)
}

func (w *world) anyRole(t *proptest.Choices) (identity.RoleID, bool) {
	if len(w.roles) == 0 {
		return "", false
	}
	return proptest.OneOf(t, w.roles...), true
}

// anyAgent chooses a living agent, half of the time a young one.
func (w *world) anyAgent(t *proptest.Choices) *agent {
	list := slices.DeleteFunc(w.oracle.living(w.agents), func(a *agent) bool { return a.over })
	if t.Chance(2) {
		list = list[max(0, len(list)-3):]
	}
	return proptest.OneOf(t, list...)
}

// heldRole chooses a role, half of the time one that somebody holds.
func (w *world) heldRole(t *proptest.Choices) (identity.RoleID, bool) {
	var held []identity.RoleID
	for _, a := range w.oracle.living(w.agents) {
		if a.role != "" && !w.oracle.roles[a.role].gone {
			held = append(held, a.role)
		}
	}
	if len(held) > 0 && t.Chance(2) {
		return proptest.OneOf(t, held...), true
	}
	return w.anyRole(t)
}

// spawnable lists the roles an agent may spawn.
func (w *world) spawnable(a *agent) []identity.RoleID {
	limits := w.oracle.limits(a)
	return slices.DeleteFunc(slices.Clone(w.roles), func(id identity.RoleID) bool {
		r := w.oracle.roles[id]
		return r.gone || !mayGive(limits, r.use.ids, r.grant.ids)
	})
}

// call is a call of a built-in tool by somebody.
func call(by identity.Principal) tool.Call {
	return tool.Call{ID: identity.CallID(identity.NewID()), By: by}
}

// anySet is a random set, as a rule within limits, or nil once in four.
func anySet(t *proptest.Choices, limits []ids) (*toolgroups.Set, *ids) {
	if t.Chance(4) {
		return nil, nil
	}
	from := choices
	if given, _ := complete(limits, nil, nil); len(given) > 0 && !slices.Contains(given, "*") && !t.Chance(4) {
		from = given
	}
	set := toolgroups.Of(someOf(t, 7, from)...)
	list := listed(set)
	return &set, &list
}

// createRole makes a role for an agent, or for the operator when maker is nil.
func (w *world) createRole(t *proptest.Choices, maker *agent) error {
	by, limits := operator, []ids(nil)
	made := &role{}
	if maker != nil {
		by, limits, made.maker = identity.ByAgent(maker.id), w.oracle.limits(maker), maker.role
	}
	use, useIDs := anySet(t, limits)
	grant, grantIDs := anySet(t, limits)
	spec := org.RoleSpec{Name: fmt.Sprint("role ", len(w.roles), " ", identity.NewID()), Use: use, Grant: grant}
	if maker == nil {
		made.bound(t, &spec)
	}
	wantUse, wantGrant := complete(limits, useIDs, grantIDs)
	got, err := w.CreateRole(context.Background(), call(by), spec)
	if want := mayGive(limits, wantUse, wantGrant); want != (err == nil) || err != nil && errcode.Of(err) != errcode.InsufficientPermissions {
		return fmt.Errorf("create role use %v grant %v by %s within %v: %v, want allowed %v", useIDs, grantIDs, by, limits, err, want)
	}
	if err != nil {
		return nil
	}
	return w.note(got, made, wantUse, wantGrant)
}

// servers is what a role may be confined to; "" is none.
var servers = []string{"", "a", "b", "nowhere"}

// bound has the operator say whether a role is confined and gated, or not.
func (r *role) bound(t *proptest.Choices, spec *org.RoleSpec) {
	if t.Chance(3) {
		r.server = proptest.OneOf(t, servers...)
		spec.Server = &r.server
	}
	if t.Chance(3) {
		r.gated = t.Chance(2)
		spec.ToolGated = &r.gated
	}
}

// note adds a role that was made, if it is what it should be. The order of the
// groups in a set that was left out is the organization's choice.
func (w *world) note(got org.Role, made *role, use, grant ids) error {
	if !sameIDs(listed(got.Use), use) || !sameIDs(listed(got.Grant), grant) || got.Server != made.server || got.ToolGated != made.gated {
		return fmt.Errorf("the role that was made is %+v, want use %v grant %v server %q gated %v", got, use, grant, made.server, made.gated)
	}
	made.use, made.grant = w.oracle.bind(listed(got.Use)), w.oracle.bind(listed(got.Grant))
	w.oracle.roles[got.ID] = made
	w.roles = append(w.roles, got.ID)
	return nil
}

func sameIDs(a, b ids) bool {
	a, b = slices.Clone(a), slices.Clone(b)
	slices.Sort(a)
	slices.Sort(b)
	return slices.Equal(a, b)
}

// updateRole gives a role other sets; the answer must say what that changes.
func (w *world) updateRole(t *proptest.Choices) error {
	id, ok := w.heldRole(t)
	if !ok {
		return nil
	}
	use, grant := toolgroups.Of(someOf(t, 7, choices)...), toolgroups.Of(someOf(t, 7, choices)...)
	before, spec := w.offers(), org.RoleSpec{Use: &use, Grant: &grant}
	r := w.oracle.roles[id]
	next := *r
	next.bound(t, &spec)
	_, diff, err := w.UpdateRole(operator, id, spec, false)
	if r.gone != (errcode.Of(err) == errcode.RoleNotFound) {
		return fmt.Errorf("update role %s, gone %v: %v", id, r.gone, err)
	}
	if r.gone {
		return nil
	}
	next.use, next.grant = w.oracle.bind(listed(use)), w.oracle.bind(listed(grant))
	*r = next
	return w.checkDiff(diff, before)
}

func (w *world) deleteRole(t *proptest.Choices) error {
	id, ok := w.heldRole(t)
	if !ok || t.Chance(2) {
		return nil
	}
	before := w.offers()
	diff, err := w.DeleteRole(operator, id, false)
	r := w.oracle.roles[id]
	if r.gone != (errcode.Of(err) == errcode.RoleNotFound) {
		return fmt.Errorf("delete role %s, gone %v: %v", id, r.gone, err)
	}
	if r.gone {
		return nil
	}
	r.gone = true
	return w.checkDiff(diff, before)
}

// offers gives what each living agent may call in some state, sorted.
func (w *world) offers() map[identity.AgentID][]string {
	all := map[identity.AgentID][]string{}
	for _, a := range w.oracle.living(w.agents) {
		all[a.id] = slices.DeleteFunc(w.oracle.effective(a), func(name string) bool {
			t, _ := w.desk.naive.tool(name)
			return t.states != nil && len(t.states) == 0
		})
		slices.Sort(all[a.id])
	}
	return all
}

// checkDiff holds an effective-permission diff against the oracle.
func (w *world) checkDiff(got org.Diff, before map[identity.AgentID][]string) error {
	want := org.Diff{}
	for id, after := range w.offers() {
		gains, loses := without(after, before[id]), without(before[id], after)
		if len(gains)+len(loses) > 0 {
			want = append(want, org.AgentDiff{Agent: id, Gains: gains, Loses: loses})
		}
	}
	slices.SortFunc(want, func(a, b org.AgentDiff) int { return cmp.Compare(a.Agent, b.Agent) })
	if !slices.EqualFunc(got, want, func(a, b org.AgentDiff) bool {
		return a.Agent == b.Agent && slices.Equal(a.Gains, b.Gains) && slices.Equal(a.Loses, b.Loses)
	}) {
		return fmt.Errorf("the change answers the diff %+v, want %+v", got, want)
	}
	return nil
}

func without(list, others []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(name string) bool { return slices.Contains(others, name) })
}

var brief = org.TaskBrief{Objective: "o", Constraints: org.Lines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}

// spawn has an agent spawn one of a role, whoever made that.
func (w *world) spawn(t *proptest.Choices) error {
	parent := w.anyAgent(t)
	id, ok := w.anyRole(t)
	if fit := w.spawnable(parent); len(fit) > 0 && !t.Chance(4) {
		id = proptest.OneOf(t, fit...)
	}
	if !ok {
		return nil
	}
	r, limits := w.oracle.roles[id], w.oracle.limits(parent)
	var want errcode.Code
	switch {
	case r.gone:
		want = errcode.RoleNotFound
	case !mayGive(limits, r.use.ids, r.grant.ids):
		want = errcode.InsufficientPermissions
	}
	got, err := w.Spawn(context.Background(), call(identity.ByAgent(parent.id)), org.Spawn{Role: id, Brief: brief}, nil)
	if errcode.Of(err) != want {
		return fmt.Errorf("spawn use %v grant %v within %v: %v, want %q", r.use.ids, r.grant.ids, limits, err, want)
	}
	if err == nil {
		record, _ := w.Org().Agent(got.ID)
		task, _ := w.Org().Task(record.Task)
		w.add(got.ID, &agent{role: id, parent: parent, state: task.State})
	}
	return nil
}

func (w *world) terminate(t *proptest.Choices) error {
	target := w.anyAgent(t)
	err := w.Terminate(context.Background(), call(operator), target.id, "why not")
	if (target.parent == nil) != (errcode.Of(err) == errcode.NotChildAgent) {
		return fmt.Errorf("terminate agent %s, at the top %v: %v", target.id, target.parent == nil, err)
	}
	if err == nil {
		w.oracle.end(target)
	}
	return nil
}

// move has an agent call a tool in its own turn, which may move its state.
func (w *world) move(t *proptest.Choices) error {
	a := w.anyAgent(t)
	if a.parent == nil { // these never come to act by themselves
		return nil
	}
	name := proptest.OneOf(t, toolNames...)
	if w.oracle.gated(a) && len(w.oracle.visible(a)) == 0 {
		return w.mute(a)
	}
	heard := w.brain.order(a.id, model.Call{Name: name, Args: []byte(`{}`)})
	if _, err := w.Send(context.Background(), call(operator), string(a.id), []byte(`"go"`), 0); err != nil {
		return fmt.Errorf("send to agent %s: %w", a.id, err)
	}
	got, err := await(heard)
	if err != nil {
		return fmt.Errorf("agent %s in its turn: %w", a.id, err)
	}
	allowed := slices.Contains(w.oracle.visible(a), name)
	if len(got) != 1 || got[0].IsError == allowed {
		return fmt.Errorf("agent %s called %s: %+v, want allowed %v", a.id, name, got, allowed)
	}
	if tool, _ := w.desk.naive.tool(name); allowed && tool.moves != "" {
		a.state = tool.moves
	}
	return nil
}

// mute writes to a tool-gated agent without tools: its turn fails and it is
// not asked.
func (w *world) mute(a *agent) error {
	from, asked := w.store.Seq(), w.brain.asked(a.id)
	if _, err := w.Send(context.Background(), call(operator), string(a.id), []byte(`"go"`), 0); err != nil {
		return fmt.Errorf("send to agent %s: %w", a.id, err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for e, err := range w.store.Follow(ctx, from, true) {
		if failed, ok := e.Body.(journal.Failed); err != nil || ok && e.Agent == a.id {
			if err != nil || failed.Code != errcode.NoToolsAvailable || w.brain.asked(a.id) != asked {
				return fmt.Errorf("a turn of agent %s, which is tool-gated and has no tool: %v, %+v, asked %d times, want %d", a.id, err, failed, w.brain.asked(a.id), asked)
			}
			return nil
		}
	}
	return fmt.Errorf("a turn of agent %s, which is tool-gated and has no tool, did not fail", a.id)
}

// damage flips a bit of a role's record on disk while nobody has it open.
func (w *world) damage(t *proptest.Choices) error {
	id, ok := w.anyRole(t)
	if !ok || w.oracle.roles[id].gone {
		return w.reopen(func(string) error { return nil })
	}
	return w.reopen(func(dir string) error {
		w.damaged, w.oracle.roles[id].gone, w.oracle.roles[id].lost = true, true, true
		return flip(dir, "role\x00"+string(id), t.Pick(200))
	})
}

func flip(dir, key string, at int) error {
	db, err := bolt.Open(dir+"/"+persist.FileName, 0o600, nil)
	if err != nil {
		return err
	}
	defer db.Close()
	return db.Update(func(tx *bolt.Tx) error {
		b := tx.Bucket([]byte("records"))
		value := slices.Clone(b.Get([]byte(key)))
		if len(value) == 0 {
			return fmt.Errorf("no record %q", key)
		}
		value[at%len(value)] ^= 1
		return b.Put([]byte(key), value)
	})
}

// step does something to the world.
func (w *world) step(t *proptest.Choices) error {
	switch t.Pick(18) {
	case 0, 1:
		return w.createRole(t, nil)
	case 2, 3, 4:
		return w.createRole(t, w.anyAgent(t))
	case 5, 6, 7:
		return w.spawn(t)
	case 8, 9:
		return w.move(t)
	case 10, 16, 17:
		return w.updateRole(t)
	case 11:
		return w.deleteRole(t)
	case 12:
		return w.terminate(t)
	case 13:
		if t.Chance(2) {
			return w.damage(t)
		}
		return w.start(t)
	}
	return w.desk.step(t)
}

// checkSeats compares what everybody sees, and is told, with the oracle.
func (w *world) checkSeats() error {
	for _, id := range w.agents {
		a := w.oracle.agents[id]
		if err := w.checkSeat(identity.ByAgent(id), w.oracle.visible(a), w.oracle.gated(a)); err != nil {
			return fmt.Errorf("agent %s of role %q in state %q: %w", id, a.role, a.state, err)
		}
	}
	for _, p := range []identity.Principal{{}, operator, identity.ByAgent("nobody"), identity.ByCaller("u", "root")} {
		if err := w.checkSeat(p, nil, false); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

func (w *world) checkSeat(p identity.Principal, want []string, gated bool) error {
	seat := w.Gate().Subject(p)
	if offer := seat.Tools(); offer.ToolGated != gated || !slices.Equal(offer.Names, want) {
		return fmt.Errorf("is offered %v, gated %v; want %v, %v", offer.Names, offer.ToolGated, want, gated)
	}
	if got := definitionNames(seat.Visible()); !slices.Equal(got, want) {
		return fmt.Errorf("sees %v, want %v", got, want)
	}
	for _, name := range w.everyName() {
		d := seat.Authorize(name)
		code := errcode.UnknownTool
		switch {
		case slices.Contains(want, name):
			code = ""
		case gated || w.desk.naive.home(name) != nil:
			code = errcode.ToolNotAvailable
		}
		if d.Allowed() != (code == "") || d.Code() != code {
			return fmt.Errorf("authorize %q: %q (%s), want %q", name, d.Code(), d.Reason(), code)
		}
	}
	return nil
}

func (w *world) everyName() []string {
	return slices.Concat(toolNames, junk, []string{"create_role", "spawn_agent", "put_artifact"})
}

// checkCalls takes a call of every name to the gate: it runs iff it is visible.
func (w *world) checkCalls(a *agent) error {
	want := w.oracle.visible(a)
	for _, name := range w.everyName() {
		before := w.desk.runs.of(name)
		out, err := knock(w.Runtime, identity.ByAgent(a.id), name, `{}`)
		if err != nil {
			return err
		}
		ran, allowed := w.desk.runs.of(name)-before, slices.Contains(want, name)
		if out.Allowed() != allowed || (ran == 1) != allowed || ran > 1 {
			return fmt.Errorf("agent %s called %q: allowed %v, ran %d times; want allowed %v", a.id, name, out.Allowed(), ran, allowed)
		}
	}
	return nil
}

// Visible = callable, in every state: after anything that happens, what an
// agent sees is what it may call, and both are
//
//	effective(agent) = use ∩ task ∩ ceiling(makers) ∩ its parent's effective grant
//
// as sets of tools, of those servers alone that one of these roles is confined
// to, and less those its workflow state does not offer. Also with deleted
// roles, unregistered groups and damaged records. Who is tool-gated, or bounded
// by a role that is or may have been, is not asked without a tool.
func TestVisibleIsCallableInEveryState(t *testing.T) {
	dir, n := scratch(t), 0
	flags.Check(t, proptest.Size{Choices: 400}, func(t *proptest.Choices) error {
		n++
		w, err := newWorld(fmt.Sprint(dir, "/", n))
		if w == nil {
			return err
		}
		for err == nil && !t.Done() {
			if err = w.step(t); err == nil {
				err = w.checkSeats()
			}
			if err == nil {
				err = w.checkCalls(proptest.OneOf(t, w.oracle.living(w.agents)...))
			}
		}
		return cmp.Or(err, w.house.close(!w.damaged))
	})
}
