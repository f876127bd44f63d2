package main_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// The custom build has the tool of its module.
func TestOwnBuild_HasItsModule(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: this test links a program; make check runs it")
	}
	program := filepath.Join(t.TempDir(), "own-build")
	if out, err := exec.Command("go", "build", "-ldflags=-s -w", "-o", program, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, c := range []struct {
		args string
		want string
	}{
		{"check", "ok: 1 file, 1 role"},
		{"tool list --group greeter", "greet "},
		{"tool show greet", "module:greeter"},
		{"can --role host greet", "allowed"},
	} {
		args := append(strings.Fields(c.args), "-f", "organization.yaml", "--data", filepath.Join(t.TempDir(), "data"))
		out, err := exec.Command(program, args...).CombinedOutput()
		if err != nil || !strings.Contains(string(out), c.want) {
			t.Errorf("%s: %v\n%s\nwant %q", c.args, err, out, c.want)
		}
	}
}

// docs/modules.md contains the files of this example unchanged.
func TestOwnBuild_MatchesDocument(t *testing.T) {
	document, err := os.ReadFile("../../docs/modules.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"main.go", "greeter.go", "greeter_test.go", "organization.yaml"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(document, bytes.TrimSpace(text)) {
			t.Errorf("docs/modules.md does not contain %s unchanged", name)
		}
	}
}
