package toolboxfile

import (
	"crypto/sha256"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// ToolCache holds the tools of an earlier configuration that can be reused for documents
// with the same text.
type ToolCache struct {
	tools []DeclaredTool
	known map[[sha256.Size]byte]reusableTool // by the digest of the document's text
}

// reusableTool is a tool that is the only one in its document. Its position is
// relative to the beginning of the document, which may move.
type reusableTool struct {
	tool   int // index in ToolCache.tools
	below  int // lines from the beginning of the document to the tool
	column int
}

// NewToolCache returns the reusable tools among tools, which were read from files without
// an error. The files must be in the order in which they were read.
func NewToolCache(files []yamldoc.File, tools []DeclaredTool) *ToolCache {
	c := &ToolCache{tools: tools, known: make(map[[sha256.Size]byte]reusableTool, len(tools))}
	at := 0 // tools are in the order of files and documents
	for _, f := range files {
		if f.Named {
			continue
		}
		parts, ok := yamldoc.NewFileText(f).SplitDocuments()
		if !ok {
			return &ToolCache{}
		}
		for i, p := range parts {
			first := at
			for at < len(tools) && tools[at].Pos.File == f.Path && (i+1 == len(parts) || tools[at].Pos.Line < parts[i+1].Line) {
				at++
			}
			// The same text has another meaning when a variable changes.
			if at == first+1 && tools[first].cacheable && !strings.Contains(p.Text, "${") {
				pos := tools[first].Pos
				c.known[p.Sum] = reusableTool{first, pos.Line - p.Line, pos.Column}
			}
		}
	}
	return c
}

// IsEmpty reports whether no tool can be reused.
func (c *ToolCache) IsEmpty() bool { return len(c.known) == 0 }

// ReuseTool adds the tool that the document p of the file at path declares, if the cache
// has it. CheckTools checks later that it is still valid. It returns false if the document
// has to be read.
func (r *Reader) ReuseTool(c *ToolCache, path string, p yamldoc.DocumentText) bool {
	old, ok := c.known[p.Sum]
	if !ok {
		return false
	}
	t := c.tools[old.tool]
	t.Pos = yamldoc.Pos{File: path, Line: p.Line + old.below, Column: old.column}
	if _, ok := r.set.DeclareName("tool", t.Name, t.Pos); !ok {
		r.stale = true
	}
	r.reused = append(r.reused, len(r.to.Tools))
	r.to.Tools = append(r.to.Tools, t)
	return true
}
