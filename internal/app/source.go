package app

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"slices"
	"strconv"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/toolgroups"
)

// kindSource is the document kind of a source, and the type of its module.
const kindSource = "source"

// sourceModules lists the sources of a configuration as modules. Their Settings are a
// digest of the source and its tools, which only serves to detect a change.
func sourceModules(cfg *config.Config) []config.Module {
	list, prints := make([]config.Module, len(cfg.Sources)), make(map[string]hash.Hash, len(cfg.Sources))
	for _, s := range cfg.Sources {
		prints[s.Name] = sha256.New()
		fmt.Fprintf(prints[s.Name], "%q %q %q\n", s.Name, s.Fingerprint, scopeService(cfg))
	}
	for i := range cfg.Tools {
		t := &cfg.Tools[i]
		if sum, ok := prints[t.Source]; ok {
			fmt.Fprintf(sum, "%q %q\n", t.Name, t.Fingerprint)
		}
	}
	for i, s := range cfg.Sources {
		list[i] = config.Module{
			Name: toolbox.ModuleName(s.Name), Type: kindSource, Pos: s.Pos, TypePos: s.Pos,
			Settings: fmt.Appendf(nil, `"%x"`, prints[s.Name].Sum(nil)),
		}
	}
	return list
}

// sourceTools lists the tools of a source. It leaves out tools whose parameters could not
// be read; loading has reported them.
func sourceTools(cfg *config.Config, source string) []toolboxfile.DeclaredTool {
	isOf := func(t *toolboxfile.DeclaredTool) bool { return t.Source == source && t.Parameters != nil }
	n := 0
	for i := range cfg.Tools {
		if isOf(&cfg.Tools[i]) {
			n++
		}
	}
	tools := make([]toolboxfile.DeclaredTool, 0, n) // modules keep the list: no room to grow
	for i := range cfg.Tools {
		if isOf(&cfg.Tools[i]) {
			tools = append(tools, cfg.Tools[i])
		}
	}
	return tools
}

// newSourceModule constructs the module of a source without connecting it.
func (a *App) newSourceModule(cfg *config.Config, m config.Module) (modules.Module, *yamldoc.Error) {
	at := slices.IndexFunc(cfg.Sources, func(s toolboxfile.Source) bool { return s.Pos == m.Pos })
	if at < 0 {
		return nil, cfg.ErrorAt(m.TypePos, "type", "is not a module type", "write kind: "+kindSource)
	}
	s := cfg.Sources[at]
	if other, ok := conflictingName(cfg, m); ok {
		return nil, cfg.ErrorAt(m.Pos, "name", other+" has the same name", "choose another")
	}
	host := a.moduleHost(m.Name)
	host.Log = a.options.Warn.With("module", m.Name)
	made, err := toolbox.New(toolbox.Config{
		Source: s, Tools: sourceTools(cfg, s.Name), Host: host, Pools: &a.pools,
		ScopesOf: scopeService(cfg), Network: a.sourceNetwork,
	})
	if err != nil {
		return nil, cfg.ErrorAt(m.Pos, kindSource, faultText(err), "")
	}
	return made, nil
}

// sourceNotes returns a note for each source of a configuration that this build cannot
// use. cfg may be nil.
func sourceNotes(cfg *config.Config) (notes []string) {
	if cfg == nil {
		return nil
	}
	for _, s := range cfg.Sources {
		if reason := toolbox.MissingConnector(s); reason != "" {
			notes = append(notes, fmt.Sprintf("%s: source %s cannot be used, its tools fail with tool_unavailable: %s", s.Pos, s.Name, reason))
		}
	}
	return notes
}

// isInvalidSource reports whether a module is a source that loading has rejected.
func isInvalidSource(cfg *config.Config, m config.Module) bool {
	return m.Type == kindSource && slices.ContainsFunc(cfg.Sources, func(s toolboxfile.Source) bool { return s.Pos == m.Pos && s.Invalid })
}

