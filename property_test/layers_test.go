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
	"sync"
	"testing"
)

// module is the module path with a slash.
const module = "github.com/rolecall/rolecall/"

// layers is the table of docs/architecture.md. A package imports only from
// lower layers or from packages of the same entry. An entry covers the packages
// below its folder without an entry of their own.
var layers = map[string]int{
	"internal/procgroup": 0, "internal/textutil": 0, "internal/openfiles": 0, "internal/neterror": 0, "internal/picture": 0,
	"internal/lineinput": 0,

	"errcode": 1, "identity": 1, "org/hosts": 1, "builtin/sandbox": 1,
	"internal/strictjson": 1, "internal/fair": 1, "internal/backoff": 1, "internal/clock": 1, "internal/hours": 1, "internal/redact": 1,
	"internal/cron": 1,
	"internal/test": 1,

	"internal/argschema": 2, "modules/toolservice/protocol": 2, "internal/keystore": 2, "internal/yamldoc": 2, "internal/failurelog": 2,
	"toolgroups/bounds": 2,

	"tool": 3, "toolgroups/approval": 3, "modules/toolbox/parameter": 3, "internal/oidc": 3, "internal/js": 3,
	"toolgroups": 4, "model": 4, "internal/payload": 4,
	"org": 5, "journal": 5, "modules/toolbox/toolboxfile": 5,
	"builtin": 6, "modules": 6, "persist": 6, "metrics": 6, "internal/config": 6,
	"gate":    7,
	"runtime": 8,
	"gateway": 10,
	".":       10, // the package at the root, for programs that embed rolecall
	"cmd":     12,

	"configured":   12, // for programs that embed rolecall with configuration files
	"rolecalltest": 12, // for tests of modules and models

	"internal/embedding":        9,  // what the root package and configured share
	"internal/app":              11, // composes all of them
	"internal/test/configtest":  3,  // checks errors of configurations
	"internal/test/grouptest":   5,  // registers tool groups
	"internal/test/gatewaytest": 11, // calls the gateway
	"internal/test/e2e":         13, // a program with tools for tests
}

// source is a Go file that is not a test.
type source struct {
	name string // path relative to the module
	*ast.File
}

func (s source) pkg() string { return path.Dir(s.name) }

// imports returns the packages of the module that the file imports.
func (s source) imports() []string {
	var list []string
	for _, spec := range s.Imports {
		name, _ := strconv.Unquote(spec.Path.Value) // parsed, so it is quoted
		if inner, ok := strings.CutPrefix(name, module); ok {
			list = append(list, inner)
		} else if name+"/" == module {
			list = append(list, ".")
		}
	}
	return list
}

// isInside reports whether a package is dir or below it.
func isInside(pkg, dir string) bool { return pkg == dir || strings.HasPrefix(pkg, dir+"/") }

// layerEntry returns the entry of layers that a package belongs to.
func layerEntry(pkg string) (string, bool) {
	if pkg == "." {
		return pkg, true
	}
	for dir := pkg; dir != "."; dir = path.Dir(dir) {
		if _, ok := layers[dir]; ok {
			return dir, true
		}
	}
	return "", false
}

// sources returns all Go files of the module except tests, test data and nested modules. It
// ignores build constraints, so every file counts. The tests share the files.
func sources(t *testing.T) []source {
	t.Helper()
	list, err := parseSources()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 50 {
		t.Fatalf("only %d files found: the test looks in the wrong place", len(list))
	}
	return list
}

// parseSources parses the files once.
var parseSources = sync.OnceValues(func() ([]source, error) {
	var list []source
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".." && isSkipped(name):
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
	return list, err
})

// isSkipped reports whether the go command or this test ignores a directory.
func isSkipped(dir string) bool {
	base := filepath.Base(dir)
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || base == "testdata" || base[0] == '.' || base[0] == '_'
}

// Packages import only from lower layers, and within a layer only from their
// own entry.
func TestLayers_ImportsGoDown(t *testing.T) {
	for _, s := range sources(t) {
		if isInside(s.pkg(), "examples") { // checked by TestLayers_ExamplesAreSeparate
			continue
		}
		for _, imported := range s.imports() {
			if problem := checkImport(s.pkg(), imported); problem != "" {
				t.Errorf("%s: %s", s.name, problem)
			}
		}
		if _, ok := layerEntry(s.pkg()); !ok {
			t.Errorf("%s: package %s has no layer: add it to docs/architecture.md and to layers in this test", s.name, s.pkg())
		}
	}
}

