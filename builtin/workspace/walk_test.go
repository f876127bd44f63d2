package workspace

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestWalker_BoundsNames(t *testing.T) {
	dir := t.TempDir()
	k := []string{"a", "b/c", "b/d", "e"}
	for _, name := range k {
		putFile(t, filepath.Join(dir, name), "")
	}
	for left, want := range map[int64]string{0: "", 2: "", 3: "a b e", 4: "a b", 5: "a b b/c b/d e", 6: "a b b/c b/d e"} {
		root, err := os.OpenRoot(dir)
		if err != nil {
			t.Fatal(err)
		}
		var seen []string
		w := walker{ctx: t.Context(), root: root, budget: left, visit: func(name string, _ fs.FileInfo) error {
			seen = append(seen, name)
			return nil
		}}
		if err := w.walk("."); err != nil {
			t.Error(err)
		}
		root.Close()
		if got := strings.Join(seen, " "); w.truncated != (left < 5) || len(seen) > int(left) || (left == 3 || left >= 5) && got != want {
			t.Errorf("with a budget of %d it visited %q, truncated %v, want %q", left, got, w.truncated, want)
		}
	}
}
