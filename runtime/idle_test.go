package runtime_test

import (
	goruntime "runtime"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// An agent at rest costs memory, never a goroutine.
func TestAgentsAtRestHaveNoGoroutine(t *testing.T) {
	const agents = 1000
	free := make(chan struct{})
	h := open(t, "", busyRoot(free, waits))
	id := h.start(t, org.TaskSpec{})
	root := h.top(t, id)
	role, err := h.CreateRole(t.Context(), called(identity.ByAgent(root)), org.RoleSpec{Name: "worker", Use: use("artifact")})
	if err != nil {
		t.Fatal(err)
	}
	before := heap()
	s := org.Spawn{Role: role.ID, Brief: org.TaskBrief{Objective: "o", Constraints: org.Lines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}}
	var list []identity.AgentID
	for range agents {
		spawned, err := h.Spawn(t.Context(), called(identity.ByAgent(root)), s, encode("go"))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, spawned.ID)
	}
	answered := 0
	h.until(t, func(e journal.Event) bool {
		if _, ok := e.Body.(journal.ModelAnswered); ok {
			answered++
		}
		return answered == agents
	})
	for _, id := range list {
		for h.Busy(id) {
			goruntime.Gosched()
		}
	}
	if n := strings.Count(stacks(), "runtime.(*actor).run("); n != 1 {
		t.Errorf("%d goroutines of agents, want that of root alone", n)
	}
	t.Logf("%d bytes of heap per agent at rest that has answered once", (heap()-before)/agents)
	close(free)
	h.want(t, h.wait(t, id), `"free"`, "")
}

func heap() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.HeapAlloc
}

func stacks() string {
	buf := make([]byte, 16<<20)
	return string(buf[:goruntime.Stack(buf, true)])
}
