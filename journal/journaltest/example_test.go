package journaltest_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/journaltest"
	"github.com/rolecall/rolecall/journal/memory"
)

// A test of a store collects what it has committed. Here go test does not provide t; the whole
// suite is journaltest.Run.
func ExampleCollect() {
	t, s, ctx := new(testing.T), memory.New(), context.Background()
	if _, err := s.Commit(ctx, &journal.Batch{Stream: "ann", Events: []journal.Event{{Agent: "ann", Body: journal.StateTransition{To: "draft"}}}}); err != nil {
		fmt.Println(err)
		return
	}
	for _, e := range journaltest.Collect(t, s.Read(ctx, "ann", 0)) {
		fmt.Println(e.Seq, e.Body.EventType())
	}
	// Output: 1 state_transition
}
