package app

import (
	"fmt"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/hours"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolbox/prompt"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/toolgroups"
)

// toolset is a tool group that the configuration defines: references to declared tools and to
// the tools that read resources, and prompts.
type toolset struct {
	toolgroups.Group
	owners []toolgroups.GroupOwner // of Refs, by index

	hours    hours.Hours
	schedule *hours.Schedule // of hours; nil if the toolset is always open
}

// addRef adds a reference to a tool of a server or module, which may come and go.
func (t *toolset) addRef(owner toolgroups.GroupOwner, name string) {
	if t.RefOwners == nil {
		t.RefOwners = map[string]toolgroups.GroupOwner{}
	}
	if _, ok := t.RefOwners[name]; !ok {
		t.Refs, t.owners, t.RefOwners[name] = append(t.Refs, name), append(t.owners, owner), owner
	}
}

// toolsets are the toolsets of one configuration by id.
type toolsets map[toolgroups.GroupID]toolset

// toolsetsOf returns the toolsets of a configuration and the groups that its tools name.
func toolsetsOf(cfg *config.Config) toolsets {
	owners, callServers := make(map[string]toolgroups.GroupOwner, len(cfg.Tools)), map[string]bool{}
	for _, t := range cfg.Tools {
		owners[t.Name] = toolOwner(t)
		if t.MCP != nil {
			callServers[t.Name] = true
		}
	}
	for _, r := range cfg.Resources {
		owners[r.ToolName()] = resourceOwner
	}
	all := toolsets{}
	for _, g := range toolbox.BuildToolsets(offeredTools(cfg), cfg.Toolsets) {
		names := g.Refs
		t := toolset{Group: g}
		t.Refs = nil
		for _, name := range names {
			id, foreign := toolboxfile.ParseToolID(name)
			owner, declared := owners[name]
			switch {
			case foreign:
				t.addRef(modules.OwnerOf(id.Server), offeredName(cfg, id))
			case declared && callServers[name]:
				t.addRef(owner, name)
			default:
				t.Refs, t.owners = append(t.Refs, name), append(t.owners, owner)
			}
		}
		all[g.ID] = t
	}
	all.addLabelled(cfg)
	all.addPrompts(cfg)
	all.addResources(cfg)
	all.addHours(cfg)
	all.addRelated(cfg.Toolsets)
	return all
}

