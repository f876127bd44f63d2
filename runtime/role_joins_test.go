package runtime

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// flaggedTool returns a tool with random flags, effect and states.
func flaggedTool(t *testing.T, r *rand.Rand, name string) tool.Tool {
	o := tool.Options{Effect: tool.Effect(r.IntN(3))}
	if r.IntN(6) > 0 {
		var flags []tool.Flag
		for _, flag := range tool.ListFlags() {
			if r.IntN(4) == 0 {
				flags = append(flags, flag)
			}
		}
		o.Flags = tool.FlagsOf(flags...)
	}
	switch r.IntN(8) {
	case 0:
		o.States = []string{}
	case 1:
		o.States = []string{"later"}
	}
	made, err := tool.New(name, "d", func(context.Context, struct{}) (string, error) { return "", nil }, &o)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// joinCase is a registry in which each tool has random flags.
type joinCase struct {
	*toolgroups.Manager
	owner *toolgroups.Owner
	timed []toolgroups.GroupID // groups with hours
	tools map[string]tool.Definition
}

// whenever are hours of which the test says when they begin.
type whenever struct{}

func (whenever) Zone() string          { return "UTC" }
func (whenever) Spans() []string       { return nil }
func (whenever) NextChange() time.Time { return time.Time{} }

// newJoinCase returns a registry of the groups s0 to s3 with tools of their own, and g0 to g3, which
// refer to tools and contain groups with higher numbers. Groups with hours are closed.
func newJoinCase(t *testing.T, r *rand.Rand) *joinCase {
	m := toolgroups.NewManager()
	owner, err := m.ClaimOwner(toolgroups.Config)
	if err != nil {
		t.Fatal(err)
	}
	c := &joinCase{Manager: m, owner: owner, tools: map[string]tool.Definition{}}
	register := func(g toolgroups.Group) {
		if _, err := owner.RegisterGroup(g); err != nil {
			t.Fatal(err)
		}
	}
	var names []string
	for i := range 4 {
		g := toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprint("s", i))}
		for j := range 1 + r.IntN(3) {
			one := flaggedTool(t, r, fmt.Sprintf("t%d_%d", i, j))
			g.Tools, names = append(g.Tools, one), append(names, one.Definition().Name)
			c.tools[one.Definition().Name] = one.Definition()
		}
		register(g)
	}
	for i := 3; i >= 0; i-- {
		g := toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprint("g", i))}
		for _, name := range names {
			if r.IntN(5) == 0 {
				g.Refs = append(g.Refs, name)
			}
		}
		for j := i + 1; j < 4; j++ {
			if r.IntN(4) == 0 {
				g.Children = append(g.Children, toolgroups.GroupID(fmt.Sprint("g", j)))
			}
		}
		if r.IntN(4) == 0 {
			g.Hours, c.timed = whenever{}, append(c.timed, g.ID)
		}
		register(g)
	}
	return c
}

// someGroups returns a random set.
func (c *joinCase) someGroups(r *rand.Rand) toolgroups.GroupSet {
	if r.IntN(10) == 0 {
		return toolgroups.AllGroups()
	}
	var ids []toolgroups.GroupID
	for _, id := range c.CurrentSnapshot().GroupIDs() {
		switch r.IntN(6) {
		case 0, 1:
			ids = append(ids, id)
		case 2:
			ids = append(ids, id.ReadPart())
		}
	}
	return toolgroups.SetOf(ids...)
}

