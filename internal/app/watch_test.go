package app

import (
	"os"
	"path/filepath"
	"testing"
)

// Of a directory the watcher looks at documents only, not at the temporary files of
// editors.
func TestConfigWatcher_IgnoresOtherFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(readerRole), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("org.yaml")
	f := newFixture(t)
	f.options.Files = []string{dir}
	watcher := f.newConfigWatcher()
	for watcher.changeSettled() { // the first look
	}
	watcher.changeSettled()
	for _, name := range []string{".#org.yaml", ".org.yml", "org.yaml~", "notes.txt"} {
		write(name)
		if first, second := watcher.changeSettled(), watcher.changeSettled(); first || second {
			t.Errorf("%s was taken for a change", name)
		}
	}
	write("more.yml")
	if first, second := watcher.changeSettled(), watcher.changeSettled(); first || !second {
		t.Errorf("new document: %v, %v, want false, true", first, second)
	}
}