// addPrompts adds the prompts that toolsets list. It leaves out prompts that could not be
// read; loading has reported them.
func (t toolsets) addPrompts(cfg *config.Config) {
	known := map[string]toolgroups.Prompt{}
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

// newPrompt returns a prompt of a configuration as a group offers it.
func newPrompt(p toolboxfile.Prompt) (toolgroups.Prompt, error) {
	if p.Arguments == nil {
		return nil, fmt.Errorf("prompt %q has no arguments that could be read", p.Name)
	}
	var messages []toolgroups.PromptMessage
	for _, m := range p.Messages {
		messages = append(messages, toolgroups.PromptMessage{Role: m.Role, Text: m.Content})
	}
	return prompt.NewTemplate(p.Name, p.Description, p.Fingerprint, p.Arguments, messages)
}

// samePrompt reports whether two prompts have the same name and content.
func samePrompt(a, b toolgroups.Prompt) bool {
	return a.Name() == b.Name() && a.Fingerprint() == b.Fingerprint()
}

// unionIDs returns the ids of both, sorted.
func (t toolsets) unionIDs(other toolsets) []toolgroups.GroupID {
	ids := slices.AppendSeq(slices.Collect(maps.Keys(t)), maps.Keys(other))
	slices.Sort(ids)
	return slices.Compact(ids)
}

// equal reports whether both toolsets register the same, open or closed.
func (t toolset) equal(other toolset) bool {
	return t.ID == other.ID && t.Description == other.Description && slices.Equal(t.Refs, other.Refs) && slices.Equal(t.owners, other.owners) && maps.Equal(t.RefOwners, other.RefOwners) &&
		slices.EqualFunc(t.OwnerRefs, other.OwnerRefs, toolgroups.OwnerRef.Equal) &&
		slices.Equal(t.Children, other.Children) && slices.Equal(t.Fallback, other.Fallback) &&
		slices.EqualFunc(t.Prompts, other.Prompts, samePrompt) && t.sameHours(other)
}

// registerToolsets registers the toolsets of a change that differ from the current toolsets. It
// unregisters the toolsets that the change does not have.
func (a *App) registerToolsets(tx *toolgroups.Tx, ch *configChange) error {
	ch.bound = toolsets{}
	for _, id := range a.toolsets.unionIDs(ch.toolsets) {
		now, there := a.toolsets[id]
		then, stays := ch.toolsets[id]
		var err error
		if stays {
			then = then.withoutMissing(tx).atTime(a.hours.wall)
			ch.bound[id] = then
		}
		switch {
		case !stays:
			err = tx.UnregisterGroup(a.owner, id)
		case !there || !then.equal(now):
			_, err = tx.RegisterGroup(a.owner, then.Group)
		case then.Open != now.Open:
			err = tx.SwitchGroup(a.owner, id, then.Open)
		}
		if err != nil {
			at, field := toolsetPos(ch.cfg, id)
			return yamldoc.Errors{ch.cfg.ErrorAt(at, field, faultText(err), "")}
		}
	}
	return nil
}

// withoutMissing returns t without the references to declared tools that will be missing or will have
// another owner. Registration binds the names of references to the owner of the tool.
func (t toolset) withoutMissing(tx *toolgroups.Tx) toolset {
	bound := toolset{Group: t.Group, hours: t.hours, schedule: t.schedule}
	bound.Refs = nil
	for i, name := range t.Refs {
		_, lasting := t.RefOwners[name]
		if tool, ok := tx.LookupTool(name); lasting || ok && tool.Owner == t.owners[i] {
			bound.Refs, bound.owners = append(bound.Refs, name), append(bound.owners, t.owners[i])
		}
	}
	return bound
}

// checkToolsetIDs returns a problem for each toolset, or group that a tool names, whose id
// belongs to another owner. Loading has rejected tools that name a built-in group.
func (a *App) checkToolsetIDs(ch *configChange) (faults []*yamldoc.Error) {
	others, _ := a.knownGroups(ch)
	snapshot, leaves := a.groups.CurrentSnapshot(), ch.changedOwners()
	for _, id := range slices.Sorted(maps.Keys(ch.toolsets)) {
		at, field := toolsetPos(ch.cfg, id)
		owner := snapshot.GroupOwner(id)
		switch {
		case slices.Contains(toolgroups.ReservedIDs(), id) && field == "group":
		case slices.Contains(toolgroups.ReservedIDs(), id):
			faults = append(faults, ch.cfg.ErrorAt(at, field, fmt.Sprintf("%q is a built-in group, which declared tools cannot join", id), "choose another id"))
		case slices.Contains(others, string(id)):
			faults = append(faults, ch.cfg.ErrorAt(at, field, fmt.Sprintf("%q is a tool group of a module", id), "choose another id"))
		case owner != "" && !leaves[owner]:
			faults = append(faults, ch.cfg.ErrorAt(at, field, fmt.Sprintf("%q is a tool group of %s", id, owner), "choose another id"))
		}
	}
	return faults
}

// toolsetPos returns where a configuration first names a toolset.
func toolsetPos(cfg *config.Config, id toolgroups.GroupID) (at yamldoc.Pos, field string) {
	for _, t := range cfg.Toolsets {
		if t.Name == string(id) {
			return t.Pos, "name"
		}
	}
	for _, t := range cfg.Tools {
		if slices.Contains(t.Groups, string(id)) || t.Groups == nil && id == toolgroups.DefaultGroup {
			return t.Pos, "group"
		}
	}
	return labelPos(cfg, id), "group"
}
