package script_test

import (
	"sync"
	"testing"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/script"
)

// The end of a worker drops a run from the cache while a request takes it. The race detector
// reports shared fields.
func TestCache_DropsARunThatIsTaken(t *testing.T) {
	m := newModel(t, script.Config{}, `role("*", function* () { yield call("echo") })`)
	request := model.Request{Self: model.AgentInfo{ID: "agent", Role: "root"}}
	drop, resume := script.NewCachedRun(m, request)
	var both sync.WaitGroup
	both.Go(drop)
	both.Go(func() { resume(request) })
	both.Wait()
}
