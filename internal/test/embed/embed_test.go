// Package embed_test checks what a program that embeds rolecall depends on.
package embed_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// maxModules is how many modules a program with store, runtime, built-in tools and
// one model may link.
const maxModules = 22

func TestProgram_LinksFewModules(t *testing.T) {
	program := filepath.Join(t.TempDir(), "program")
	run(t, "go", "build", "-ldflags=-s -w", "-o", program, "./testdata/program")
	var modules []string
	for line := range strings.Lines(run(t, "go", "version", "-m", program)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "dep" {
			modules = append(modules, fields[1])
			if fields[1] == "github.com/leanovate/gopter" {
				t.Error("the program links gopter, which only tests need")
			}
		}
	}
	t.Logf("%d modules", len(modules))
	if len(modules) == 0 || len(modules) > maxModules {
		t.Errorf("the program links %d modules, want at most %d:\n%s", len(modules), maxModules, strings.Join(modules, "\n"))
	}
	if out := run(t, program, filepath.Join(t.TempDir(), "data")); out != "" {
		t.Errorf("the program printed %q", out)
	}
}

func run(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
	return string(out)
}
