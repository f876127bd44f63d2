package e2e_test

import (
	"os"
	"path/filepath"
	"testing"
)

// The suite's servers test our client in both protocol revisions. The client is this
// test program in another process.
func TestConformance_Client(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, revision := range []string{stateful, stateless} {
		t.Run(revision, func(t *testing.T) {
			runConformance(t, "client", revision, []string{clientEnv + "=" + filepath.Join(t.TempDir(), "lock")}, "--command", self, "--timeout", "80000")
		})
	}
}