// checkImport describes what is wrong with an import; "" means that it is
// allowed.
func checkImport(pkg, imported string) string {
	if isInside(imported, "examples") {
		return "" // checked by TestLayers_ExamplesAreSeparate
	}
	from, ok := layerEntry(pkg)
	to, known := layerEntry(imported)
	switch {
	case !ok: // reported once for the package
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

func TestCheckImport(t *testing.T) {
	for _, c := range []struct {
		pkg, imported string
		ok            bool
	}{
		{"gate", "toolgroups", true},
		{"model/script", "model", true},
		{"persist/persisttest", "persist", true},
		{"modules/mcpclient", "modules", true},
		{"org", "journal", false},      // sideways
		{"builtin", "modules", false},  // sideways
		{"gate", "runtime", false},     // up
		{"tool", "toolgroups", false},  // up
		{"gate", "elsewhere", false},   // unknown
		{"org", "org/hosts", true},     // separate entry in a lower layer
		{"org/hosts", "org", false},    // up
		{"cmd", ".", true},             // the root package is an entry
		{"runtime", ".", false},        // up
		{".", "gateway", false},        // sideways
		{"gate", "internal/js", true},  // several layers down
		{"tool", "internal/js", false}, // sideways
	} {
		if got := checkImport(c.pkg, c.imported); (got == "") != c.ok {
			t.Errorf("%s imports %s: %q, want allowed %v", c.pkg, c.imported, got, c.ok)
		}
	}
}

// The package examples imports nothing of the module, and only cmd imports it.
// Programs below it are not imported from elsewhere.
func TestLayers_ExamplesAreSeparate(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			switch {
			case s.pkg() == "examples":
				t.Errorf("%s imports %s; examples imports nothing of the module", s.name, imported)
			case imported == "examples" && !isInside(s.pkg(), "cmd"):
				t.Errorf("%s imports examples; only cmd does", s.name)
			case imported != "examples" && isInside(imported, "examples") && !isInside(s.pkg(), "examples"):
				t.Errorf("%s imports %s, which is part of an example", s.name, imported)
			}
		}
	}
}

// internal/app and the root package open the store, and cmd looks after its file. No other
// package names an implementation; tests may.
func TestLayers_OnlyAppImportsPersist(t *testing.T) {
	for _, s := range sources(t) {
		for _, imported := range s.imports() {
			if isInside(imported, "persist") && !isInside(s.pkg(), "persist") && !isInside(s.pkg(), "cmd") && s.pkg() != "internal/app" && s.pkg() != "." {
				t.Errorf("%s imports %s; only internal/app, cmd and the root package may", s.name, imported)
			}
		}
	}
}

// Programs that only call a gateway do not contain the runtime behind it.
func TestLayers_ClientDoesNotImportServer(t *testing.T) {
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

// Importing a package has no effect: there are no init functions.
func TestSources_HaveNoInit(t *testing.T) {
	for _, s := range sources(t) {
		for _, d := range s.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok && fn.Recv == nil && fn.Name.Name == "init" {
				t.Errorf("%s has an init function", s.name)
			}
		}
	}
}

// Tools are called only by package gate. Without type information the test is
// an approximation that may reject too much. Outside gate and tool no file
// contains a call x.Call(a, b) with exactly the two arguments of tool.Tool.
// Neither does it contain a method expression tool.Tool.Call. (Call of the
// JavaScript engines has one or three arguments. Call of the gate has four.)
// Methods that implement tool.Tool.Call are exempt, since the gate calls them
// and thereby the tool they wrap. The test does not find method values, f :=
// x.Call, that are called elsewhere.
func TestSources_OnlyGateCallsTools(t *testing.T) {
	for _, s := range sources(t) {
		if isInside(s.pkg(), "gate") || isInside(s.pkg(), "tool") {
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

// isToolCall reports whether a method is Call(context.Context, tool.Call)
// (tool.Result, error).
func isToolCall(fn *ast.FuncDecl) bool {
	var params []string
	for _, field := range fn.Type.Params.List {
		params = append(params, typeName(field.Type))
	}
	return fn.Recv != nil && fn.Name.Name == "Call" && slices.Equal(params, []string{"context.Context", "tool.Call"})
}

// typeName returns a possibly qualified identifier as text, "?" for other
// expressions.
func typeName(e ast.Expr) string {
	if s, ok := e.(*ast.SelectorExpr); ok {
		return typeName(s.X) + "." + s.Sel.Name
	}
	if id, ok := e.(*ast.Ident); ok {
		return id.Name
	}
	return "?"
}

// callsTool reports whether a node may be a call of a tool.
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

// Every package has a package comment.
func TestSources_PackagesHaveComments(t *testing.T) {
	documented := map[string]bool{}
	for _, s := range sources(t) {
		text := s.Doc.Text()
		documented[s.pkg()] = documented[s.pkg()] || text != "" && (s.Name.Name == "main" || strings.HasPrefix(text, "Package "+s.Name.Name+" "))
	}
	for _, pkg := range slices.Sorted(maps.Keys(documented)) {
		if !documented[pkg] {
			t.Errorf("package %s has no comment that begins with its name", pkg)
		}
	}
}
