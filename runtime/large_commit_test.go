package runtime_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
)

// The store writes one commit after the other. The large results of one caller must not
// fill its queue, or everybody else waits for them.
func TestInvoke_CallersShareLargeCommits(t *testing.T) {
	waiting, release := make(chan struct{}, 100), make(chan struct{})
	wrap := func(s journal.Store) journal.Store {
		return hookedStore{Store: s, before: func(b *journal.Batch) {
			for _, r := range b.Put {
				if len(r.Value) > 1<<20 {
					waiting <- struct{}{}
					<-release
				}
			}
		}}
	}
	large := newTool(t, "large", tool.Options{Effect: tool.ReadOnly}, func(context.Context, obj) (any, error) { return strings.Repeat("x", 1<<20), nil })
	small := newTool(t, "small", tool.Options{}, func(context.Context, obj) (any, error) { return "done", nil })
	fx := fixtureConfig{tools: []tool.Tool{large, small}, wrapStore: wrap}.open(t)
	ann := fx.createCaller(t, "probe")
	bob := identity.ByCaller("bob", ann.Role)
	var calls sync.WaitGroup
	for range 8 {
		calls.Go(func() { fx.invokeCode(t, ann, "large", obj{}) })
	}
	<-waiting // of ann, who gets no second turn
	calls.Go(func() { fx.invokeCode(t, bob, "large", obj{}) })
	<-waiting // of bob
	if code := fx.invokeCode(t, bob, "small", obj{}); code != "" || len(waiting) > 0 {
		t.Errorf("a small call: %q; %d more large commits wait", code, len(waiting))
	}
	close(release)
	calls.Wait()
}
