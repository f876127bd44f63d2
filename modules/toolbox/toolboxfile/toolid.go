package toolboxfile

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/tool"
)

// ToolID identifies a tool of an MCP server or module.
type ToolID struct {
	Server string // name of the server or module
	Tool   string // the tool's name there, without a prefix
}

// String returns SERVER/TOOL.
func (id ToolID) String() string { return id.Server + "/" + id.Tool }

// ParseToolID returns the tool that SERVER/TOOL identifies. It reports false for a text of
// another form.
func ParseToolID(text string) (id ToolID, ok bool) {
	server, name, ok := strings.Cut(text, "/")
	return ToolID{server, name}, ok && server != "" && tool.CheckName(name) == nil
}

// foreignTool is a place that names a tool of a server or module. It is checked when all
// documents are read.
type foreignTool struct {
	ToolID
	at    yamldoc.Value
	kinds []string // kinds of documents that may declare the server
}

// serverKinds are the kinds of documents whose tools a ToolID can name.
var serverKinds = []string{"mcpServer", "module"}

// toolIDField reads SERVER/TOOL.
func (it item) toolIDField(to *ToolID, kinds ...string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if *to, ok = ParseToolID(text); !ok {
			v.AddTypeError("SERVER/TOOL", "for example fs/read_file: the name of an MCP server or module, and the name of one of its tools")
			return
		}
		it.r.foreign = append(it.r.foreign, foreignTool{*to, v, kinds})
	}
}

// checkForeignTools reports tools of servers and modules that are not declared, and
// documents of kind tool for the same tool.
func (r *Reader) checkForeignTools() {
	for _, f := range r.foreign {
		var known []string
		for _, kind := range f.kinds {
			known = append(known, r.set.ListNames(kind)...)
		}
		switch {
		case slices.Contains(known, f.Server):
		case slices.Contains(r.set.ListNames("source"), f.Server):
			f.at.AddError(yamldoc.QuoteText(f.Server)+" is a source", "its tools are declared in documents of kind tool; write it there")
		default:
			f.at.AddError(fmt.Sprintf("no %s is named %q", strings.Join(f.kinds, " or "), textutil.Truncate(f.Server, 100)), textutil.SuggestName(f.Server, known))
		}
	}
	first := map[ToolID]yamldoc.Pos{}
	for _, l := range r.labels {
		if at, ok := first[l.ToolID]; ok {
			l.at.AddError(fmt.Sprintf("%s has another document at %s", l.ToolID, at), "one document says all about a tool")
			continue
		}
		first[l.ToolID] = l.at.Pos
	}
}

// readToolLabels reads a document of kind tool with the field of.
func readToolLabels(it item, at yamldoc.Value) {
	l := ToolLabels{Pos: at.Pos}
	if it.IsEntry {
		at.AddError("is not allowed below "+it.r.section, "write a document with kind: tool and of")
		return
	}
	it.ReadFields(yamldoc.MergeFields(LabelFields(it.Item, &l.Labels), yamldoc.Fields{"of": it.toolIDField(&l.ToolID, serverKinds...)}))
	if l.Server == "" {
		return
	}
	it.r.labels = append(it.r.labels, foreignTool{ToolID: l.ToolID, at: at})
	it.r.to.Labels = append(it.r.to.Labels, l)
}
