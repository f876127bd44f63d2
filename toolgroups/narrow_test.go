package toolgroups_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// narrowCase is a registry with a set of groups and what is needed of it.
type narrowCase struct {
	*toolgroups.Manager
	t      *testing.T
	timed  []toolgroups.GroupID // groups with hours
	config *toolgroups.Owner
	held   toolgroups.PinnedSet
	needs  toolgroups.Needs
}

// newNarrowCase returns a random case with up to some groups with hours. The tools t0 to t6
// are in the groups s0 to s2. Toolsets of these groups are g0 to g5, whose children have
// higher numbers. A server has tools of two names.
func newNarrowCase(t *testing.T, r *rand.Rand, timed int) *narrowCase {
	m := toolgroups.NewManager()
	c := &narrowCase{Manager: m, t: t, config: claim(t, m, toolgroups.Config)}
	owner, server := magpie()
	register(t, m, owner, server)
	tools := []string{"magpie__tvl", "magpie__own"}
	for i := range 3 {
		var own []string
		g := toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprintf("s%d", i))}
		for j := range 1 + r.IntN(3) {
			own = append(own, fmt.Sprintf("t%d_%d", i, j))
			g.Tools = append(g.Tools, toolWithEffect(own[j], tool.Effect(r.IntN(3))))
		}
		c.register(g)
		tools = append(tools, own...)
	}
	for i := 5; i >= 0; i-- {
		g := toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprintf("g%d", i))}
		for _, name := range tools {
			if r.IntN(4) == 0 {
				g.Refs = append(g.Refs, name)
			}
		}
		for j := i + 1; j < 6; j++ {
			if r.IntN(4) == 0 {
				g.Children = append(g.Children, toolgroups.GroupID(fmt.Sprintf("g%d", j)))
			}
		}
		if len(c.timed) < timed && r.IntN(3) == 0 {
			g.Hours, g.Open = changeAt, r.IntN(2) == 0
			c.timed = append(c.timed, g.ID)
		}
		c.register(g)
	}
	c.choose(r)
	return c
}

func (c *narrowCase) register(g toolgroups.Group) {
	c.t.Helper()
	if _, err := c.config.RegisterGroup(g); err != nil {
		c.t.Fatal(err)
	}
}

// choose chooses a set, and needs among what it contains while all groups are open.
func (c *narrowCase) choose(r *rand.Rand) {
	s := c.CurrentSnapshot()
	set := toolgroups.AllGroups()
	if r.IntN(5) > 0 {
		var ids []toolgroups.GroupID
		for _, id := range append(s.GroupIDs(), "magpie/tvl", "nothing") {
			if r.IntN(3) == 0 {
				continue
			}
			if r.IntN(4) == 0 {
				id = id.ReadPart()
			}
			ids = append(ids, id)
		}
		set = toolgroups.SetOf(ids...)
	}
	c.held = s.PinOwners(set)
	if r.IntN(6) == 0 {
		c.held.Only = toolgroups.Config
	}
	for _, name := range c.allowed(c.held)[allOpen(c)] {
		h := lookup(c.t, s, name)
		switch r.IntN(5) {
		case 0, 1:
			c.needs.Tools = append(c.needs.Tools, h)
		case 2:
			c.needs.Limits = append(c.needs.Limits, h)
		}
	}
	for _, id := range append(s.GroupIDs(), "magpie/tvl", "nothing") {
		if r.IntN(12) == 0 {
			c.needs.Groups = append(c.needs.Groups, id)
		}
		if r.IntN(12) == 0 {
			c.needs.Groups = append(c.needs.Groups, id.ReadPart())
		}
	}
}

// allOpen is the index of the result of allowed while all groups with hours are open.
func allOpen(c *narrowCase) int { return 1<<len(c.timed) - 1 }

