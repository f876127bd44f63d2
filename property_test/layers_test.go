package property_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/rolecall/rolecall/"

// layers is the table of docs/architecture.md: a package imports only from lower
// layers, or from packages of the same entry. An entry covers the packages below
// its folder that have no entry of their own; "." is the root package.
var layers = map[string]int{
	"internal/procgroup": 0,

	"errcode": 1, "identity": 1, "org/hosts": 1, "builtin/sandbox": 1,
	"internal/strictjson": 1, "internal/fair": 1, "internal/backoff": 1, "internal/redact": 1, "internal/textutil": 1,
	"internal/test": 1,

	"tool": 2, "parameter": 2, "internal/oidc": 2, "internal/js": 2,
	"toolgroups": 3, "model": 3,
	"org": 4, "journal": 4, "config": 4,
	"builtin": 5, "modules": 5, "persist": 5, "metrics": 5,
	"gate":    6,
	"runtime": 7,
	"gateway": 8,
	"cmd":     10,
	".":       11,

	"internal/app":              9, // composes all of them
	"internal/test/gatewaytest": 9, // calls the gateway
}

// source is one Go file that is no test.
type source struct {
	name string // within the module
	*ast.File
}

func (s source) pkg() string { return path.Dir(s.name) }

// imports lists the packages of the module that the file imports.
func (s source) imports() []string {
	var list []string
	for _, spec := range s.Imports {
		name, _ := strconv.Unquote(spec.Path.Value) // parsed, so it is quoted
		if name+"/" == module {
			list = append(list, ".")
		}
		if inner, ok := strings.CutPrefix(name, module); ok {
			list = append(list, inner)
		}
	}
	return list
}

// within says whether a package is dir or below it.
func within(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// entry returns the entry of layers that a package belongs to.
func entry(pkg string) (string, bool) {
	for dir := pkg; dir != "."; dir = path.Dir(dir) {
		if _, ok := layers[dir]; ok {
			return dir, true
		}
	}
	return ".", pkg == "."
}

// sources parses all Go files of the module but tests, test data and nested
// modules. All build constraints are ignored: every file counts.
func sources(t *testing.T) []source {
	t.Helper()
	var list []source
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".." && skipped(name):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		list = append(list, source{strings.TrimPrefix(filepath.ToSlash(name), "../"), file})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Fatalf("only %d files found: the test looks in the wrong place", len(list))
	}
	return list
}

// skipped says whether the go command, or this test, passes a directory by.
func skipped(dir string) bool {
	base := filepath.Base(dir)
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || base == "testdata" || base[0] == '.' || base[0] == '_'
}

// TestImportsGoDown: no import goes up, or sideways to another entry of the same
// layer.
func TestImportsGoDown(t *testing.T) {
	for _, s := range sources(t) {
		if within(s.pkg(), "examples") { // TestExamplesStandApart
			continue
		}
		for _, imported := range s.imports() {
			if fault := climbs(s.pkg(), imported); fault != "" {
				t.Errorf("%s: %s", s.name, fault)
			}
		}
		if _, ok := entry(s.pkg()); !ok {
			t.Errorf("%s: package %s has no layer: add it to docs/architecture.md and to layers in this test", s.name, s.pkg())
		}
	}
}

// climbs says what is wrong with an import, "" when nothing is.
func climbs(pkg, imported string) string {
	if within(imported, "examples") {
		return "" // TestExamplesStandApart
	}
	from, ok := entry(pkg)
	to, known := entry(imported)
	switch {
	case !ok: // said once for the package
		return ""
	case !known:
		return fmt.Sprintf("imports %s, which has no layer: add it to docs/architecture.md and to layers in this test", imported)
	case from != to && layers[from] == layers[to]:
		return fmt.Sprintf("imports %s sideways: both are in layer %d", imported, layers[to])
	case layers[from] < layers[to]:
		return fmt.Sprintf("imports %s of layer %d, which is above layer %d", imported, layers[to], layers[from])
	}
	return ""
}

func TestClimbsKnowsUpFromDown(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		ok            bool
	}{
		{"gate", "toolgroups", true},
		{"model/script", "model", true},
		{"persist/persisttest", "persist", true},
		{"modules/mcpclient", "modules", true},
		{"org", "journal", false},     // sideways
		{"builtin", "modules", false}, // sideways
		{"gate", "runtime", false},    // up
		{"tool", "toolgroups", false}, // up
		{"gate", "elsewhere", false},  // unknown
		{"org", "org/hosts", true},    // an entry of its own, below
		{"org/hosts", "org", false},   // up
		{".", "cmd", true},            // the root package is above all others
		{"cmd", ".", false},
		{"gate", "internal/js", true},  // two layers and more down
		{"tool", "internal/js", false}, // sideways
	} {
		if got := climbs(c.pkg, c.imported); (got == "") != c.ok {
			t.Errorf("%s imports %s: %q, want allowed %v", c.pkg, c.imported, got, c.ok)
		}
	}
}