// openAll opens all groups with hours.
func (c *joinCase) openAll(t *testing.T) *toolgroups.Snapshot {
	err := c.Update(func(tx *toolgroups.Tx) error {
		for _, id := range c.timed {
			if err := tx.SwitchGroup(c.owner, id, true); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.CurrentSnapshot()
}

// naiveFlags returns the flags of the tools that a set lets agents see in some state, and the names
// of the tools for each flag.
func naiveFlags(s *toolgroups.Snapshot, sets ...toolgroups.GroupSet) map[tool.Flag][]string {
	found := map[tool.Flag][]string{}
	for _, set := range sets {
		for _, d := range s.Compile(s.PinOwners(set)).ListableTools() {
			for _, flag := range tool.ListFlags() {
				if d.Flags.Has(flag) && !slices.Contains(found[flag], d.Name) {
					found[flag] = append(found[flag], d.Name)
				}
			}
		}
	}
	return found
}

// without returns a set after the changes that are about it.
func without(s *toolgroups.Snapshot, set toolgroups.GroupSet, name LintedSet, changes []SetChange) toolgroups.GroupSet {
	ids := slices.Clone(set.GroupIDs())
	if set.IsAll() {
		ids = s.GroupIDs()
	}
	for _, c := range changes {
		at := slices.Index(ids, c.Group)
		switch {
		case c.Set != name:
		case c.ReadPart:
			ids[at] = c.Group.ReadPart()
		default:
			ids = slices.Delete(ids, at, at+1)
		}
	}
	return toolgroups.SetOf(ids...)
}

// problem returns what is wrong with a finding about two sets, nil for none, as a naive evaluator
// sees it; "" for nothing.
func (c *joinCase) problem(s *toolgroups.Snapshot, finding *LintFinding, use, grant toolgroups.GroupSet) string {
	naive := naiveFlags(s, use, grant)
	if joins := len(naive) == len(tool.ListFlags()); joins != (finding != nil) {
		return fmt.Sprintf("the tools with flags are %v; found %+v", naive, finding)
	}
	if finding == nil {
		return ""
	}
	for i, flag := range tool.ListFlags() {
		j := finding.Flags[i]
		known := slices.ContainsFunc(naive[flag], func(name string) bool { return c.tools[name].Flags.Known() })
		slices.Sort(naive[flag])
		got := slices.Sorted(slices.Values(j.Tools))
		if j.Flag != flag || !slices.Equal(got, naive[flag]) || !slices.Contains(got, j.Tool) || j.Known != known || c.tools[j.Tool].Flags.Known() != known {
			return fmt.Sprintf("%v: tools %v, %+v", flag, naive[flag], j)
		}
		after := naiveFlags(s, without(s, use, UseSet, j.Changes), without(s, grant, GrantSet, j.Changes))
		if len(after[flag]) > 0 {
			return fmt.Sprintf("%v: after %+v these tools have it: %v", flag, j.Changes, after[flag])
		}
	}
	return ""
}

// A lint finds each join of the tools that agents see, in random registries and roles, also while groups
// with hours are closed. What it recommends takes the join apart.
func TestFindJoins_AgreesWithVisibleTools(t *testing.T) {
	seed := rand.Uint64()
	count := map[string]int{}
	for i := range short.Count(150, 3000) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		c := newJoinCase(t, r)
		s := c.CurrentSnapshot()
		role := org.Role{Use: c.someGroups(r), Grant: c.someGroups(r)}
		role.GroupOwners = s.PinOwners(toolgroups.SetOf(append(role.Use.GroupIDs(), role.Grant.GroupIDs()...)...)).Owners
		found := map[LintedSet]*LintFinding{}
		for _, f := range findJoins(s, &role) {
			found[f.Set] = &f
			count[string(f.Set)]++
			for _, j := range f.Flags {
				count[fmt.Sprint("known ", j.Known)]++
				if slices.ContainsFunc(j.Changes, func(c SetChange) bool { return c.ReadPart }) {
					count["read part"]++
				}
			}
		}
		s = c.openAll(t)
		grant := role.Grant
		if len(naiveFlags(s, grant)) == 0 && found[ReachSet] == nil {
			grant, found[ReachSet] = toolgroups.GroupSet{}, found[UseSet] // the grant adds nothing
		}
		for _, problem := range []string{c.problem(s, found[UseSet], role.Use, toolgroups.GroupSet{}), c.problem(s, found[ReachSet], role.Use, grant)} {
			if problem != "" {
				t.Fatalf("seed %d case %d: uses %v, may grant %v: %s", seed, i, role.Use, role.Grant, problem)
			}
		}
	}
	for _, situation := range []string{"toolGroups", "reach", "known true", "known false", "read part"} {
		if count[situation] == 0 {
			t.Errorf("no case reached %s: %v", situation, count)
		}
	}
}
