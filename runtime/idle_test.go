package runtime_test

import (
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// An idle agent needs memory but no goroutine.
func TestRuntime_IdleAgentsHaveNoGoroutine(t *testing.T) {
	const agents = 999 // with root as many as a task may have
	free := make(chan struct{})
	fx := openFixture(t, "", blockingRoot(free, alwaysWait))
	id := fx.start(t, org.TaskSpec{})
	root := fx.topAgent(t, id)
	role, err := fx.CreateRole(t.Context(), newCall(identity.ByAgent(root)), org.RoleSpec{Name: "worker", Use: groupSet("artifact")})
	if err != nil {
		t.Fatal(err)
	}
	before := heapBytes()
	s := org.SpawnSpec{Role: role.ID, Brief: org.TaskBrief{Objective: "o", Constraints: org.TextLines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}}
	var list []identity.AgentID
	for range agents {
		spawned, err := fx.SpawnAgent(t.Context(), newCall(identity.ByAgent(root)), s, mustJSON("go"))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, spawned.ID)
	}
	answered := 0
	fx.waitEvent(t, func(e journal.Event) bool {
		if _, ok := e.Body.(journal.ModelAnswered); ok {
			answered++
		}
		return answered == agents
	})
	for _, id := range list {
		for fx.IsBusy(id) {
			goruntime.Gosched()
		}
	}
	if n := strings.Count(allStacks(), "runtime.(*actor).run("); n != 1 {
		t.Errorf("%d goroutines of agents, want that of root alone", n)
	}
	t.Logf("%d bytes of heap per idle agent that has answered once", (heapBytes()-before)/agents)
	close(free)
	fx.wantResult(t, fx.wait(t, id), `"free"`, "")
}

func heapBytes() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

func allStacks() string {
	buf := make([]byte, 16<<20)
	return string(buf[:goruntime.Stack(buf, true)])
}
