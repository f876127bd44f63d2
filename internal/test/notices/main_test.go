package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// root is the directory of the main module.
const root = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// requirementsOf has the modules of the go.mod files that were read, by file.
var requirementsOf = map[string]modules{}

// required returns a copy of the modules that a go.mod file requires. It reads each file once.
func required(t *testing.T, file string) modules {
	t.Helper()
	list, ok := requirementsOf[file]
	if !ok {
		var err error
		if list, err = requirements(filepath.Join(root, file)); err != nil {
			t.Fatal(err)
		}
		requirementsOf[file] = list
	}
	return slices.Clone(list)
}

// The notices have a row for each module of go.mod and no other, and the texts of all
// modules that are on this disk.
func TestNotices_MatchGoMod(t *testing.T) {
	list, text := required(t, "go.mod"), read(t, fileName)
	libraries, err := pageLibraries(root)
	if err != nil {
		t.Fatal(err)
	}
	var want []string
	for _, m := range append(slices.Clone(list), libraries...) {
		want = append(want, m.row())
	}
	var got []string
	table, _, _ := strings.Cut(strings.SplitN(text, "|---|---|---|\n", 2)[1], "\n\n")
	for row := range strings.Lines(table + "\n") {
		got = append(got, row[:strings.LastIndex(row[:len(row)-2], "| ")+2])
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s is not that of go.mod; run make notices\ngot  %q\nwant %q", fileName, got, want)
	}
	t.Chdir(root)
	if err := list.locate(false); err != nil {
		t.Fatal(err)
	}
	found := 0
	if libraries, err = pageLibraries("."); err != nil {
		t.Fatal(err)
	}
	for _, m := range append(list, libraries...) {
		if m.Dir == "" || m.Path == "std" {
			continue // no test of this machine needed it; distributions keep the licence of Go elsewhere
		}
		found++
		texts, err := m.licences()
		if err != nil || len(texts) == 0 {
			t.Errorf("%s: %d licences, %v", m.Path, len(texts), err)
		}
		for _, l := range texts {
			if !strings.Contains(text, "\n"+fence+"\n"+l.text+"\n"+fence+"\n") || strings.Contains(l.text, fence) {
				t.Errorf("%s lacks %s of %s; run make notices", fileName, l.name, m.Path)
			}
		}
	}
	if found < 30 {
		t.Errorf("%d modules are on disk; the tests need more", found)
	}
}

// documentedModules are the go.mod files whose direct dependencies are documented.
var documentedModules = []string{
	"go.mod", "internal/release/go.mod", "internal/test/crashtest/go.mod", "internal/test/openapi/go.mod", "internal/test/prompts/go.mod",
	"internal/test/scripts/go.mod", "internal/tools/go.mod", "modules/toolservice/kafka/go.mod", "modules/toolservice/pulsar/go.mod",
}

// Each direct dependency is named with its purpose and licence.
func TestDependencies_AreDocumented(t *testing.T) {
	text := read(t, "docs/dependencies.md")
	for _, file := range documentedModules {
		for _, m := range required(t, file) {
			if !m.Indirect && !strings.HasPrefix(m.Path, "github.com/rolecall/") && !strings.Contains(text, m.Path) {
				t.Errorf("docs/dependencies.md does not name %s, which %s requires", m.Path, file)
			}
		}
	}
	for line := range strings.Lines(text) {
		name, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if ok && strings.Contains(name, ".") && !strings.Contains(name, "`") {
			checkRequired(t, name)
		}
	}
}

// checkRequired reports the modules of a row that no go.mod requires directly.
func checkRequired(t *testing.T, row string) {
	t.Helper()
	var all []module
	for _, file := range documentedModules {
		all = append(all, required(t, file)...)
	}
	for name := range strings.SplitSeq(row, ", ") {
		known := func(m module) bool { return !m.Indirect && (m.Path == name || strings.HasPrefix(name, m.Path+"/")) }
		if !slices.ContainsFunc(all, known) {
			t.Errorf("docs/dependencies.md names %s, which no go.mod requires directly", name)
		}
	}
}
