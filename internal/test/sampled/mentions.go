package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"strconv"
)

// mentions holds what each declaration of a package mentions, by its name: names, and
// functions of other packages.
type mentions map[string]*mentioned

type mentioned struct {
	method   bool // of any type
	names    map[string]bool
	imported map[importedName]bool
}

// importedName is a name of another package.
type importedName struct{ path, name string }

// parseMentions reads the declarations of some files.
func parseMentions(dir string, files []string) (mentions, error) {
	m := mentions{}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("parse the tests: %w", err)
		}
		imports := importsOf(file)
		for _, d := range file.Decls {
			for _, declared := range namesOf(d) {
				m.add(declared, d, imports)
			}
		}
	}
	return m, nil
}

// importsOf returns the paths of imports by their names in a file.
func importsOf(file *ast.File) map[string]string {
	imports := map[string]string{}
	for _, spec := range file.Imports {
		p, _ := strconv.Unquote(spec.Path.Value)
		name := path.Base(p)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		imports[name] = p
	}
	return imports
}

// namesOf returns the names that a declaration declares.
func namesOf(d ast.Decl) []string {
	switch d := d.(type) {
	case *ast.FuncDecl:
		return []string{d.Name.Name}
	case *ast.GenDecl:
		var names []string
		for _, spec := range d.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				for _, name := range v.Names {
					names = append(names, name.Name)
				}
			}
		}
		return names
	}
	return nil
}

// add adds what a declaration mentions.
func (m mentions) add(declared string, d ast.Decl, imports map[string]string) {
	if m[declared] == nil {
		m[declared] = &mentioned{names: map[string]bool{}, imported: map[importedName]bool{}}
	}
	if f, ok := d.(*ast.FuncDecl); ok && f.Recv != nil {
		m[declared].method = true
	}
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.Ident:
			m[declared].names[n.Name] = true
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && imports[x.Name] != "" {
				m[declared].imported[importedName{imports[x.Name], n.Sel.Name}] = true
				return false
			}
		}
		return true
	})
}

// reaching returns the declarations that reach a function of samplers through others.
func (m mentions) reaching(samplers map[string]map[string]bool) map[string]bool {
	found := map[string]bool{}
	for grown := true; grown; {
		grown = false
		for declared, what := range m {
			if !found[declared] && what.reaches(samplers, found) {
				found[declared], grown = true, true
			}
		}
	}
	return found
}

// samplingMethod returns a method that mentions a function of samplers, or "".
func (m mentions) samplingMethod(samplers map[string]map[string]bool) string {
	for name, what := range m {
		if what.method && what.reaches(samplers, nil) {
			return name
		}
	}
	return ""
}

// all returns all declarations.
func (m mentions) all() map[string]bool {
	found := map[string]bool{}
	for declared := range m {
		found[declared] = true
	}
	return found
}

// reaches reports whether a declaration mentions a function that samples.
func (m *mentioned) reaches(samplers map[string]map[string]bool, found map[string]bool) bool {
	for name := range m.names {
		if found[name] {
			return true
		}
	}
	for i := range m.imported {
		if samplers[i.path][i.name] {
			return true
		}
	}
	return false
}
