package runtime

import (
	"slices"

	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// FindingKind says what a LintFinding is about.
type FindingKind string

// The kinds. All but the last say what the record does not show as used.
const (
	UnusedGroup  FindingKind = "unused" // the group is not needed
	ReadIsEnough FindingKind = "read"   // the read part is enough in place of its group
	PartIsEnough FindingKind = "part"   // the group is enough in place of one above it
	ToolsEnough  FindingKind = "tools"  // a toolset of some tools is enough in place of the group
	FlagsJoin    FindingKind = "join"   // tools with all flags come together
)

// LintedSet names the tools that a LintFinding is about.
type LintedSet string

// The sets of a role.
const (
	UseSet   LintedSet = "toolGroups" // what its agents and callers use
	GrantSet LintedSet = "grant"      // what its agents may grant
	ReachSet LintedSet = "reach"      // both: what its agents, and the agents that they spawn, use together
)

// LintFinding is one thing that a lint says about a role.
type LintFinding struct {
	Kind  FindingKind
	Set   LintedSet
	Group toolgroups.GroupID // "" of FlagsJoin
	Tools []string           // of ToolsEnough
	Flags []JoinedFlag       // of FlagsJoin: one for each flag
}

// JoinedFlag is a flag that a set of tools has, and how it would lose it. A set without one of the
// flags joins nothing.
type JoinedFlag struct {
	Flag  tool.Flag
	Tool  string // one of Tools, if possible one whose flags are known
	Known bool   // the flags of Tool are known; if not, no tool is known to have the flag

	Tools   []string    // with the flag
	Exact   bool        // no tool of Tools is built in, so a toolset, or SERVER/API, can have the others without them
	Changes []SetChange // of all groups with the flag; the set loses it by them
}

// SetChange is the removal of a group, or its read part in place of it.
type SetChange struct {
	Set      LintedSet
	Group    toolgroups.GroupID
	ReadPart bool
}

// maxCalledTools is the most tools for which a toolset is recommended.
const maxCalledTools = 4

// addFindings adds what the record shows, then what the role joins.
func (l *RoleLint) addFindings(s *toolgroups.Snapshot) {
	if l.IsUsed() {
		l.Findings = append(l.Use.findings(UseSet), l.Grant.findings(GrantSet)...)
	}
	l.Findings = append(l.Findings, findJoins(s, &l.Role)...)
}

// findings returns what a used set does not need.
func (l *SetLint) findings(set LintedSet) (list []LintFinding) {
	for _, g := range l.Groups {
		_, reads := g.ID.WholeGroup()
		switch {
		case !g.Kept:
			list = append(list, LintFinding{Kind: UnusedGroup, Set: set, Group: g.ID})
		case !g.Held && reads:
			list = append(list, LintFinding{Kind: ReadIsEnough, Set: set, Group: g.ID})
		case !g.Held:
			list = append(list, LintFinding{Kind: PartIsEnough, Set: set, Group: g.ID})
		}
		if g.toolsAreEnough() {
			list = append(list, LintFinding{Kind: ToolsEnough, Set: set, Group: g.ID, Tools: g.Called})
		}
	}
	return list
}

// toolsAreEnough reports whether a toolset would be enough in place of a kept group. Toolsets have
// no built-in tools.
func (g *GroupLint) toolsAreEnough() bool {
	whole, _ := g.ID.WholeGroup()
	n := len(g.Called)
	return g.Kept && n > 0 && n < g.Tools && n <= maxCalledTools && !toolgroups.IsBuiltinID(whole)
}

// JoiningRole is a role that joins all flags.
type JoiningRole struct {
	Role  org.Role
	Joins []LintFinding
}

// JoiningRoles returns the active roles that join all flags, sorted by name. It reads no record.
func (rt *Runtime) JoiningRoles() (list []JoiningRole) {
	s := rt.config.Groups.CurrentSnapshot()
	for _, role := range rt.org.ListRoles() {
		if joins := findJoins(s, &role); len(joins) > 0 {
			list = append(list, JoiningRole{role, joins})
		}
	}
	return list
}

// flaggedGroup is a group of a set, with the flags of its tools.
type flaggedGroup struct {
	set          LintedSet
	id           toolgroups.GroupID
	flags, reads tool.Flag // reads: of its read part
}

// flaggedTools are the tools of one or more sets of a role.
type flaggedTools struct {
	tools  []*toolgroups.ToolHandle
	groups []flaggedGroup
}

// findJoins returns the sets of a role whose tools have all flags together. One set has the tools
// that the role uses. If the role may grant tools, the other set has the tools that it uses or may
// grant.
func findJoins(s *toolgroups.Snapshot, role *org.Role) (list []LintFinding) {
	use, grant := flaggedToolsOf(s, UseSet, role.Bound(role.Use)), flaggedToolsOf(s, GrantSet, role.Bound(role.Grant))
	if joins := use.joinedFlags(); joins != nil {
		list = append(list, LintFinding{Kind: FlagsJoin, Set: UseSet, Flags: joins})
	}
	if flagsOf(grant.tools) == 0 {
		return list
	}
	both := flaggedTools{slices.Concat(use.tools, grant.tools), slices.Concat(use.groups, grant.groups)}
	if joins := both.joinedFlags(); joins != nil {
		list = append(list, LintFinding{Kind: FlagsJoin, Set: ReachSet, Flags: joins})
	}
	return list
}

// flaggedToolsOf returns the tools of a set while all groups with hours are open.
func flaggedToolsOf(s *toolgroups.Snapshot, set LintedSet, b toolgroups.PinnedSet) flaggedTools {
	out := flaggedTools{tools: s.VisibleWhenOpen(b)}
	ids := b.Set.GroupIDs()
	if b.Set.IsAll() {
		ids = s.GroupIDs()
	}
	for _, id := range ids {
		g := flaggedGroup{set: set, id: id, flags: flagsOf(s.VisibleWhenOpen(partOf(s, b, id, id)))}
		if g.reads = g.flags; id != id.ReadPart() {
			g.reads = flagsOf(s.VisibleWhenOpen(partOf(s, b, id, id.ReadPart())))
		}
		out.groups = append(out.groups, g)
	}
	return out
}

// partOf returns the set with one group alone, in place of a group that b has.
func partOf(s *toolgroups.Snapshot, b toolgroups.PinnedSet, held, id toolgroups.GroupID) toolgroups.PinnedSet {
	owner := b.Owners[held]
	if b.Set.IsAll() {
		owner = s.GroupOwner(held)
	}
	b.Set, b.Owners = toolgroups.SetOf(id), map[toolgroups.GroupID]toolgroups.GroupOwner{id: owner}
	return b
}

// flagsOf returns the flags that count of some tools.
func flagsOf(tools []*toolgroups.ToolHandle) (all tool.Flag) {
	for _, h := range tools {
		for _, flag := range h.Definition.Flags.List() {
			all |= flag
		}
	}
	return all
}

// joinedFlags returns all flags, each with a tool that has it. It returns nil if a flag is missing.
func (f flaggedTools) joinedFlags() (list []JoinedFlag) {
	for _, flag := range tool.ListFlags() {
		one := JoinedFlag{Flag: flag, Exact: true}
		for _, h := range f.tools {
			d := &h.Definition
			if !d.Flags.Has(flag) || slices.Contains(one.Tools, d.Name) {
				continue
			}
			one.Tools, one.Exact = append(one.Tools, d.Name), one.Exact && h.Owner != toolgroups.Builtin
			if one.Tool == "" || d.Flags.Known() && !one.Known {
				one.Tool, one.Known = d.Name, d.Flags.Known()
			}
		}
		if one.Tool == "" {
			return nil
		}
		for _, g := range f.groups {
			if g.flags&flag != 0 {
				one.Changes = append(one.Changes, SetChange{g.set, g.id, g.reads != 0 && g.reads&flag == 0})
			}
		}
		list = append(list, one)
	}
	return list
}
