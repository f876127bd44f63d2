package property_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// What random groups are made of. The names are few, so that owners meet.
var (
	groupIDs  = []toolgroups.GroupID{"alpha", "beta", "gamma", "delta", "lab/one", "lab/two"}
	toolNames = []string{"t0", "t1", "t2", "t3", "t4", "t5", "t6", "t7", "t8", "t9", "t10", "t11"}
	owners    = []toolgroups.Owner{"module:a", "module:b", toolgroups.Config}
	states    = []string{"", "draft", "final", toolgroups.Undefined}
	offered   = [][]string{nil, nil, nil, {"*"}, {"draft"}, {"draft", "final"}, {toolgroups.Undefined}, {}}
	junk      = []string{"", "nowhere", "T0", "t0 ", "*", "alpha", "t\u043e0"}
)

// spec is a group as the models here know it.
type spec struct {
	id    toolgroups.GroupID
	owner toolgroups.Owner
	text  string
	tools []toolSpec
	refs  []string
	bound map[string]toolgroups.Owner // of refs, when the group was registered
}

type toolSpec struct {
	name   string
	states []string // nil is every state
	moves  string   // the state a success moves to
}

// anySpec makes a random group; about one in ten names a tool twice.
func anySpec(t *proptest.Choices) spec {
	g := spec{id: proptest.OneOf(t, groupIDs...), owner: proptest.OneOf(t, owners...), text: fmt.Sprint("text ", t.Pick(9))}
	for _, name := range someOf(t, 4, toolNames) {
		if !g.has(name) || t.Chance(5) {
			g.tools = append(g.tools, toolSpec{name: name, states: proptest.OneOf(t, offered...), moves: proptest.OneOf(t, states...)})
		}
	}
	if t.Chance(3) {
		g.refs = someOf(t, 4, toolNames)
	}
	return g
}

func (g spec) has(name string) bool {
	return slices.ContainsFunc(g.tools, func(t toolSpec) bool { return t.name == name })
}

// runs counts how often handlers ran, by tool name.
type runs map[string]*atomic.Int64

func newRuns() runs {
	r := runs{}
	for _, name := range append([]string{"create_role", "spawn_agent", "put_artifact"}, toolNames...) {
		r[name] = new(atomic.Int64)
	}
	return r
}

func (r runs) of(name string) int64 {
	if n, ok := r[name]; ok {
		return n.Load()
	}
	return 0
}

// knows says whether a tool is one of the tests'.
func (r runs) knows(name string) bool { return slices.Contains(toolNames, name) && r[name] != nil }

// counted is a tool that takes any object and counts its runs.
type counted struct {
	definition tool.Definition
	runs       *atomic.Int64
}

func (c counted) Definition() tool.Definition { return c.definition }

func (c counted) Call(context.Context, tool.Call) (tool.Result, error) {
	if c.runs != nil {
		c.runs.Add(1)
	}
	return tool.Result{Text: "done"}, nil
}

// group gives what a Manager registers for g.
func (g spec) group(r runs) toolgroups.Group {
	out := toolgroups.Group{ID: g.id, Description: g.text, Refs: g.refs}
	for _, t := range g.tools {
		out.Tools = append(out.Tools, counted{tool.Definition{
			Name: t.name, Description: "counts", Input: json.RawMessage(`{"type":"object"}`), State: t.moves, States: t.states,
		}, r[t.name]})
	}
	return out
}

// registry is the naive Manager: groups in the order they first came.
type registry struct {
	reserved []toolgroups.GroupID
	groups   []spec
}

func (r *registry) find(id toolgroups.GroupID) *spec {
	for i := range r.groups {
		if r.groups[i].id == id {
			return &r.groups[i]
		}
	}
	return nil
}

func (r *registry) owner(id toolgroups.GroupID) toolgroups.Owner {
	if g := r.find(id); g != nil {
		return g.owner
	}
	return ""
}

// home finds the group that owns a tool.
func (r *registry) home(name string) *spec {
	for i := range r.groups {
		if r.groups[i].has(name) {
			return &r.groups[i]
		}
	}
	return nil
}

func (r *registry) tool(name string) (toolSpec, bool) {
	if g := r.home(name); g != nil {
		i := slices.IndexFunc(g.tools, func(t toolSpec) bool { return t.name == name })
		return g.tools[i], true
	}
	return toolSpec{}, false
}

