// Package api_test lists the API of the stable packages, and what it may not contain.
package api_test

import (
	"flag"
	"fmt"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/api.txt")

const module = "github.com/rolecall/rolecall"

// stable are the packages of docs/api-stability.md. internal/test/apidiff.sh reads the list
// from the golden file.
var stable = []string{"", "/cmd", "/configured", "/errcode", "/identity", "/model", "/modules", "/rolecalltest", "/tool"}

// loadPackages returns the type information of the stable packages, from export data.
func loadPackages(t *testing.T) []*types.Package {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}}\t{{.Export}}"}
	for _, pkg := range stable {
		args = append(args, module+pkg)
	}
	out, err := exec.Command("go", args...).Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	files := map[string]string{}
	for line := range strings.Lines(string(out)) {
		path, file, _ := strings.Cut(strings.TrimSpace(line), "\t")
		files[path] = file
	}
	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(files[path]) })
	var list []*types.Package
	for _, pkg := range stable {
		p, err := from.Import(module + pkg)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

// exported yields the exported objects of a package, with the exported fields and methods of
// its types, in a fixed order.
func exported(p *types.Package, yield func(name string, o types.Object)) {
	for _, name := range p.Scope().Names() {
		o := p.Scope().Lookup(name)
		if !o.Exported() {
			continue
		}
		yield(name, o)
		named, ok := o.Type().(*types.Named)
		if _, isType := o.(*types.TypeName); !isType || !ok || named.Obj() != o { // an alias is listed with its own package
			continue
		}
		members(named, func(m types.Object) { yield(name+"."+m.Name(), m) })
	}
}

// members yields the exported fields and methods of a type, sorted by name.
func members(named *types.Named, yield func(types.Object)) {
	var list []types.Object
	switch under := named.Underlying().(type) {
	case *types.Struct:
		for f := range under.Fields() {
			list = append(list, f)
		}
	case *types.Interface:
		for m := range under.Methods() {
			list = append(list, m)
		}
	}
	for m := range named.Methods() {
		list = append(list, m)
	}
	slices.SortFunc(list, func(a, b types.Object) int { return strings.Compare(a.Name(), b.Name()) })
	for _, m := range list {
		if m.Exported() {
			yield(m)
		}
	}
}

// describe returns an object on one line, without the members of a type.
func describe(p *types.Package, name string, o types.Object) string {
	short := func(of *types.Package) string {
		if of == p {
			return ""
		}
		return strings.TrimPrefix(of.Path(), module+"/")
	}
	switch o := o.(type) {
	case *types.Const:
		return fmt.Sprintf("const %s %s = %s", name, types.TypeString(o.Type(), short), o.Val())
	case *types.TypeName:
		if o.IsAlias() {
			return "type " + name + " = " + types.TypeString(types.Unalias(o.Type()), short)
		}
		switch o.Type().Underlying().(type) {
		case *types.Struct:
			return "type " + name + " struct"
		case *types.Interface:
			return "type " + name + " interface"
		}
		return "type " + name + " " + types.TypeString(o.Type().Underlying(), short)
	case *types.Func:
		return "func " + name + strings.TrimPrefix(types.TypeString(o.Type(), short), "func")
	}
	kind := "var "
	if v, ok := o.(*types.Var); ok && v.IsField() {
		kind = "field "
	}
	return kind + name + " " + types.TypeString(o.Type(), short)
}

// The API of the stable packages is that of the golden file: a change of it is seen in a
// review. docs/api-stability.md says which changes are allowed.
func TestAPI_MatchesGoldenFile(t *testing.T) {
	var b strings.Builder
	for _, p := range loadPackages(t) {
		fmt.Fprintf(&b, "package %s\n", p.Path())
		exported(p, func(name string, o types.Object) { fmt.Fprintln(&b, "\t"+describe(p, name, o)) })
	}
	const file = "testdata/api.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), b.String()); diff != "" {
		t.Errorf("the API has changed; if it should, write docs/api-stability.md's changelog entry, and go test ./internal/test/api -update (-want +got):\n%s", diff)
	}
}

// shared are the inner types that a package has on purpose, by the package's name.
var shared = map[string][]string{
	"rolecall": {module + "/journal.Event", module + "/org.TaskStatus"},
}

// The API of a stable package has no type of the built-in tools, the gate or the journal, nor
// of what is below the API. Those in shared are needed.
func TestAPI_LeaksNoInnerType(t *testing.T) {
	found := map[string]bool{}
	for _, p := range loadPackages(t) {
		exported(p, func(name string, o types.Object) {
			for _, inner := range innerTypes(p, o.Type()) {
				found[inner] = true
				if !slices.Contains(shared[p.Name()], inner) {
					t.Errorf("%s.%s has the type %s", p.Name(), name, inner)
				}
			}
		})
	}
	for _, list := range shared {
		for _, inner := range list {
			if !found[inner] {
				t.Errorf("no API has the type %s: delete its entry of shared", inner)
			}
		}
	}
}

// innerTypes lists the named types in the signature of a type that belong to packages whose
// types are not for programs.
func innerTypes(p *types.Package, t types.Type) (list []string) {
	seen := map[types.Type]bool{}
	var visit func(types.Type)
	visit = func(t types.Type) {
		if t == nil || seen[t] {
			return
		}
		seen[t] = true
		switch t := t.(type) {
		case *types.Alias:
			visit(types.Unalias(t))
		case *types.Named:
			for arg := range t.TypeArgs().Types() {
				visit(arg)
			}
			if pkg := t.Obj().Pkg(); pkg != nil && pkg != p && isInner(pkg.Path()) {
				list = append(list, pkg.Path()+"."+t.Obj().Name())
			}
		case *types.Signature:
			visit(t.Params())
			visit(t.Results())
		case *types.Tuple:
			for v := range t.Variables() {
				visit(v.Type())
			}
		case *types.Map:
			visit(t.Key())
			visit(t.Elem())
		case interface{ Elem() types.Type }: // pointer, slice, array, channel
			visit(t.Elem())
		case *types.Struct:
			for f := range t.Fields() {
				if f.Exported() {
					visit(f.Type())
				}
			}
		}
	}
	visit(t)
	return list
}

func isInner(path string) bool {
	for _, dir := range []string{"/builtin", "/gate", "/journal", "/persist", "/runtime", "/org"} {
		if path == module+dir || strings.HasPrefix(path, module+dir+"/") {
			return true
		}
	}
	return false
}
