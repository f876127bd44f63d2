package app

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// labelOf returns the labels of a document as a module has them. Loading has checked the
// effect class.
func labelOf(l toolboxfile.Labels) modules.Label {
	label := modules.Label{State: l.State, States: l.States, Flags: l.Flags}
	if l.Effect != "" {
		label.Effect = new(tool.Effect)
		_ = label.Effect.UnmarshalText([]byte(l.Effect)) // an unknown class stays Mutating
	}
	return label
}

// labelsOf returns the labels of the tools of an MCP server or module.
func labelsOf(cfg *config.Config, m config.Module) modules.Labels {
	labels := modules.Labels{All: labelOf(m.Labels), Tools: map[string]modules.Label{}}
	for _, l := range cfg.Labels {
		if l.Server == m.Name {
			labels.Tools[l.Tool] = labelOf(l.Labels)
		}
	}
	return labels
}

// loaderLabels returns the labels that the loader applies to the tools of a module. An MCP server
// applies them itself. Loading applies the labels of sources and tool services.
func loaderLabels(cfg *config.Config, m config.Module) modules.Labels {
	if m.Type == kindServer || m.Type == kindSource || m.Type == kindService || m.Type == kindResource {
		return modules.Labels{}
	}
	return labelsOf(cfg, m)
}

// namedTools lists the tools of type mcp-tool that call tools of a server.
func namedTools(cfg *config.Config, server string) (list []mcpclient.NamedTool) {
	for _, t := range cfg.Tools {
		if t.MCP == nil || t.MCP.Server != server {
			continue
		}
		label := labelOf(toolboxfile.Labels{States: t.InStates, Effect: t.Effect, Flags: t.Flags})
		if t.NextState != "" {
			label.State = &t.NextState
		}
		list = append(list, mcpclient.NamedTool{Name: t.Name, Description: t.Description, Tool: t.MCP.Tool, Label: label})
	}
	return list
}