// register says with which code a registration is refused; a refused one
// changes nothing.
func (r *registry) register(g spec) (code, warning errcode.Code) {
	if slices.Contains(r.reserved, g.id) && g.owner != toolgroups.Builtin {
		return errcode.ReservedGroupID, ""
	}
	for i, t := range g.tools {
		if (spec{tools: g.tools[:i]}).has(t.name) {
			return errcode.DuplicateToolName, ""
		}
	}
	old := r.find(g.id)
	if old != nil && old.owner != g.owner {
		return errcode.DuplicateGroupID, ""
	}
	for _, t := range g.tools {
		if home := r.home(t.name); home != nil && home.id != g.id {
			return errcode.DuplicateToolName, ""
		}
	}
	g.bound = map[string]toolgroups.Owner{}
	for _, name := range g.refs {
		if home := r.home(name); home != nil {
			g.bound[name] = home.owner
		}
	}
	if old != nil {
		*old = g
		return "", errcode.DuplicateGroupID
	}
	r.groups = append(r.groups, g)
	return "", ""
}

func (r *registry) unregister(owner toolgroups.Owner, id toolgroups.GroupID) errcode.Code {
	switch {
	case slices.Contains(r.reserved, id):
		return errcode.CannotUnregisterReserved
	case r.owner(id) != owner || owner == "":
		return errcode.GroupNotFound
	}
	r.groups = slices.DeleteFunc(r.groups, func(g spec) bool { return g.id == id })
	return ""
}

// members lists a group's tools: its own, then those it may reference, which
// it is bound to. Only the configuration references across owners, and never a
// reserved group.
func (r *registry) members(g *spec) []string {
	var names []string
	for _, t := range g.tools {
		names = append(names, t.name)
	}
	for _, name := range g.refs {
		home := r.home(name)
		if home == nil || home.owner != g.bound[name] || slices.Contains(names, name) {
			continue
		}
		if home.owner == g.owner || g.owner == toolgroups.Config && !slices.Contains(r.reserved, home.id) {
			names = append(names, name)
		}
	}
	return names
}

// definitions lists the tools of groups: in the order of ids, then of
// registration, each once.
func (r *registry) definitions(ids ...toolgroups.GroupID) []string {
	var names []string
	for _, id := range ids {
		if g := r.find(id); g != nil {
			for _, name := range r.members(g) {
				if !slices.Contains(names, name) {
					names = append(names, name)
				}
			}
		}
	}
	return names
}

func (r *registry) ids() []toolgroups.GroupID {
	var ids []toolgroups.GroupID
	for _, g := range r.groups {
		ids = append(ids, g.id)
	}
	return ids
}

// names lists every tool there is.
func (r *registry) names() []string { return r.definitions(r.ids()...) }

// desk is a Manager and its naive twin.
type desk struct {
	*toolgroups.Manager
	naive registry
	runs  runs
}

func newDesk() *desk {
	reserved := toolgroups.Reserved()
	return &desk{Manager: toolgroups.NewManager(reserved...), naive: registry{reserved: reserved}, runs: newRuns()}
}

// register registers with both; they must agree.
func (d *desk) register(g spec) (errcode.Code, error) {
	warning, err := d.Register(g.owner, g.group(d.runs))
	code, wantWarning := d.naive.register(g)
	if errcode.Of(err) != code || warning != wantWarning {
		return code, fmt.Errorf("register %+v: %v, warning %q; want code %q, warning %q", g, err, warning, code, wantWarning)
	}
	return code, nil
}

func (d *desk) unregister(owner toolgroups.Owner, id toolgroups.GroupID) (errcode.Code, error) {
	err := d.Unregister(owner, id)
	code := d.naive.unregister(owner, id)
	if errcode.Of(err) != code {
		return code, fmt.Errorf("unregister %s of %s: %v, want code %q", id, owner, err, code)
	}
	return code, nil
}

// step registers or, once in three, unregisters something.
func (d *desk) step(t *proptest.Choices) error {
	g := anySpec(t)
	if owner := d.naive.owner(g.id); owner != "" && t.Chance(2) {
		g.owner = owner
	}
	if t.Chance(3) {
		_, err := d.unregister(g.owner, g.id)
		return err
	}
	_, err := d.register(g)
	return err
}

func definitionNames(list []tool.Definition) []string {
	var names []string
	for _, d := range list {
		names = append(names, d.Name)
	}
	return names
}
