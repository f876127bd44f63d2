package webpage_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rolecall/rolecall/internal/test/external"
)

// The scripts have their types in comments, which the compiler of TypeScript checks. It reads
// the declarations of types in place of the files of others, which have none.
func TestScripts_TypesAreRight(t *testing.T) {
	external.Skip(t, "the compiler of TypeScript")
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("types")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(dir, "app"), os.DirFS("../../../gateway/ui/app")); err != nil {
		t.Fatal(err)
	}
	compiler, err := filepath.Abs("../e2e/node_modules/typescript/bin/tsc")
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), "node", compiler, "--project", dir).CombinedOutput()
	if err != nil {
		t.Errorf("tsc (make deps installs it): %v\n%s", err, out)
	}
}
