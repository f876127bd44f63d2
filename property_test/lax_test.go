package property_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// rules are the rules of design §4 that a lax organization may leave out.
type rules uint16

const (
	useRule    rules = 1 << iota // use ⊆ the creator's grant
	grantRule                    // grant ⊆ the creator's grant
	spawnRule                    // the spawner's grant covers the role
	parentRule                   // what the agents above may give bounds what is below
	makerRule                    // what the makers of a role may give bounds its agents
	taskRule                     // what the caller may use, and the narrowing, bounds a task
	belowRule                    // an agent ends its own descendants alone
	writeRule                    // an agent writes to whom it may
	ownerRule                    // a group is meant as its owner's when it was written
	serverRule                   // a role's server confines it and all it bounds
	gateRule                     // a tool-gated role gates all it bounds
)

// lax is an organization with rules left out, under the real gate and the
// real built-in tools: what a fault in org would be. It keeps its books as org
// does, and nothing else.
type lax struct {
	builtin.Deps // nil: what is not here breaks down
	off          rules
	gate         *gate.Gate
	groups       *toolgroups.Manager
	diary        *diary
	roles        map[identity.RoleID]*org.Role
	agents       map[identity.AgentID]*org.Agent
	tasks        map[identity.TaskID]*org.Task
}

// newLaxScene opens an organization that leaves rules out.
func newLaxScene(off rules) (*scene, error) {
	s := emptyScene()
	x := &lax{
		off: off, groups: s.groups.Manager, diary: &s.diary,
		roles: map[identity.RoleID]*org.Role{}, agents: map[identity.AgentID]*org.Agent{}, tasks: map[identity.TaskID]*org.Task{},
	}
	var err error
	x.gate, err = gate.New(gate.Config{Groups: x.groups, Directory: x, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	s.realm = x
	groups, err := builtin.Groups(x, builtin.Options{})
	return s, errors.Join(err, s.furnish(groups), s.endow())
}

// Gate implements realm.
func (x *lax) Gate() *gate.Gate { return x.gate }

// Close implements realm.
func (x *lax) Close() error { return nil }

func (x *lax) without(r rules) bool { return x.off&r != 0 }

// bound gives a set as it was written, or as it would be written now.
func (x *lax) bound(s toolgroups.Set, owners map[toolgroups.GroupID]toolgroups.Owner) toolgroups.BoundSet {
	if x.without(ownerRule) {
		return x.groups.Snapshot().Bind(s)
	}
	return toolgroups.BoundSet{Set: s, Owners: owners}
}

func (x *lax) grant(r *org.Role) toolgroups.BoundSet { return x.bound(r.Grant, r.GroupOwners) }

// role finds an active role.
func (x *lax) role(id identity.RoleID) (*org.Role, bool) {
	r, ok := x.roles[id]
	return r, ok && r.Status == org.Active
}

var shut = []toolgroups.BoundSet{{}}

// makers lists what the makers of a role may give.
func (x *lax) makers(r *org.Role) []toolgroups.BoundSet {
	if r.CreatedByRole == org.CreatorRoot || r.CreatedByRole == org.CreatorOperator || x.without(makerRule) {
		return nil
	}
	maker, ok := x.role(identity.RoleID(r.CreatedByRole))
	if !ok {
		return shut
	}
	return append(x.makers(maker), x.grant(maker))
}

// bounds lists what bounds a task.
func (x *lax) bounds(id identity.TaskID) []toolgroups.BoundSet {
	t := x.tasks[id]
	if x.without(taskRule) {
		return nil
	}
	list := []toolgroups.BoundSet{x.bound(t.Ceiling.Set, t.Ceiling.Owners), x.bound(t.Groups.Set, t.Groups.Owners)}
	if t.CallerRole == "" {
		return list
	}
	caller, ok := x.role(t.CallerRole)
	if !ok {
		return shut
	}
	return append(append(list, x.makers(caller)...), x.bound(caller.Use, caller.GroupOwners))
}

// above lists what those above an agent may give.
func (x *lax) above(a *org.Agent) []toolgroups.BoundSet {
	if a.Parent == "" || x.without(parentRule) {
		return x.bounds(a.Task)
	}
	return x.giving(x.agents[a.Parent])
}

// giving lists what all must pass that an agent gives.
func (x *lax) giving(a *org.Agent) []toolgroups.BoundSet {
	if a.Root {
		return x.bounds(a.Task)
	}
	r, ok := x.role(a.Role)
	if !ok {
		return shut
	}
	return append(append(x.above(a), x.makers(r)...), x.grant(r))
}

// Resolve implements gate.Directory.
func (x *lax) Resolve(p identity.Principal) (*toolgroups.ViewRef, string) {
	slot := new(toolgroups.ViewRef)
	a, ok := x.living(p.Agent)
	if !ok {
		return slot, ""
	}
	if a.Root {
		slot.Publish(x.compile(toolgroups.BoundSet{
			Set:    toolgroups.Of(toolgroups.OrgManagement),
			Owners: map[toolgroups.GroupID]toolgroups.Owner{toolgroups.OrgManagement: toolgroups.Builtin},
		}, nil))
		return slot, ""
	}
	view := x.compile(x.using(a))
	if x.gated(a) {
		view.SetToolGated()
	}
	slot.Publish(view)
	return slot, ""
}

// using gives what an agent uses and what bounds that; nothing when its role
// is gone.
func (x *lax) using(a *org.Agent) (toolgroups.BoundSet, []toolgroups.BoundSet) {
	r, ok := x.role(a.Role)
	if !ok {
		return toolgroups.BoundSet{}, nil
	}
	return x.bound(r.Use, r.GroupOwners), slices.Concat(x.above(a), x.makers(r), x.servers(a))
}

// bounding lists every role that bounds an agent, with their makers.
func (x *lax) bounding(a *org.Agent) []*org.Role {
	roles := x.lineage(x.tasks[a.Task].CallerRole)
	for ; a != nil; a = x.agents[a.Parent] {
		roles = append(roles, x.lineage(a.Role)...)
	}
	return roles
}

func (x *lax) lineage(id identity.RoleID) []*org.Role {
	var list []*org.Role
	for r := x.roles[id]; r != nil; r = x.roles[identity.RoleID(r.CreatedByRole)] {
		list = append(list, r)
	}
	return list
}

// servers lists what an agent is confined to.
func (x *lax) servers(a *org.Agent) []toolgroups.BoundSet {
	var list []toolgroups.BoundSet
	for _, r := range x.bounding(a) {
		if r.Server != "" && !x.without(serverRule) {
			list = append(list, toolgroups.BoundSet{Set: toolgroups.All(), Only: toolgroups.Server(r.Server)})
		}
	}
	return list
}

func (x *lax) gated(a *org.Agent) bool {
	return !x.without(gateRule) && slices.ContainsFunc(x.bounding(a), func(r *org.Role) bool { return r.ToolGated })
}

func (x *lax) compile(use toolgroups.BoundSet, limits []toolgroups.BoundSet) *toolgroups.View {
	return x.groups.Snapshot().Compile(use, limits...)
}

func (x *lax) living(id identity.AgentID) (*org.Agent, bool) {
	a, ok := x.agents[id]
	return a, ok && a.Status == org.Active
}

var errRefused = errcode.New(errcode.InsufficientPermissions, "refused")

func (x *lax) covered(limits []toolgroups.BoundSet, set toolgroups.Set) bool {
	return !slices.ContainsFunc(limits, func(b toolgroups.BoundSet) bool { return !b.Set.Covers(set) })
}

// keep puts a record where it can be read.
func (x *lax) keep(kind org.Kind, key string, v any) {
	x.diary.note([]journal.Record{{Kind: string(kind), Key: key, Value: mustJSON(v)}}, nil)
}

// FindRole implements builtin.Roles.
func (x *lax) FindRole(_ context.Context, _ tool.Call, name string) (*org.Role, error) {
	for _, r := range x.roles {
		if r.Name == name && r.Status == org.Active {
			return r, nil
		}
	}
	return nil, nil
}

// CreateRole implements builtin.Roles and realm.
func (x *lax) CreateRole(ctx context.Context, c tool.Call, spec org.RoleSpec) (org.Role, error) {
	id := identity.RoleID(identity.Derive(string(c.ID), "role"))
	if old, ok := x.roles[id]; ok {
		return *old, nil
	}
	r := &org.Role{ID: id, Name: spec.Name, CreatedBy: org.CreatorOperator, CreatedByRole: org.CreatorOperator, Status: org.Active}
	var limits []toolgroups.BoundSet
	if c.By.Kind == identity.Agent {
		a := x.agents[c.By.Agent]
		limits, r.CreatedBy, r.CreatedByRole = x.giving(a), string(a.ID), string(a.Role)
		if a.Root {
			r.CreatedBy, r.CreatedByRole = org.CreatorRoot, org.CreatorRoot
		}
	}
	x.fill(r, spec, limits)
	x.confine(r, spec)
	same, _ := x.FindRole(ctx, c, spec.Name)
	if err := org.CheckRoleName(spec.Name); err != nil || same != nil {
		return org.Role{}, errors.Join(err, errRefused)
	}
	if !x.without(useRule) && !x.covered(limits, r.Use) || !x.without(grantRule) && !x.covered(limits, r.Grant) {
		return org.Role{}, errRefused
	}
	return x.write(r), nil
}

// fill completes what a specification leaves out.
func (x *lax) fill(r *org.Role, spec org.RoleSpec, limits []toolgroups.BoundSet) {
	if spec.Use == nil {
		all := toolgroups.All()
		for _, b := range limits {
			all = all.Intersect(b.Set)
		}
		spec.Use = &all
	}
	if r.Use = *spec.Use; spec.Grant != nil {
		r.Grant = *spec.Grant
	} else if r.Use.Has(toolgroups.OrgManagement) {
		r.Grant = r.Use
	}
}

// confine takes over what bounds a role beside its sets.
func (x *lax) confine(r *org.Role, spec org.RoleSpec) {
	if spec.Server != nil {
		r.Server = *spec.Server
	}
	if spec.ToolGated != nil {
		r.ToolGated = *spec.ToolGated
	}
}

// write puts a role in force, bound to the owners there are.
func (x *lax) write(r *org.Role) org.Role {
	r.GroupOwners = x.groups.Snapshot().Bind(toolgroups.Of(append(r.Use.IDs(), r.Grant.IDs()...)...)).Owners
	x.roles[r.ID] = r
	x.keep(org.KindRole, string(r.ID), r)
	return *r
}

// UpdateRole implements realm.
func (x *lax) UpdateRole(_ identity.Principal, id identity.RoleID, spec org.RoleSpec, _ bool) (org.Role, org.Diff, error) {
	old, ok := x.role(id)
	if !ok {
		return org.Role{}, nil, errRefused
	}
	next := *old
	if spec.Use != nil {
		next.Use = *spec.Use
	}
	if spec.Grant != nil {
		next.Grant = *spec.Grant
	}
	x.confine(&next, spec)
	return x.write(&next), nil, nil
}

// DeleteRole implements realm.
func (x *lax) DeleteRole(_ identity.Principal, id identity.RoleID, _ bool) (org.Diff, error) {
	old, ok := x.role(id)
	if !ok {
		return nil, errRefused
	}
	next := *old
	next.Status = org.Deleted
	x.write(&next)
	return nil, nil
}

// Start implements realm.
func (x *lax) Start(_ context.Context, spec org.TaskSpec) (identity.TaskID, error) {
	id := identity.TaskID(identity.NewID())
	all := toolgroups.BoundSet{Set: toolgroups.All()}
	t := &org.Task{ID: id, Top: identity.AgentID(identity.NewID()), CallerRole: spec.Caller.Role, Ceiling: all, Groups: all, Status: org.Running}
	if spec.Groups != nil {
		t.Groups = x.groups.Snapshot().Bind(*spec.Groups)
	}
	if caller, ok := x.role(spec.Caller.Role); ok {
		t.Ceiling = toolgroups.BoundSet{Set: caller.Use, Owners: caller.GroupOwners}
	}
	x.tasks[id] = t
	x.keep(org.KindTask, string(id), t)
	x.admit(&org.Agent{ID: t.Top, Role: org.RootRole, Task: id, Root: true, Status: org.Active})
	return id, nil
}

func (x *lax) admit(a *org.Agent) {
	x.agents[a.ID] = a
	x.keep(org.KindAgent, string(a.ID), a)
}

// Spawn implements builtin.Agents.
func (x *lax) Spawn(_ context.Context, c tool.Call, s org.Spawn, first json.RawMessage) (org.SpawnResult, error) {
	id := identity.AgentID(identity.Derive(string(c.ID), "agent"))
	out := org.SpawnResult{ID: id, Role: s.Role}
	if x.agents[id] != nil {
		return out, nil
	}
	parent := x.agents[c.By.Agent]
	if err := x.maySpawn(parent, s); err != nil {
		return org.SpawnResult{}, err
	}
	x.admit(&org.Agent{ID: id, Role: s.Role, Parent: parent.ID, Task: parent.Task, Brief: s.Brief, Status: org.Active})
	if first != nil {
		x.post(parent, id)
	}
	return out, nil
}

func (x *lax) maySpawn(parent *org.Agent, s org.Spawn) error {
	r, ok := x.role(s.Role)
	if !ok || s.Brief.Check() != nil {
		return errRefused
	}
	if limits := x.giving(parent); !x.without(spawnRule) && !(x.covered(limits, r.Use) && x.covered(limits, r.Grant)) {
		return errRefused
	}
	for _, c := range s.Brief.Collaborators {
		if to := c.Agent; to != parent.ID && to != org.RootRole && to != "user" && !x.mayWrite(parent, to) {
			return errRefused
		}
	}
	return nil
}

// below says whether an agent is a descendant of another.
func (x *lax) below(a *org.Agent, id identity.AgentID) bool {
	for a.Parent != "" {
		if a.Parent == id {
			return true
		}
		a = x.agents[a.Parent]
	}
	return false
}

// Terminate implements builtin.Agents and realm.
func (x *lax) Terminate(_ context.Context, c tool.Call, target identity.AgentID, _ string) error {
	a, ok := x.living(target)
	if !ok || a.Root || c.By.Kind == identity.Agent && !x.without(belowRule) && !x.below(a, c.By.Agent) {
		return errRefused
	}
	for _, b := range x.agents {
		if b.Status == org.Active && (b == a || x.below(b, target)) {
			b.Status = org.Terminated
			x.keep(org.KindAgent, string(b.ID), b)
		}
	}
	return nil
}

func (x *lax) mayWrite(from *org.Agent, to identity.AgentID) bool {
	a, ok := x.living(to)
	if !ok || a.Task != from.Task {
		return false
	}
	named := slices.ContainsFunc(from.Brief.Collaborators, func(c org.Collaborator) bool { return c.Agent == to })
	return x.without(writeRule) || to == from.Parent || x.tasks[a.Task].Top == to || x.below(a, from.ID) || named
}

func (x *lax) post(from *org.Agent, to identity.AgentID) {
	m := journal.Message{}
	m.From, m.To, m.Task = string(from.ID), string(to), from.Task
	x.diary.note(nil, []journal.Message{m})
}

// SendAll implements builtin.Messages.
func (x *lax) SendAll(_ context.Context, c tool.Call, to []string, _ json.RawMessage, _ time.Duration) ([]org.SendResult, error) {
	from := x.agents[c.By.Agent]
	for i, name := range to {
		if name == org.RootRole {
			to[i] = string(x.tasks[from.Task].Top)
		}
		if name != "user" && !x.mayWrite(from, identity.AgentID(to[i])) {
			return nil, errRefused
		}
	}
	for _, name := range to {
		if name != "user" {
			x.post(from, identity.AgentID(name))
		}
	}
	return make([]org.SendResult, len(to)), nil
}

// A lax organization that leaves no rule out keeps the law: what the tests
// below find is the rule's being off, and nothing else.
func TestTheLaxOrganizationWithAllRulesKeepsTheLaw(t *testing.T) {
	for _, gullible := range []bool{false, true} {
		kind, text := hunt(t, 0, "", gullible, 20)
		if kind != "" {
			t.Errorf("root gullible %v: %s", gullible, text)
		}
	}
}

// With a rule switched off the plots find the escalation, each time the kind
// it is. A rule that others stand behind breaks no bound by itself: then what
// was given is found, and the tool that acts when those are off too.
func TestClosureFindsEachRuleSwitchedOff(t *testing.T) {
	tests := []struct {
		name     string
		off      rules
		kind     string
		gullible bool
	}{
		{"use beyond the creator's grant is given", useRule, gave, false},
		{"grant beyond the creator's grant is given", grantRule, gave, false},
		{"a role beyond the spawner's grant is spawned", spawnRule, gave, false},
		{"a child keeps what its parent lost", parentRule, ran, false},
		{"a role keeps what its maker lost", makerRule, ran, false},
		{"a task gives more than it has", taskRule, gave, false},
		{"a task acts beyond its narrowing", taskRule, ran, false},
		{"a task acts beyond its caller", taskRule, ran, true},
		{"use beyond the creator's grant acts, with all that stands behind it off", useRule | spawnRule | makerRule | parentRule, ran, false},
		{"grant beyond the creator's grant acts, with all that stands behind it off", grantRule | makerRule | parentRule, ran, false},
		{"a role beyond the spawner's grant acts, with what stands behind it off", spawnRule | parentRule, ran, false},
		{"an agent ends one that is not below it", belowRule, ended, false},
		{"an agent writes to whom it may not", writeRule, wrote, false},
		{"another owner inherits a grant", ownerRule, ran, false},
		{"a role acts with another server's tool", serverRule, ran, false},
		{"a task acts with another server's tool than its caller's", serverRule, ran, true},
		{"a tool-gated agent learns which tools there are", gateRule, told, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if kind, text := hunt(t, tt.off, tt.kind, tt.gullible, 400); kind != tt.kind {
				t.Errorf("found %q (%s), want %q", kind, text, tt.kind)
			}
		})
	}
}

// hunt plays plots against a lax organization until a breach of some kind is
// found, in so many hosts at most, and says what it was.
func hunt(t *testing.T, off rules, only string, gullible bool, hosts int) (kind, text string) {
	t.Helper()
	seed := flags.Seed()
	for n := range hosts {
		s, err := newLaxScene(off)
		if err != nil {
			t.Fatal(err)
		}
		s.only, s.gullible = only, gullible
		tape := randomTape(seed, n, plotsOfAHost*callsOfAPlot*10)
		if err := s.host(&tape); err != nil {
			if b, ok := errors.AsType[*breach](err); ok {
				t.Logf("after %d sequences, seed %d: %s", n*plotsOfAHost+s.told["plots"]+1, seed, firstLine(b.Error()))
				return b.kind, fmt.Sprint(err)
			}
			t.Fatalf("seed %d, host %d: %v", seed, n, err)
		}
	}
	return "", fmt.Sprintf("nothing in %d sequences, seed %d", hosts*plotsOfAHost, seed)
}

func firstLine(text string) string {
	text, _, _ = strings.Cut(text, "\n")
	return text[:min(len(text), 300)]
}
