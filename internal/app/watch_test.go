package app

import (
	"os"
	"path/filepath"
	"testing"
)

// Of a directory a follower looks at what Load reads: not at what editors leave
// beside the documents.
func TestAFollowerSeesDocumentsAlone(t *testing.T) {
	dir := t.TempDir()
	write := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(reader), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("org.yaml")
	w := openWorkshop(t)
	w.options.Files = []string{dir}
	f := w.newConfigWatcher()
	for f.stable() { // the first look
	}
	f.stable()
	for _, name := range []string{".#org.yaml", ".org.yml", "org.yaml~", "notes.txt"} {
		write(name)
		if first, second := f.stable(), f.stable(); first || second {
			t.Errorf("%s counts as a change", name)
		}
	}
	write("more.yml")
	if first, second := f.stable(), f.stable(); first || !second {
		t.Errorf("a document that is new: %v, %v, want false, true", first, second)
	}
}
