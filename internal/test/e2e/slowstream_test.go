package e2e_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	goruntime "runtime"
	"sync/atomic"
	"testing"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/retry"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxMemory is the memory limit for 1,000 agents that wait for slow streams, including
// the server, which runs in this process too.
const maxMemory = 300 << 20

// A thousand agents wait on slow streams at once; then all of them end.
func TestRuntime_ThousandAgentsWaitOnSlowStreams(t *testing.T) {
	const agents = 1000
	var waiting atomic.Int64
	all, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		writeChunk(w, `{"choices":[{"index":0,"delta":{"content":"slow"}}]}`)
		if waiting.Add(1) == agents {
			close(all)
		}
		<-release
		writeChunk(w, `{"choices":[{"index":0,"delta":{"content":"ly"},"finish_reason":"stop"}],"usage":{"prompt_tokens":9,"completion_tokens":2}}`)
		writeChunk(w, `[DONE]`)
	}))
	defer server.Close()
	slow := retry.New(openai.New(provider.Config{Name: "slow", Model: "slow", BaseURL: server.URL, Stream: true}), retry.Config{Name: "slow", Concurrency: agents})
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{Store: memory.New(), Groups: groups, Model: func(string) (model.Model, error) { return slow, nil }})
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	ids := startTasks(t, rt, agents)
	<-all
	if got := memoryInUse(); got > maxMemory && !short.RaceDetector {
		t.Errorf("%d waiting agents use %d MiB, want at most %d", agents, got>>20, maxMemory>>20)
	} else {
		t.Logf("%d waiting agents, their server and this test use %d MiB and %d goroutines", agents, got>>20, goruntime.NumGoroutine())
	}
	close(release)
	for _, id := range ids {
		if task, err := rt.WaitTask(t.Context(), id); err != nil || string(task.Result) != `"slowly"` {
			t.Fatalf("task %s: %s, %v", id, task.Result, err)
		}
	}
}

func startTasks(t *testing.T, rt *runtime.Runtime, n int) []identity.TaskID {
	t.Helper()
	ids := make([]identity.TaskID, n)
	for i := range ids {
		id, err := rt.StartTask(context.Background(), org.TaskSpec{Text: "wait", Caller: identity.ByOperator("test")})
		if err != nil {
			t.Fatal(err)
		}
		ids[i] = id
	}
	return ids
}

// memoryInUse returns the memory that the Go runtime has obtained from the system and
// not returned.
func memoryInUse() uint64 {
	goruntime.GC()
	var m goruntime.MemStats
	goruntime.ReadMemStats(&m)
	return m.Sys - m.HeapReleased
}
