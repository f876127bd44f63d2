package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

const root = "../../.."

// Every mutation applies to the code as it is and names a test that exists.
func TestMutations_Apply(t *testing.T) {
	names := map[string]bool{}
	for _, m := range mutations {
		t.Run(m.name, func(t *testing.T) {
			text, err := m.mutated(root)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), m.file, text, 0); err != nil {
				t.Errorf("the mutated file is not Go: %v", err)
			}
			if pkg, test, _ := strings.Cut(m.tests, " "); !hasTest(t, pkg, test) {
				t.Errorf("package %s has no test %s", pkg, test)
			}
			if names[m.name] {
				t.Error("the name is not unique")
			}
			names[m.name] = true
		})
	}
}

// hasTest reports whether a package has a test.
func hasTest(t *testing.T, pkg, test string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	declared := regexp.MustCompile(`(?m)^func ` + regexp.QuoteMeta(test) + `\(t \*testing\.T\)`)
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if declared.Match(data) {
			return true
		}
	}
	return false
}

func TestJudge(t *testing.T) {
	for _, tt := range []struct {
		name, out string
		failed    bool
		caught    bool
		verdict   string
	}{
		{"a test fails", "--- FAIL: TestA (0.1s)\n    --- FAIL: TestA/part (0.1s)\n--- FAIL: TestB (0s)\nFAIL\n", true, true, "caught by TestA, TestB"},
		{"all tests pass", "ok  \tx\t0.1s\n", false, false, "SURVIVES"},
		{"no test runs", "ok  \tx\t0.1s [no tests to run]\n", false, false, "SURVIVES: there is no such test"},
		{"a test prints a panic", "--- FAIL: TestA (0.1s)\n    a_test.go:1: panic: boom\nFAIL\n", true, true, "caught by TestA"},
		{"a test panics", "--- FAIL: TestA (0.1s)\npanic: boom\n", true, false, "PANICS"},
		{"the code does not build", "x.go:1: undefined\nFAIL\tx [build failed]\n", true, false, "NOT TESTED"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			verdict, caught := judge(tt.out, tt.failed)
			if first, _, _ := strings.Cut(verdict, "\n"); first != tt.verdict || caught != tt.caught {
				t.Errorf("got %q, %v, want %q, %v", first, caught, tt.verdict, tt.caught)
			}
		})
	}
}

func TestMutated_RejectsAmbiguousText(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.go"), []byte("one two two"), 0o600); err != nil {
		t.Fatal(err)
	}
	for old, want := range map[string]string{"one": "three two two", "two": "", "four": ""} {
		got, err := mutation{file: "a.go", old: old, new: "three"}.mutated(dir)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%s: got %q, %v, want %q", old, got, err, want)
		}
	}
}