// The package examples knows nothing of the module, and only cmd knows it;
// programs below it are imported by nobody else.
func TestExamplesStandApart(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			switch {
			case s.pkg() == "examples":
				t.Errorf("%s imports %s; examples imports nothing of the module", s.name, imported)
			case imported == "examples" && !within(s.pkg(), "cmd"):
				t.Errorf("%s imports examples; only cmd does", s.name)
			case imported != "examples" && within(imported, "examples") && !within(s.pkg(), "examples"):
				t.Errorf("%s imports %s, a part of an example", s.name, imported)
			}
		}
	}
}

// TestOnlyAppImportsPersist: internal/app opens the store and cmd looks after its
// file; nothing else names an implementation.
func TestOnlyAppImportsPersist(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			if within(imported, "persist") && !within(s.pkg(), "persist") && !within(s.pkg(), "cmd") && s.pkg() != "internal/app" {
				t.Errorf("%s imports %s; only internal/app and cmd may", s.name, imported)
			}
		}
	}
}

// TestClientDoesNotImportServer: programs that only call a gateway do not contain
// the runtime behind it.
func TestClientDoesNotImportServer(t *testing.T) {
	imports := map[string][]string{}
	for _, s := range sources(t) {
		imports[s.pkg()] = append(imports[s.pkg()], s.imports()...)
	}
	seen := map[string]bool{}
	var visit func(pkg string)
	visit = func(pkg string) {
		if seen[pkg] {
			return
		}
		seen[pkg] = true
		for _, imported := range imports[pkg] {
			visit(imported)
		}
	}
	visit("gateway/client")
	for _, server := range []string{"gateway", "gateway/auth", "gateway/mcpserver", "gateway/toolboxapi", "runtime", "gate", "builtin", "persist"} {
		if seen[server] {
			t.Errorf("gateway/client imports %s, directly or not", server)
		}
	}
}

// TestNoInit: nothing happens because a package is imported.
func TestNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init function", s.name)
			}
		}
	}
}

// TestToolsAreCalledByTheGateAlone: a tool is reachable through the gate only; no other package calls
// one. Without types this is approximated from above: outside gate and tool no
// file contains a call x.Call(a, b), of any x, with exactly the two arguments
// of tool.Tool, and no method expression tool.Tool.Call. (The virtual
// machines' Call takes one argument or three, the gate's four.) The one
// exception is a method that is itself tool.Tool's Call: a Tool around a Tool
// is called by the gate, so what it holds is too. What this does not see is a
// method value, f := x.Call, called elsewhere.
func TestToolsAreCalledByTheGateAlone(t *testing.T) {
	for _, s := range sources(t) {
		if within(s.pkg(), "gate") || within(s.pkg(), "tool") {
			continue
		}
		for _, d := range s.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && isToolCall(fn) {
				continue
			}
			ast.Inspect(d, func(n ast.Node) bool {
				if callsTool(n) {
					t.Errorf("%s calls a method named Call with two arguments; tools are called by the gate alone", s.name)
				}
				return true
			})
		}
	}
}

// isToolCall says whether a method is Call(context.Context, tool.Call) (tool.Result, error).
func isToolCall(fn *ast.FuncDecl) bool {
	var takes []string
	for _, field := range fn.Type.Params.List {
		takes = append(takes, typeName(field.Type))
	}
	return fn.Recv != nil && fn.Name.Name == "Call" && slices.Equal(takes, []string{"context.Context", "tool.Call"})
}

func typeName(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return typeName(s.X) + "." + s.Sel.Name
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return "?"
}

func callsTool(n ast.Node) bool {
	if e, ok := n.(*ast.SelectorExpr); ok && typeName(e) == "tool.Tool.Call" {
		return true
	}
	c, ok := n.(*ast.CallExpr)
	if !ok || len(c.Args) != 2 {
		return false
	}
	method, ok := c.Fun.(*ast.SelectorExpr)
	return ok && method.Sel.Name == "Call"
}

// Every package says what it owns.
func TestEveryPackageHasAComment(t *testing.T) {
	said := map[string]bool{}
	for _, s := range sources(t) {
		text := s.Doc.Text()
		said[s.pkg()] = said[s.pkg()] || text != "" && (s.Name.Name == "main" || strings.HasPrefix(text, "Package "+s.Name.Name+" "))
	}
	for _, pkg := range slices.Sorted(maps.Keys(said)) {
		if !said[pkg] {
			t.Errorf("package %s has no comment that begins with its name", pkg)
		}
	}
}
