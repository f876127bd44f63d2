package app

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/toolgroups"
)

// toolset is a tool group that the configuration defines: references to declared tools,
// and prompts.
type toolset struct {
	toolgroups.Group
	owners []toolgroups.Owner // of Refs, by index
}

// toolsets are the toolsets of one configuration by id.
type toolsets map[toolgroups.GroupID]toolset

// toolsetsOf returns the toolsets of a configuration and the groups that its tools name.
func toolsetsOf(cfg *config.Config) toolsets {
	owners := make(map[string]toolgroups.Owner, len(cfg.Tools))
	for _, t := range cfg.Tools {
		owners[t.Name] = toolOwner(t)
	}
	all := toolsets{}
	for _, g := range toolbox.Toolsets(cfg.Tools, cfg.Toolsets) {
		t := toolset{Group: g}
		for _, name := range g.Refs {
			t.owners = append(t.owners, owners[name])
		}
		all[g.ID] = t
	}
	all.addPrompts(cfg)
	return all
}

// addPrompts adds the prompts that toolsets list. It leaves out prompts that could not be
// read; loading has reported them.
func (t toolsets) addPrompts(cfg *config.Config) {
	known := map[string]*toolgroups.Prompt{}
	for _, p := range cfg.Prompts {
		if made, err := newPrompt(p); err == nil {
			known[p.Name] = made
		}
	}
	for _, s := range cfg.Toolsets {
		set, ok := t[toolgroups.GroupID(s.Name)]
		if !ok {
			continue
		}
		for _, name := range s.Prompts {
			if p := known[name]; p != nil {
				set.Prompts = append(set.Prompts, p)
			}
		}
		t[set.ID] = set
	}
}

func newPrompt(p config.Prompt) (*toolgroups.Prompt, error) {
	if p.Arguments == nil {
		return nil, fmt.Errorf("prompt %q has no arguments that could be read", p.Name)
	}
	var messages []toolgroups.Message
	for _, m := range p.Messages {
		messages = append(messages, toolgroups.Message{Role: m.Role, Text: m.Content})
	}
	return toolgroups.NewPrompt(p.Name, p.Description, p.Fingerprint, p.Arguments, messages)
}

// samePrompt reports whether two prompts have the same name and content.
func samePrompt(a, b *toolgroups.Prompt) bool {
	return a.Name == b.Name && a.Fingerprint == b.Fingerprint
}

// unionIDs returns the ids of both, sorted.
func (t toolsets) unionIDs(other toolsets) []toolgroups.GroupID {
	ids := slices.AppendSeq(slices.Collect(maps.Keys(t)), maps.Keys(other))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// equal reports whether both toolsets register the same.
func (t toolset) equal(other toolset) bool {
	return t.ID == other.ID && t.Description == other.Description && slices.Equal(t.Refs, other.Refs) && slices.Equal(t.owners, other.owners) &&
		slices.EqualFunc(t.Prompts, other.Prompts, samePrompt)
}

// intersect returns t without the references and prompts that other does not have.
func (t toolset) intersect(other toolset) toolset {
	theirs := make(map[string]toolgroups.Owner, len(other.Refs))
	for i, name := range other.Refs {
		theirs[name] = other.owners[i]
	}
	both := toolset{Group: toolgroups.Group{ID: t.ID, Description: t.Description}}
	for i, name := range t.Refs {
		if theirs[name] == t.owners[i] {
			both.Refs, both.owners = append(both.Refs, name), append(both.owners, t.owners[i])
		}
	}
	for _, p := range t.Prompts {
		if slices.ContainsFunc(other.Prompts, func(o *toolgroups.Prompt) bool { return samePrompt(o, p) }) {
			both.Prompts = append(both.Prompts, p)
		}
	}
	return both
}

// restrictToolsets is part of step 1 of install: it reduces each toolset to what it has in
// both configurations. New toolsets are registered without tools, so that roles can name
// them. No role gains tools from a toolset before expandToolsets.
func (a *App) restrictToolsets(next toolsets) error {
	var errs []error
	for _, id := range a.toolsets.unionIDs(next) {
		now, there := a.toolsets[id]
		both := now.intersect(next[id])
		if !there {
			both.ID, both.Description = id, next[id].Description
		}
		if !there || !both.equal(now) {
			errs = append(errs, a.registerToolset(both))
		}
	}
	return errors.Join(errs...)
}

// expandToolsets is part of step 5 of install: it registers the toolsets of next and
// unregisters all others. It does not touch toolsets that have not changed.
func (a *App) expandToolsets(next toolsets) error {
	var errs []error
	for _, id := range a.toolsets.unionIDs(next) {
		now, there := a.toolsets[id]
		then, stays := next[id]
		switch {
		case !stays:
			errs = append(errs, a.Runtime.UnregisterGroup(toolgroups.Config, id))
			delete(a.toolsets, id)
		case !there || !then.equal(now):
			errs = append(errs, a.registerToolset(then))
		}
	}
	return errors.Join(errs...)
}

// registerToolset registers a toolset without the references whose tool is missing now or
// has another owner, because registration binds a name to its current owner.
func (a *App) registerToolset(t toolset) error {
	snapshot, bound := a.groups.Snapshot(), toolset{Group: toolgroups.Group{ID: t.ID, Description: t.Description, Prompts: t.Prompts}}
	for i, name := range t.Refs {
		if tool, ok := snapshot.LookupTool(name); ok && tool.Owner == t.owners[i] {
			bound.Refs, bound.owners = append(bound.Refs, name), append(bound.owners, t.owners[i])
		}
	}
	if _, err := a.Runtime.RegisterGroup(toolgroups.Config, bound.Group); err != nil {
		return fmt.Errorf("register toolset %q: %w", t.ID, err)
	}
	a.toolsets[t.ID] = bound
	return nil
}

// checkToolsetIDs returns a problem for each toolset, or group that a tool names, whose id
// belongs to another owner. Loading has rejected tools that name a built-in group.
func (a *App) checkToolsetIDs(ch *configChange) (faults []*config.Error) {
	others, _ := a.knownGroups(ch)
	snapshot := a.groups.Snapshot()
	for _, id := range slices.Sorted(maps.Keys(ch.toolsets)) {
		at, field := toolsetPos(ch.cfg, id)
		owner := snapshot.GroupOwner(id)
		switch {
		case slices.Contains(toolgroups.ReservedIDs(), id) && field == "group":
		case slices.Contains(toolgroups.ReservedIDs(), id):
			faults = append(faults, ch.cfg.Fault(at, field, fmt.Sprintf("%q is a built-in group, which declared tools cannot join", id), "choose another id"))
		case slices.Contains(others, string(id)):
			faults = append(faults, ch.cfg.Fault(at, field, fmt.Sprintf("%q is a tool group of a module", id), "choose another id"))
		case owner != "" && owner != toolgroups.Config: // its module leaves with this change, and only after toolsets are registered
			faults = append(faults, ch.cfg.Fault(at, field, fmt.Sprintf("%q is a tool group of %s now", id, owner), "choose another id, or remove that module first and add the toolset afterwards"))
		}
	}
	return faults
}

// toolsetPos returns where a configuration first names a toolset.
func toolsetPos(cfg *config.Config, id toolgroups.GroupID) (at config.Pos, field string) {
	for _, t := range cfg.Toolsets {
		if t.Name == string(id) {
			return t.Pos, "name"
		}
	}
	for _, t := range cfg.Tools {
		if slices.Contains(t.Groups, string(id)) || len(t.Groups) == 0 && id == toolbox.DefaultGroup {
			return t.Pos, "group"
		}
	}
	return config.Pos{}, "group"
}
