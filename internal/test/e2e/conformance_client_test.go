package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
)

// Our client, as the suite's servers see it, on both kinds of wire. It is this
// test program, started again.
func TestConformanceOfTheClient(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range []string{stateful, stateless} {
		t.Run(revision, func(t *testing.T) {
			conform(t, "client", revision, []string{asClient + "=" + filepath.Join(t.TempDir(), "turns")}, "--command", self, "--timeout", "80000")
		})
	}
}
