package config

import (
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// Workspace is a directory in which callers and tasks work. It is a document of kind
// workspace, or a field workspace of the organization, a role or a token.
//
//	kind: workspace
//	name: reports
//	path: ./reports
//	readOnly: true
type Workspace struct {
	Name     string // "" only in a field
	Path     string // from the working directory; the caller checks that it is a directory
	ReadOnly bool
	Pos      yamldoc.Pos
	PathPos  yamldoc.Pos
}

// WorkspaceField is the workspace of the callers of the organization, a role or a token. The zero
// WorkspaceField means no workspace.
type WorkspaceField struct {
	Name   string     // of one of Config.Workspaces
	Inline *Workspace // written in the field, without a name
}

// FindWorkspace returns the workspace of a field. It reports false if there is none.
func (c *Config) FindWorkspace(f WorkspaceField) (Workspace, bool) {
	if f.Inline != nil {
		return *f.Inline, true
	}
	for _, w := range c.Workspaces {
		if f.Name != "" && w.Name == f.Name {
			return w, true
		}
	}
	return Workspace{}, false
}

const workspaceNameHint = "requests name workspaces by it; the directory is its path"

// readWorkspace reads a document of kind workspace.
func readWorkspace(it item) {
	w := Workspace{Name: it.Name, Pos: it.Pos}
	it.DeclareItem()
	it.checkPlainName(workspaceNameHint)
	it.ReadFields(yamldoc.Fields{"path": directoryField(&w), "readOnly": yamldoc.BoolField(&w.ReadOnly)})
	it.RequireFields("path")
	it.r.config.Workspaces = append(it.r.config.Workspaces, w)
}

// directoryField reads the directory of a workspace, relative to the document.
func directoryField(w *Workspace) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if path, ok := v.ReadNonEmpty(); ok {
			w.Path, w.PathPos = v.FilePath(path), v.Pos
		}
	}
}

// workspaceField reads the name of a workspace, or a workspace that is written in its place.
func (it item) workspaceField(to *WorkspaceField) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		switch {
		case v.IsMapping():
		case v.IsScalar() && strings.ContainsAny(v.Node.Value, `/\`):
			v.AddError("must be the name of a workspace, not a path", "write {path: "+yamldoc.ClipText(v.Node.Value)+"}")
			return
		default:
			it.ReferenceField("workspace", &to.Name)(v)
			return
		}
		w := Workspace{Pos: v.Pos}
		v.ReadFields(yamldoc.Fields{"name": it.inlineName(&w), "path": directoryField(&w), "readOnly": yamldoc.BoolField(&w.ReadOnly)})
		if _, ok := v.FindField("path"); !ok {
			v.MissingField("path").AddError("is missing", "name the directory")
		}
		if w.Name == "" {
			to.Inline = &w
			return
		}
		to.Name = w.Name
		it.r.config.Workspaces = append(it.r.config.Workspaces, w)
	}
}

// inlineName reads the name of a workspace that is written in a field, and declares it.
func (it item) inlineName(w *Workspace) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		name, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		if !plainName().MatchString(name) {
			v.AddError(plainNameProblem, workspaceNameHint)
			return
		}
		w.Name = name
		if first, ok := it.DeclareName("workspace", name, v.Pos); !ok {
			v.AddError(fmt.Sprintf("workspace %s is declared twice; the first is at %s", yamldoc.QuoteText(name), first), "rename one of them, or write its name alone")
		}
	}
}
