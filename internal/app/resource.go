package app

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolbox/resource"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/toolgroups"
)

// kindResource is the document kind of a declared resource, and the type of the module that has
// all of them.
const kindResource = "resource"

// validResources lists the resources that could be read; loading has reported the others.
func validResources(cfg *config.Config) []toolboxfile.Resource {
	return slices.DeleteFunc(slices.Clone(cfg.Resources), func(r toolboxfile.Resource) bool { return r.Invalid })
}

// resourceModules lists the module of the declared resources, if there are any. Its Settings are a
// digest of them, which only serves to detect a change.
func resourceModules(cfg *config.Config) []config.Module {
	valid, sum := validResources(cfg), sha256.New()
	if len(valid) == 0 {
		return nil
	}
	for _, r := range valid {
		fmt.Fprintf(sum, "%q %q\n", r.ToolName(), r.Fingerprint)
	}
	at := valid[0].Pos
	return []config.Module{{Name: resource.ModuleName, Type: kindResource, Pos: at, TypePos: at, Settings: fmt.Appendf(nil, `"%x"`, sum.Sum(nil))}}
}

// newResourceModule constructs the module of the declared resources.
func (a *App) newResourceModule(cfg *config.Config, m config.Module) (modules.Module, *yamldoc.Error) {
	if other, ok := conflictingName(cfg, m); ok {
		return nil, cfg.ErrorAt(m.Pos, kindResource, other+" has the name "+m.Name+", which resources have", "rename that one")
	}
	made, err := resource.New(validResources(cfg))
	if err != nil {
		return nil, cfg.ErrorAt(m.Pos, kindResource, faultText(err), "")
	}
	return made, nil
}

// resourceOwner is the owner of the tools that read declared resources.
var resourceOwner = modules.OwnerOf(resource.ModuleName)

// addResources adds the tools that read the resources which toolsets list.
func (t toolsets) addResources(cfg *config.Config) {
	for _, s := range cfg.Toolsets {
		set, ok := t[toolgroups.GroupID(s.Name)]
		if !ok {
			continue
		}
		for _, name := range s.ResourceTools() {
			if slices.Contains(set.Refs, name) { // listed as a tool too
				continue
			}
			set.Refs, set.owners = append(set.Refs, name), append(set.owners, resourceOwner)
		}
		t[set.ID] = set
	}
}