// isDuplicate reports whether an earlier document of the same kind has the name of a
// module. Loading has reported such a document; a source is then invalid.
func isDuplicate(cfg *config.Config, m config.Module) bool {
	if m.Type == kindServer {
		at := slices.IndexFunc(cfg.MCPServers, func(s config.MCPServer) bool { return s.Name == m.Name })
		return at >= 0 && cfg.MCPServers[at].Pos != m.Pos
	}
	if m.Type == kindService {
		at := slices.IndexFunc(cfg.ToolServices, func(s toolboxfile.ToolService) bool { return s.Name == m.Name })
		return at >= 0 && cfg.ToolServices[at].Pos != m.Pos
	}
	at := slices.IndexFunc(cfg.Modules, func(o config.Module) bool { return o.Name == m.Name })
	return m.Type != kindSource && m.Type != kindResource && at >= 0 && cfg.Modules[at].Pos != m.Pos
}

// conflictingName returns another document that is a module of the same name.
func conflictingName(cfg *config.Config, m config.Module) (other string, found bool) {
	for _, o := range cfg.Modules {
		if o.Name == m.Name {
			return "the module at " + o.Pos.String(), true
		}
	}
	for _, o := range cfg.MCPServers {
		if o.Name == m.Name {
			return "the MCP server at " + o.Pos.String(), true
		}
	}
	for _, o := range cfg.Sources {
		if toolbox.ModuleName(o.Name) == m.Name && o.Pos != m.Pos && !o.Invalid {
			return "the source at " + o.Pos.String(), true
		}
	}
	for _, o := range cfg.ToolServices {
		if o.Name == m.Name && o.Pos != m.Pos {
			return "the tool service at " + o.Pos.String(), true
		}
	}
	return "", false
}

// sourceNetwork returns the current network policy of sources of type http.
func (a *App) sourceNetwork() toolbox.Network {
	return toolbox.Network{Private: a.limits.requests().Private}
}

// removedOwners returns the owners whose modules the configuration no longer has.
func (ch *configChange) removedOwners() map[toolgroups.GroupOwner]bool {
	owners := map[toolgroups.GroupOwner]bool{}
	for _, name := range ch.removed {
		owners[modules.OwnerOf(name)] = true
	}
	return owners
}

// changedOwners returns the owners whose registered groups say nothing about the state
// after the change: they will be replaced or removed.
func (ch *configChange) changedOwners() map[toolgroups.GroupOwner]bool {
	owners := ch.removedOwners()
	for _, m := range ch.staged {
		owners[modules.OwnerOf(m.Name)] = true
	}
	owners[toolgroups.Config] = true
	return owners
}

// isSource reports whether an owner is a source, a tool service or the declared resources in service.
func (a *App) isSource(owner toolgroups.GroupOwner) bool {
	for name, m := range a.running {
		if (m.Type == kindSource || m.Type == kindService || m.Type == kindResource) && modules.OwnerOf(name) == owner {
			return true
		}
	}
	return false
}

// toolOwner returns the owner of a declared tool.
func toolOwner(t toolboxfile.DeclaredTool) toolgroups.GroupOwner {
	return modules.OwnerOf(toolModule(t))
}

// toolModule returns the name of the module that has a declared tool.
func toolModule(t toolboxfile.DeclaredTool) string {
	switch {
	case t.MCP != nil:
		return t.MCP.Server
	case t.Service != nil:
		return t.Service.Service
	}
	return toolbox.ModuleName(t.Source)
}

// checkToolNames returns a problem for each declared tool whose name belongs to an owner
// that the change does not replace.
func (a *App) checkToolNames(ch *configChange) (faults []*yamldoc.Error) {
	if len(ch.cfg.Tools) == 0 {
		return nil
	}
	snapshot, leaves := a.groups.CurrentSnapshot(), ch.changedOwners()
	for _, t := range ch.cfg.Tools {
		old, ok := snapshot.LookupTool(t.Name)
		switch {
		case !ok || leaves[old.Owner] || old.Owner == toolOwner(t) || a.isSource(old.Owner):
		case old.Owner == toolgroups.Builtin:
			faults = append(faults, ch.cfg.ErrorAt(t.Pos, "name", strconv.Quote(t.Name)+" is a built-in tool", "choose another name"))
		default:
			faults = append(faults, ch.cfg.ErrorAt(t.Pos, "name", fmt.Sprintf("%q is a tool of %s", t.Name, old.Owner), "choose another name"))
		}
	}
	return faults
}
