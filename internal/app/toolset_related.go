package app

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/toolgroups"
)

// addRelated adds the children and fallbacks of the toolsets of a configuration.
func (t toolsets) addRelated(list []toolboxfile.Toolset) {
	for _, s := range list {
		if set, ok := t[toolgroups.GroupID(s.Name)]; ok {
			set.Children, set.Fallback = toolboxfile.GroupRefIDs(s.Children), toolboxfile.GroupRefIDs(s.Fallback)
			t[set.ID] = set
		}
	}
}

// checkRelated returns a problem for each child that is neither a toolset nor a group of declared tools. It
// returns a problem for each unknown fallback, and for the first hierarchy that is invalid.
func (a *App) checkRelated(ch *configChange) (faults []*yamldoc.Error) {
	for _, s := range ch.cfg.Toolsets {
		for _, child := range s.Children {
			if _, ok := ch.toolsets[child.ID]; !ok {
				faults = append(faults, a.unknownChild(ch, child))
			}
		}
		faults = append(faults, a.checkFallbacks(ch, s)...)
	}
	children := func(id toolgroups.GroupID) []toolgroups.GroupID { return ch.toolsets[id].Children }
	for _, s := range ch.cfg.Toolsets {
		if err := toolgroups.CheckChildren([]toolgroups.GroupID{toolgroups.GroupID(s.Name)}, children); err != nil {
			at, _ := toolsetPos(ch.cfg, toolgroups.GroupID(s.Name))
			return append(faults, ch.cfg.ErrorAt(at, "children", errcode.Message(err), "remove one of them"))
		}
	}
	return faults
}

// unknownChild returns the problem of a child that is no toolset and no group of declared tools.
func (a *App) unknownChild(ch *configChange, child toolboxfile.GroupRef) *yamldoc.Error {
	others, _ := a.knownGroups(ch)
	if slices.Contains(others, string(child.ID)) {
		return ch.cfg.ErrorAt(child.Pos, "children", "the tool group "+string(child.ID)+" belongs to a module", "name toolsets, or groups of declared tools")
	}
	var own []string
	for id := range ch.toolsets {
		own = append(own, string(id))
	}
	hint := cmp.Or(a.toolHint(ch.cfg, string(child.ID)), textutil.SuggestName(string(child.ID), own), "name toolsets, or groups of declared tools")
	return ch.cfg.ErrorAt(child.Pos, "children", "unknown tool group "+string(child.ID), hint)
}

// checkFallbacks returns a problem for each fallback of a toolset that will not be registered.
func (a *App) checkFallbacks(ch *configChange, s toolboxfile.Toolset) (faults []*yamldoc.Error) {
	if len(s.Fallback) == 0 {
		return nil
	}
	known := a.groupIDsAfter(ch)
	for _, one := range s.Fallback {
		module, _, _ := strings.Cut(string(one.ID), "/")
		mayExist := slices.Contains(ch.failedModules, module) || slices.Contains(ch.faultyModules, module) ||
			ch.modulesAmong(ch.failedModules) != nil || ch.modulesAmong(ch.faultyModules) != nil
		if !mayExist && !slices.Contains(known, string(one.ID)) {
			hint := cmp.Or(a.toolHint(ch.cfg, string(one.ID)), textutil.SuggestName(string(one.ID), known))
			faults = append(faults, ch.cfg.ErrorAt(one.Pos, "fallback", "unknown tool group "+string(one.ID), hint))
		}
	}
	return faults
}
