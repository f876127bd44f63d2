package property_test

import (
	"go/doc"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Each package that other programs can import has an example whose output is checked. Packages of
// tests, which take a *testing.T, cannot have one.
func TestPackages_HaveExamples(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range sources(t) {
		pkg := s.pkg()
		if seen[pkg] || s.Name.Name == "main" || slices.ContainsFunc([]string{"internal", "cmd", "examples"}, func(dir string) bool { return isInside(pkg, dir) }) {
			continue
		}
		seen[pkg] = true
		if strings.HasSuffix(pkg, "/brokertest") {
			continue
		}
		if !hasExample(t, filepath.Join("..", pkg)) {
			t.Errorf("package %s has no example with output: write one into %s/example_test.go", pkg, pkg)
		}
	}
	if len(seen) < 30 {
		t.Errorf("only %d packages found", len(seen))
	}
}

// hasExample reports whether the tests of a directory have an example with output.
func hasExample(t *testing.T, dir string) bool {
	t.Helper()
	tests, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(tests, func(name string) bool {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Error(err)
			return false
		}
		return slices.ContainsFunc(doc.Examples(file), func(e *doc.Example) bool { return e.Output != "" })
	})
}