// toolsDigest returns a digest of the labels and the named tools of an MCP server or module in
// documents. It leaves out the groups of tools, which the module does not know.
func toolsDigest(cfg *config.Config, m config.Module) string {
	text, _ := json.Marshal([]any{labelsOf(cfg, m), namedTools(cfg, m.Name)}) // texts always marshal
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// checkModuleTools returns a problem for each document or toolset that names a tool which a
// module will not have. The tools of an MCP server come and go, so a missing tool is no
// problem. Documents about a missing tool have no effect.
func (a *App) checkModuleTools(ch *configChange) (faults []*yamldoc.Error) {
	check := func(id toolboxfile.ToolID, at yamldoc.Pos, field string) {
		if isModule := slices.ContainsFunc(ch.cfg.Modules, func(m config.Module) bool { return m.Name == id.Server }); isModule && !a.hasModuleTool(ch, id) {
			faults = append(faults, ch.cfg.ErrorAt(at, field, fmt.Sprintf("module %s has no tool %q", id.Server, id.Tool), `"rolecall tool list" lists the tools`))
		}
	}
	for _, l := range ch.cfg.Labels {
		check(l.ToolID, l.Pos, "of")
	}
	for _, s := range ch.cfg.Toolsets {
		for _, name := range s.Tools {
			if id, ok := toolboxfile.ParseToolID(name); ok {
				check(id, s.Pos, "tools")
			}
		}
	}
	return faults
}

// hasModuleTool reports whether a module will have a tool. It reports true for a module that
// does not start, which is reported elsewhere.
func (a *App) hasModuleTool(ch *configChange, id toolboxfile.ToolID) bool {
	if slices.Contains(ch.failedModules, id.Server) || slices.Contains(ch.faultyModules, id.Server) {
		return true
	}
	for _, m := range ch.staged {
		if m.Name == id.Server {
			return m.ready.HasTool(id.Tool)
		}
	}
	h, ok := a.groups.CurrentSnapshot().LookupTool(id.Tool)
	return ok && h.Owner == modules.OwnerOf(id.Server)
}

// offeredName returns the name under which a tool of an MCP server or module is offered.
func offeredName(cfg *config.Config, id toolboxfile.ToolID) string {
	for _, s := range cfg.MCPServers {
		switch {
		case s.Name != id.Server:
		case s.Prefix != nil:
			return *s.Prefix + id.Tool
		default:
			return s.Name + "__" + id.Tool
		}
	}
	return id.Tool
}

// offeredTools lists the declared tools that can be called.
func offeredTools(cfg *config.Config) []toolboxfile.DeclaredTool {
	return slices.DeleteFunc(slices.Clone(cfg.Tools), func(t toolboxfile.DeclaredTool) bool { return t.Type == toolboxfile.ToolGraphUpdate })
}

// toolNotes returns a note for each declared tool that is not offered, and for each parameter that
// accepts less than in Toolbox. cfg may be nil.
func toolNotes(cfg *config.Config) (notes []string) {
	if cfg == nil {
		return nil
	}
	for _, t := range cfg.Tools {
		if t.Type == toolboxfile.ToolGraphUpdate {
			notes = append(notes, fmt.Sprintf("%s: tool %s is not offered: TrustGraph has no HTTP API for %s", t.Pos, t.Name, t.Type))
		}
	}
	return append(notes, cfg.ListAnchored()...)
}

// labelledServer is an MCP server or module with the labels of all of its tools.
type labelledServer struct {
	name   string
	labels toolboxfile.Labels
	at     yamldoc.Pos
}

// labelledServers lists the MCP servers and modules that name groups for their tools.
func labelledServers(cfg *config.Config) (list []labelledServer) {
	for _, s := range cfg.MCPServers {
		list = append(list, labelledServer{s.Name, s.Labels, s.Pos})
	}
	for _, m := range cfg.Modules {
		list = append(list, labelledServer{m.Name, m.Labels, m.Pos})
	}
	return slices.DeleteFunc(list, func(s labelledServer) bool { return len(s.labels.Groups) == 0 })
}

// addLabelled adds the tools of MCP servers and modules to the groups that documents name for
// them.
func (t toolsets) addLabelled(cfg *config.Config) {
	own := map[string][]string{} // tools with groups of their own, by server
	for _, l := range cfg.Labels {
		if l.Labels.Groups == nil {
			continue
		}
		name := offeredName(cfg, l.ToolID)
		own[l.Server] = append(own[l.Server], name)
		for _, id := range l.Labels.Groups {
			t.edit(id, func(s *toolset) { s.addRef(modules.OwnerOf(l.Server), name) })
		}
	}
	for _, d := range cfg.Tools {
		if d.MCP != nil {
			own[d.MCP.Server] = append(own[d.MCP.Server], d.Name) // loading has set its groups
		}
	}
	for _, s := range labelledServers(cfg) {
		for _, id := range s.labels.Groups {
			ref := toolgroups.OwnerRef{Owner: modules.OwnerOf(s.name), Except: own[s.name]}
			t.edit(id, func(s *toolset) { s.OwnerRefs = append(s.OwnerRefs, ref) })
		}
	}
}

// edit changes the toolset with an id, which it makes if there is none.
func (t toolsets) edit(id string, change func(*toolset)) {
	set, ok := t[toolgroups.GroupID(id)]
	if !ok {
		set = toolset{Group: toolgroups.Group{ID: toolgroups.GroupID(id), Description: "Tools of the group " + id}}
	}
	change(&set)
	t[set.ID] = set
}

// labelPos returns where a configuration first names a group for tools of an MCP server or
// module.
func labelPos(cfg *config.Config, id toolgroups.GroupID) yamldoc.Pos {
	for _, l := range cfg.Labels {
		if slices.Contains(l.Labels.Groups, string(id)) {
			return l.Pos
		}
	}
	for _, s := range labelledServers(cfg) {
		if slices.Contains(s.labels.Groups, string(id)) {
			return s.at
		}
	}
	return yamldoc.Pos{}
}
