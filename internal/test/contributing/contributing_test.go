package contributing

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/test/external"
)

// The changes that CONTRIBUTING.md describes are made in a copy of the tree, and the commands of
// the page succeed there.
func TestContributing_WalksWork(t *testing.T) {
	external.Skip(t, "git")
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]int{"Add a built-in tool": 3, "Add a model protocol": 3, "Add a route": 5} // written by hand
	for heading, want := range files {
		t.Run(heading, func(t *testing.T) {
			w := walk{t: t, root: root, copy: copyTree(t, root)}
			_, section, found := strings.Cut(string(page), "\n## "+heading+"\n")
			if !found {
				t.Fatal("the page has no such section")
			}
			section, _, _ = strings.Cut(section, "\n## ")
			if got := w.change(section); got != want {
				t.Errorf("the section changes %d files, want %d", got, want)
			}
			w.runCommands(section)
		})
	}
}

// walk makes the changes of a section in a copy of the tree.
type walk struct {
	t          *testing.T
	root, copy string
}

// A block of a section: a file whose first line names it, or a difference.
var (
	fileBlock = regexp.MustCompile("(?ms)^(`{3,})(?:go|md)\n(?:// |<!-- )(\\S+)(?: -->)?\n(.*?)^`{3,}$\n")
	diffBlock = regexp.MustCompile("(?ms)^```diff\n--- a/(\\S+)\n.*?^```$\n")
)

// change makes the changes of a section and returns how many files it has changed. The section
// has one block for each file.
func (w *walk) change(section string) (changed int) {
	for _, block := range fileBlock.FindAllStringSubmatch(section, -1) {
		name, content := block[2], block[3]
		if len(block[1]) > len("```") { // the block has blocks in it
			_, content, _ = strings.Cut(section, name+" -->\n")
			content, _, _ = strings.Cut(content, block[1])
		}
		path := filepath.Join(w.copy, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			w.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			w.t.Fatal(err)
		}
		changed++
	}
	for _, block := range diffBlock.FindAllStringSubmatch(section, -1) {
		patch := strings.TrimSuffix(strings.TrimPrefix(block[0], "```diff\n"), "```\n")
		apply := exec.Command("git", "apply", "-")
		apply.Dir, apply.Stdin = w.copy, strings.NewReader(patch)
		if out, err := apply.CombinedOutput(); err != nil {
			w.t.Fatalf("%s: %v\n%s\n%s", block[1], err, out, patch)
		}
		changed++
	}
	return changed
}

// runCommands runs the commands of a section, which are "go test ./PACKAGE FLAGS". The tests are
// compiled with the changed files in place of those of the tree, so that unchanged packages come
// from the cache, and run in the copy.
func (w *walk) runCommands(section string) {
	commands := 0
	for line := range strings.Lines(section) {
		command, ok := strings.CutPrefix(line, "    go test ./")
		if !ok {
			continue
		}
		commands++
		pkg, flags, _ := strings.Cut(strings.TrimSpace(command), " ")
		binary := filepath.Join(w.t.TempDir(), "walk.test")
		w.run(w.root, "go", "test", "-c", "-vet=off", "-overlay", w.overlay(), "-o", binary, "./"+pkg)
		args := strings.Fields(strings.ReplaceAll(flags, "'", ""))
		if i := slices.Index(args, "-run"); i >= 0 {
			args[i] = "-test.run"
		}
		out := w.run(filepath.Join(w.copy, pkg), binary, append(args, "-test.v")...)
		if !strings.Contains(out, "--- PASS") {
			w.t.Errorf("go test ./%s ran no test:\n%s", command, out)
		}
	}
	if commands == 0 {
		w.t.Error("the section has no command")
	}
}

// overlay writes the file that tells the compiler where the changed files are: those of the
// section, and those that its commands have written.
func (w *walk) overlay() string {
	w.t.Helper()
	replace := map[string]string{}
	err := fs.WalkDir(os.DirFS(w.copy), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		here, there := filepath.Join(w.copy, name), filepath.Join(w.root, name)
		now, err := os.ReadFile(here)
		if err != nil {
			return err
		}
		if before, err := os.ReadFile(there); err != nil || !bytes.Equal(before, now) {
			replace[there] = here
		}
		return nil
	})
	if err != nil {
		w.t.Fatal(err)
	}
	doc, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		w.t.Fatal(err)
	}
	path := filepath.Join(w.t.TempDir(), "overlay.json")
	if err := os.WriteFile(path, doc, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

func (w *walk) run(dir, name string, args ...string) string {
	w.t.Helper()
	c := exec.Command(name, args...)
	c.Dir = dir
	out, err := c.CombinedOutput()
	if err != nil {
		w.t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// copyTree copies the tree without hidden directories and installed packages.
func copyTree(t *testing.T, root string) string {
	t.Helper()
	dir := t.TempDir()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		name, _ := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "node_modules" || strings.HasPrefix(d.Name(), ".") && name != "."):
			return fs.SkipDir
		case d.IsDir():
			return os.MkdirAll(filepath.Join(dir, name), 0o700)
		case !d.Type().IsRegular():
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, name), content, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}
