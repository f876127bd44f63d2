package grouptest_test

import (
	"runtime"
	"testing"
	"weak"

	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/toolgroups"
)

func TestClaimOwner_OnceForEachRegistry(t *testing.T) {
	m := toolgroups.NewManager()
	first, err := grouptest.ClaimOwner(m, "module:a")
	if err != nil {
		t.Fatal(err)
	}
	runtime.GC()
	if again, err := grouptest.ClaimOwner(m, "module:a"); again != first || err != nil {
		t.Errorf("got %v, %v; want the first owner", again, err)
	}
	if other, err := grouptest.ClaimOwner(toolgroups.NewManager(), "module:a"); other == first || err != nil {
		t.Errorf("another registry has %v, %v; want an owner of its own", other, err)
	}
}

// The registries of thousands of cases would otherwise stay in memory, which the
// collector then scans again and again.
func TestClaimOwner_KeepsNoRegistry(t *testing.T) {
	registry := claimedRegistry(t)
	runtime.GC()
	if registry.Value() != nil {
		t.Error("a registry that no test uses stays in memory")
	}
}

// claimedRegistry returns a registry with an owner, to which nothing else refers.
func claimedRegistry(t *testing.T) weak.Pointer[toolgroups.Manager] {
	t.Helper()
	m := toolgroups.NewManager()
	if _, err := grouptest.ClaimOwner(m, "module:a"); err != nil {
		t.Fatal(err)
	}
	return weak.Make(m)
}
