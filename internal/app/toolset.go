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

// toolset is a tool group of the configuration's own: references to declared
// tools, and prompts.
type toolset struct {
	toolgroups.Group
	owners []toolgroups.Owner // of Refs
}

// toolsets are those of one configuration.
type toolsets map[toolgroups.GroupID]toolset

// toolsetsOf gives the toolsets of a configuration, and the groups that its
// tools name.
func toolsetsOf(cfg *config.Config) toolsets {
	owners := make(map[string]toolgroups.Owner, len(cfg.Tools))
	for _, t := range cfg.Tools {
		owners[t.Name] = ownerOf(t)
	}
	all := toolsets{}
	for _, g := range toolbox.Toolsets(cfg.Tools, cfg.Toolsets) {
		t := toolset{Group: g}
		for _, name := range g.Refs {
			t.owners = append(t.owners, owners[name])
		}
		all[g.ID] = t
	}
	all.tell(cfg)
	return all
}

// tell gives toolsets the prompts that they list. One that is wrong is nobody's;
// the configuration is refused for it.
func (t toolsets) tell(cfg *config.Config) {
	known := map[string]*toolgroups.Prompt{}
	for _, p := range cfg.Prompts {
		if made, err := promptOf(p); err == nil {
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

func promptOf(p config.Prompt) (*toolgroups.Prompt, error) {
	if p.Arguments == nil {
		return nil, fmt.Errorf("prompt %q has no arguments that could be read", p.Name)
	}
	var messages []toolgroups.Message
	for _, m := range p.Messages {
		messages = append(messages, toolgroups.Message{Role: m.Role, Text: m.Content})
	}
	return toolgroups.NewPrompt(p.Name, p.Description, p.Fingerprint, p.Arguments, messages)
}

// samePrompt says whether two prompts say the same.
func samePrompt(a, b *toolgroups.Prompt) bool {
	return a.Name == b.Name && a.Fingerprint == b.Fingerprint
}

// with lists the ids of both, sorted.
func (t toolsets) with(other toolsets) []toolgroups.GroupID {
	ids := slices.AppendSeq(slices.Collect(maps.Keys(t)), maps.Keys(other))
	slices.Sort(ids)
	return slices.Compact(ids)
}

func (t toolset) equal(other toolset) bool {
	return t.ID == other.ID && t.Description == other.Description && slices.Equal(t.Refs, other.Refs) && slices.Equal(t.owners, other.owners) &&
		slices.EqualFunc(t.Prompts, other.Prompts, samePrompt)
}

// common gives t without the references and prompts that other has not.
func (t toolset) common(other toolset) toolset {
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

// restrictToolsets leaves in each toolset what it has in both configurations, and
// registers new ones empty, so that roles can name them: nobody gains by a
// toolset before widenToolsets.
func (a *App) restrictToolsets(next toolsets) error {
	var errs []error
	for _, id := range a.toolsets.with(next) {
		now, there := a.toolsets[id]
		both := now.common(next[id])
		if !there {
			both.ID, both.Description = id, next[id].Description
		}
		if !there || !both.equal(now) {
			errs = append(errs, a.putToolset(both))
		}
	}
	return errors.Join(errs...)
}

// expandToolsets makes the toolsets those of next. Those that are the same are
// not touched.
func (a *App) expandToolsets(next toolsets) error {
	var errs []error
	for _, id := range a.toolsets.with(next) {
		now, there := a.toolsets[id]
		then, stays := next[id]
		switch {
		case !stays:
			errs = append(errs, a.Runtime.Unregister(toolgroups.Config, id))
			delete(a.toolsets, id)
		case !there || !then.equal(now):
			errs = append(errs, a.putToolset(then))
		}
	}
	return errors.Join(errs...)
}

// putToolset registers a toolset without the references whose tools are missing
// now, or somebody else's: a name is bound to who owns it when it is registered.
func (a *App) putToolset(t toolset) error {
	snapshot, bound := a.groups.Snapshot(), toolset{Group: toolgroups.Group{ID: t.ID, Description: t.Description, Prompts: t.Prompts}}
	for i, name := range t.Refs {
		if tool, ok := snapshot.Lookup(name); ok && tool.Owner == t.owners[i] {
			bound.Refs, bound.owners = append(bound.Refs, name), append(bound.owners, t.owners[i])
		}
	}
	if _, err := a.Runtime.Register(toolgroups.Config, bound.Group); err != nil {
		return fmt.Errorf("register toolset %q: %w", t.ID, err)
	}
	a.toolsets[t.ID] = bound
	return nil
}

// toolsetFaults finds toolsets, and groups that tools name, whose ids are
// somebody else's. Tools that name one of the runtime's were refused where they
// were read.
func (a *App) toolsetFaults(ch *configChange) (faults []*config.Error) {
	others, _ := a.knownGroups(ch)
	snapshot := a.groups.Snapshot()
	for _, id := range slices.Sorted(maps.Keys(ch.toolsets)) {
		at, field := toolsetPlace(ch.cfg, id)
		owner := snapshot.Owner(id)
		switch {
		case slices.Contains(toolgroups.Reserved(), id) && field == "group":
		case slices.Contains(toolgroups.Reserved(), id):
			faults = append(faults, ch.cfg.Fault(at, field, fmt.Sprintf("%q is a built-in group, which declared tools cannot join", id), "choose another id"))
		case slices.Contains(others, string(id)):
			faults = append(faults, ch.cfg.Fault(at, field, fmt.Sprintf("%q is a tool group of a module", id), "choose another id"))
		case owner != "" && owner != toolgroups.Config: // until the change is done
			faults = append(faults, ch.cfg.Fault(at, field, fmt.Sprintf("%q is a tool group of %s now", id, owner), "choose another id, or take that module out first and add the toolset then"))
		}
	}
	return faults
}

// toolsetPlace finds where a configuration names a toolset first.
func toolsetPlace(cfg *config.Config, id toolgroups.GroupID) (at config.Pos, field string) {
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
