package config_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// write creates files in a new working directory.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range files {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// paths returns the paths of files.
func paths(files []yamldoc.File) []string {
	var names []string
	for _, f := range files {
		names = append(names, f.Path)
	}
	return names
}

func TestLoadFiles_Directory(t *testing.T) {
	write(t, map[string]string{
		"conf/b.yml":          "{kind: role, name: b, model: m}",
		"conf/a.yaml":         "{kind: model, name: m, type: script, file: ../scripts/m.js}",
		"conf/.hidden.yaml":   "not: read",
		"conf/notes.txt":      "not: read",
		"conf/sub.yaml/x.yml": "not: read",
		"scripts/m.js":        "role('*', function* () {})",
		"more.conf":           "{kind: role, name: c}",
	})
	cfg, err := config.LoadFiles([]string{"conf", "./conf/b.yml", "more.conf"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"conf/a.yaml", "conf/b.yml", "more.conf", "scripts/m.js"}
	if diff := cmp.Diff(want, paths(cfg.Files)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
	if got := string(cfg.Models[0].Source); got != "role('*', function* () {})" {
		t.Errorf("source = %q", got)
	}
	if err := os.RemoveAll("scripteds"); err != nil {
		t.Fatal(err)
	}
	again, err := config.ReadFiles(cfg.Files, nil)
	if diff := cmp.Diff(cfg, again, cmp.AllowUnexported(config.Groups{})); err != nil || diff != "" {
		t.Errorf("Read(cfg.Files) differs, error %v:\n%s", err, diff)
	}
}

// TestLoadFiles_ReportsAllErrors checks that unreadable files do not hide the errors of
// others.
func TestLoadFiles_ReportsAllErrors(t *testing.T) {
	write(t, map[string]string{
		"a.yaml":    "{kind: role, name: a, bogus: 1, model: elsewhere}",
		"dir/x.txt": "",
		"m.yaml":    "{kind: model, name: m, type: script, file: dir}\n---\n{kind: model, name: n, type: script, file: gone.js}",
	})
	_, err := config.LoadFiles([]string{"a.yaml", "missing.yaml", "dir", "", "m.yaml"}, nil)
	want := []string{
		": no such file or directory",
		"a.yaml:1:23: bogus: unknown field (known are agent, approval, bind, description, grant, hosts, kind, limits, model, name, pattern, prompt, result, server, states, tasks, toolGated, toolGroups, workspace)",
		"dir: the directory has no *.yaml or *.yml file",
		`m.yaml:1:44: file: "dir": is not a regular file (a file is named relative to its document)`,
		`m.yaml:3:44: file: "gone.js": no such file or directory (a file is named relative to its document)`,
		"missing.yaml: no such file or directory",
	}
	if diff := cmp.Diff(want, firstLines(err)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// firstLines returns the texts of the errors without their excerpts.
func firstLines(err error) []string {
	var lines []string
	list, _ := errors.AsType[yamldoc.Errors](err)
	for _, e := range list {
		line, _, _ := strings.Cut(e.Error(), "\n")
		lines = append(lines, line)
	}
	return lines
}

func TestLoadFiles_NoPaths(t *testing.T) {
	cfg, err := config.LoadFiles(nil, nil)
	if diff := cmp.Diff(new(config.Config), cfg, cmp.AllowUnexported(config.Groups{})); err != nil || diff != "" {
		t.Errorf("Load(nil) error %v:\n%s", err, diff)
	}
}

// TestLoadFiles_RejectsEndlessFile checks that LoadFiles stops reading at the size limit.
func TestLoadFiles_RejectsEndlessFile(t *testing.T) {
	_, err := config.LoadFiles([]string{"/dev/zero"}, nil)
	if diff := cmp.Diff([]string{"/dev/zero: has more than 10 MiB"}, firstLines(err)); diff != "" {
		t.Error(diff)
	}
}