// inEachState calls fn while the groups with hours are open or closed in each combination:
// bit i of the state says that group i is open.
func (c *narrowCase) inEachState(fn func(state int, s *toolgroups.Snapshot)) {
	for state := range 1 << len(c.timed) {
		err := c.Update(func(tx *toolgroups.Tx) error {
			for i, id := range c.timed {
				if err := tx.SwitchGroup(c.config, id, state>>i&1 == 1); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			c.t.Fatal(err)
		}
		fn(state, c.CurrentSnapshot())
	}
}

// allowed lists the tools of a set in each state, sorted.
func (c *narrowCase) allowed(b toolgroups.PinnedSet) (byState [][]string) {
	c.inEachState(func(_ int, s *toolgroups.Snapshot) {
		byState = append(byState, slices.Sorted(slices.Values(s.Compile(b).ToolNames())))
	})
	return byState
}

// narrowed returns held with another set of groups.
func (c *narrowCase) narrowed(set toolgroups.GroupSet) toolgroups.PinnedSet {
	b := c.CurrentSnapshot().PinOwners(set)
	b.Only = c.held.Only
	return b
}

// problem returns what is wrong with a set in place of the held one, "" if nothing is
// wrong. In some state the set may have a tool that the held one has not, or lack a tool
// that is needed.
func (c *narrowCase) problem(set toolgroups.GroupSet) (text string) {
	b := c.narrowed(set)
	c.inEachState(func(state int, s *toolgroups.Snapshot) {
		if text != "" {
			return
		}
		before, after := s.Compile(c.held), s.Compile(b)
		for _, h := range s.ListTools() {
			if s.ReachesTool(b, h) && !s.ReachesTool(c.held, h) {
				text = fmt.Sprintf("state %b: it has %s", state, h.Definition.Name)
			}
		}
		for _, h := range c.needs.Tools {
			if before.HasTool(h) && !after.HasTool(h) {
				text = fmt.Sprintf("state %b: it lacks %s", state, h.Definition.Name)
			}
		}
		for _, h := range c.needs.Limits {
			if s.ReachesTool(c.held, h) && !s.ReachesTool(b, h) {
				text = fmt.Sprintf("state %b: it does not reach %s", state, h.Definition.Name)
			}
		}
		for _, id := range c.needs.Groups {
			if one := toolgroups.SetOf(id); len(s.MissingFrom(c.held, one)) == 0 && len(s.MissingFrom(b, one)) > 0 {
				text = fmt.Sprintf("state %b: it does not cover %s", state, id)
			}
		}
	})
	return text
}

// toolCount returns the number of tools of a set, each once, while all groups are open.
func (c *narrowCase) toolCount(set toolgroups.GroupSet) int {
	seen, b := map[string]bool{}, c.narrowed(set)
	s := c.CurrentSnapshot()
	for _, h := range s.ListTools() {
		if s.ReachesTool(b, h) {
			seen[h.Definition.Name] = true
		}
	}
	return len(seen)
}

// smallest returns the fewest tools, and the fewest groups with as many, of all sets of covered
// groups and of read parts without a problem. It tries all of them, unless there are too many: then
// it returns -1. The set of all groups has no group of one
// tool of a server unless that is needed: it stands for tools under their own names.
func (c *narrowCase) smallest() (tools, groups int) {
	s := c.CurrentSnapshot()
	var ids []toolgroups.GroupID
	for _, id := range append(s.GroupIDs(), "magpie/tvl") {
		named := id != "magpie/tvl" || !c.held.Set.IsAll() || slices.Contains(c.needs.Groups, id) || slices.Contains(c.needs.Groups, id.ReadPart())
		if named && s.CoversGroup(c.held, id) {
			ids = append(ids, id)
		}
		part, whole := c.toolCount(toolgroups.SetOf(id.ReadPart())), c.toolCount(toolgroups.SetOf(id))
		differs := part > 0 && part < whole || slices.Contains(c.needs.Groups, id.ReadPart())
		if named && s.CoversGroup(c.held, id.ReadPart()) && (differs || !s.CoversGroup(c.held, id)) { // a part without tools covers those of its children
			ids = append(ids, id.ReadPart())
		}
	}
	for _, id := range []toolgroups.GroupID{"nothing", "nothing:read"} {
		if slices.Contains(c.needs.Groups, id) && len(s.MissingFrom(c.held, toolgroups.SetOf(id))) == 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) > 10 {
		return -1, 0
	}
	tools, groups = c.toolCount(c.held.Set)+1, 0
	for choice := range 1 << len(ids) {
		var some []toolgroups.GroupID
		for i, id := range ids {
			if choice>>i&1 == 1 {
				some = append(some, id)
			}
		}
		set := toolgroups.SetOf(some...)
		if n := c.toolCount(set); (n < tools || n == tools && len(some) < groups) && c.problem(set) == "" {
			tools, groups = n, len(some)
		}
	}
	return tools, groups
}

func (c *narrowCase) String() string {
	text := fmt.Sprintf("held %v, only %q, needs", c.held.Set, c.held.Only)
	for _, h := range append(c.needs.Tools, c.needs.Limits...) {
		text += " " + h.Definition.Name
	}
	text = fmt.Sprintf("%s and %v, hours %v, groups", text, c.needs.Groups, c.timed)
	for _, g := range c.CurrentSnapshot().ListGroups() {
		text += fmt.Sprintf("\n%s: %v, children %v", g.ID, g.Tools, g.Children)
	}
	return text
}

// The narrower set has what is needed, and nothing that the wider one has not, whichever
// groups with hours are open.
func TestNarrowSet_LosesAndWidensNothing(t *testing.T) {
	seed := rand.Uint64()
	for i := range short.Count(150, 1500) {
		c := newNarrowCase(t, rand.New(rand.NewPCG(seed, uint64(i))), 2)
		got := c.CurrentSnapshot().NarrowSet(c.held, c.needs)
		if problem := c.problem(got.Set); problem != "" {
			t.Fatalf("seed %d case %d: %v: %s\n%s", seed, i, got.Set, problem, c)
		}
	}
}

// No other choice of groups has fewer tools, or as many tools and fewer groups.
func TestNarrowSet_IsSmallest(t *testing.T) {
	seed, narrower, reads := rand.Uint64(), 0, 0
	cases := short.Count(30, 500)
	for i := 0; i < cases || reads == 0 && i < 20*cases; i++ { // read parts are rare
		c := newNarrowCase(t, rand.New(rand.NewPCG(seed, uint64(i))), 0)
		got := c.CurrentSnapshot().NarrowSet(c.held, c.needs)
		tools, groups := c.smallest()
		if tools < 0 {
			continue
		}
		if got.Tools != tools || len(got.Set.GroupIDs()) != groups || !got.Exact || c.toolCount(got.Set) != tools {
			t.Fatalf("seed %d case %d: %v with %d tools, exact %t; %d groups with %d tools would do\n%s", seed, i, got.Set, got.Tools, got.Exact, groups, tools, c)
		}
		if tools < c.toolCount(c.held.Set) {
			narrower++
		}
		for _, id := range got.Set.GroupIDs() {
			if _, part := id.WholeGroup(); part && !slices.Contains(c.held.Set.GroupIDs(), id) {
				reads++
			}
		}
	}
	if narrower == 0 || reads == 0 {
		t.Errorf("%d cases are narrower, %d have a read part in place of its group", narrower, reads)
	}
}

// Narrowing follows these rules.
func TestNarrowSet_Cases(t *testing.T) {
	m := toolgroups.NewManager()
	config := claim(t, m, toolgroups.Config)
	disk := claim(t, m, "disk")
	for _, g := range []toolgroups.Group{
		{ID: "disk", Tools: stubs("read", "write", "wipe")},
	} {
		if _, err := disk.RegisterGroup(g); err != nil {
			t.Fatal(err)
		}
	}
	for _, g := range []toolgroups.Group{
		{ID: "shelf", Tools: []tool.Tool{toolWithEffect("look", tool.ReadOnly), toolWithEffect("put", tool.Idempotent)}},
		{ID: "book", Tools: []tool.Tool{toolWithEffect("turn", tool.ReadOnly)}},
		{ID: "reading", Refs: []string{"read"}},
		{ID: "office", Refs: []string{"write"}, Children: groupIDs{"reading"}, Hours: changeAt},
		{ID: "night", Refs: []string{"write"}, Hours: changeAt, Open: true},
		{ID: "suite", Refs: []string{"wipe"}, Children: groupIDs{"reading", "writing", "office"}},
		{ID: "writing", Refs: []string{"read", "write"}},
		{ID: "pen", Refs: []string{"write"}},
	} {
		if _, err := config.RegisterGroup(g); err != nil {
			t.Fatal(err)
		}
	}
	declare(t, m, map[toolgroups.GroupID]toolgroups.GroupOwner{"away": "server", "taken": "other"})
	s := m.CurrentSnapshot()
	server := pin(m, "disk", "reading")
	server.Only = "other"
	stale := toolgroups.PinnedSet{Set: toolgroups.SetOf("reading", "disk", "away", "gone", "taken", "unused"), Owners: map[toolgroups.GroupID]toolgroups.GroupOwner{
		"reading": "earlier", "disk": "disk", "away": "server", "gone": "server", "taken": "server", "unused": "server",
	}}
	for _, tt := range []struct {
		name   string
		held   toolgroups.PinnedSet
		tools  string
		groups groupIDs
		want   string
	}{
		{"nothing is needed", pin(m, "disk", "suite"), "", nil, "-"},
		{"a read part in place of its group", pin(m, "shelf"), "look", nil, "shelf:read"},
		{"a read part in place of all groups", s.PinOwners(toolgroups.AllGroups()), "look", nil, "shelf:read"},
		{"a group that needs more than its read part", pin(m, "shelf"), "look put", nil, "shelf"},
		{"a group of which all tools only read", pin(m, "book"), "turn", nil, "book"},
		{"no group in place of its read part", pin(m, "shelf:read"), "look put", groupIDs{"shelf"}, "shelf:read"},
		{"a group that is needed itself", pin(m, "shelf"), "look", groupIDs{"shelf"}, "shelf"},
		{"a child in place of its parent", pin(m, "suite"), "read", nil, "reading"},
		{"a smaller group in place of a larger one", pin(m, "disk", "suite"), "read write", nil, "writing"},
		{"the parent, if a smaller group has less", pin(m, "disk", "reading"), "read wipe", nil, "disk"},
		{"one group in place of two with the same tools", pin(m, "reading", "pen", "writing"), "read write", nil, "writing"},
		{"no tool of another server", server, "read", nil, "-"},
		{"no groups are held", toolgroups.PinnedSet{}, "read", groupIDs{"disk"}, "-"},
		{"no group with hours in place of one without", pin(m, "office", "disk"), "write", nil, "disk"},
		{"each group with hours that has a tool", pin(m, "office", "night", "reading"), "write", nil, "office,night"},
		{"no group below one with hours", pin(m, "office"), "read", nil, "office"},
		{"what is not held is not needed", pin(m, "reading"), "write", groupIDs{"disk"}, "-"},
		{"a group that is needed", pin(m, "suite", "disk"), "", groupIDs{"writing", "disk"}, "writing,disk"},
		{"a group below one with hours that is needed", pin(m, "office"), "", groupIDs{"reading"}, "office"},
		{"all groups", s.PinOwners(toolgroups.AllGroups()), "read wipe", nil, "disk"},
		{"all groups are needed", s.PinOwners(toolgroups.AllGroups()), "", groupIDs{"*"}, "*"},
		{"groups that are needed and not registered, of all groups", s.PinOwners(toolgroups.AllGroups()), "read wipe", groupIDs{"away", "nothing"}, "disk,away,nothing"},
		{"all groups are needed and not held", pin(m, "disk"), "read", groupIDs{"*"}, "disk"},
		{"the read part of an away group", stale, "", groupIDs{"gone:read", "taken:read"}, "gone:read"},
		{"an away group in place of its read part", stale, "", groupIDs{"gone:read", "gone"}, "gone"},
		{"away groups that are needed, none of another owner", stale, "read", groupIDs{"away", "gone", "reading", "taken"}, "disk,away,gone"},
	} {
		needs := toolgroups.Needs{Groups: tt.groups}
		for _, name := range strings.Fields(tt.tools) {
			needs.Tools = append(needs.Tools, lookup(t, s, name))
		}
		if got := s.NarrowSet(tt.held, needs); got.Set.String() != tt.want || !got.Exact {
			t.Errorf("%s: %v, exact %t, want %s", tt.name, got.Set, got.Exact, tt.want)
		}
	}
	if s.AllTools("nothing") != nil || len(s.AllTools("office")) != 2 {
		t.Error("AllTools differs")
	}
}

// A search that would take too long ends with a set that has all that is needed, and says so.
func TestNarrowSet_IsBounded(t *testing.T) {
	for _, groups := range []int{90, 500} {
		m := toolgroups.NewManager()
		var tools []string
		for i := range 120 {
			tools = append(tools, fmt.Sprintf("t%d", i))
		}
		register(t, m, toolgroups.Config, toolgroups.Group{ID: "base", Tools: stubs(tools...)})
		r := rand.New(rand.NewPCG(1, 2))
		var held groupIDs
		for i := range groups {
			g := toolgroups.Group{ID: toolgroups.GroupID(fmt.Sprintf("g%d", i))}
			for _, j := range r.Perm(len(tools))[:12] {
				g.Refs = append(g.Refs, tools[j])
			}
			register(t, m, toolgroups.Config, g)
			held = append(held, g.ID)
		}
		s := m.CurrentSnapshot()
		var needs toolgroups.Needs
		for _, name := range tools[:60] {
			if b := pin(m, held...); s.ReachesTool(b, lookup(t, s, name)) {
				needs.Tools = append(needs.Tools, lookup(t, s, name))
			}
		}
		got := s.NarrowSet(pin(m, held...), needs)
		if got.Exact || len(got.Set.GroupIDs()) >= groups {
			t.Errorf("%d groups: %v, exact %t", groups, got.Set, got.Exact)
		}
		for _, h := range needs.Tools {
			if !s.ReachesTool(pin(m, got.Set.GroupIDs()...), h) {
				t.Errorf("%d groups: %v lacks %s", groups, got.Set, h.Definition.Name)
			}
		}
	}
}
