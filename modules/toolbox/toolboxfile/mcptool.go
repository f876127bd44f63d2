package toolboxfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// pendingMCPTool is a tool of type mcp-tool that waits for the servers it may name.
type pendingMCPTool struct {
	index int           // in Declarations.Tools
	at    yamldoc.Value // of mcp_tool_id, or where it is missing
	id    string        // as written: SERVER/TOOL, SERVER, or ""
}

// mcpToolFields returns the fields of a tool that calls a tool of an MCP server. mcp-tool is
// TrustGraph's name of mcp_tool_id.
func mcpToolFields(it item, p *pendingTool) yamldoc.Fields {
	id := func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if ok && p.mcpID != "" && p.mcpID != text {
			v.AddError("mcp_tool_id and mcp-tool are the same field and differ", "leave one out")
		}
		p.mcpID, p.mcpAt = text, v
	}
	p.mcpAt = it.MissingField("mcp_tool_id")
	return yamldoc.Fields{
		"mcp_tool_id": id,
		"mcp-tool":    id,
		"arguments": func(v yamldoc.Value) {
			v.AddError("is not a field of a tool of type mcp-tool", "the MCP server defines the arguments; leave the field out")
		},
	}
}

// checkMCPTools finds the tools of MCP servers that tools of type mcp-tool call.
//
// An id without a slash is the name of a server, and the tool there has the name of the
// declared tool. Without an id it is the only server.
func (r *Reader) checkMCPTools() {
	servers := r.set.ListNames("mcpServer")
	for _, p := range r.mcpTools {
		t := &r.to.Tools[p.index]
		server, name, _ := strings.Cut(p.id, "/")
		id, ok := ParseToolID(server + "/" + name)
		switch {
		case p.id == "" && len(servers) == 1:
			id, ok = ToolID{servers[0], t.Name}, true
		case p.id == "":
			p.at.AddError("is missing", yamldoc.ListHint("without it there has to be exactly one document of kind mcpServer; there are ", servers))
			continue
		case !strings.Contains(p.id, "/"):
			id, ok = ToolID{p.id, t.Name}, true
		}
		switch {
		case !ok:
			p.at.AddTypeError("SERVER/TOOL, or the name of an MCP server", "for example analysis/summarize")
		case !slices.Contains(servers, id.Server):
			p.at.AddError(fmt.Sprintf("no mcpServer is named %q", textutil.Truncate(id.Server, 100)), textutil.SuggestName(id.Server, servers))
		default:
			t.MCP = &id
		}
	}
}
