package notify

import (
	"context"
	"testing"

	"github.com/rolecall/rolecall/internal/config"
)

// linkedContext counts the functions that wait for its end.
type linkedContext struct {
	context.Context
	links int
}

// Done implements context.Context: it is no channel of package context.
func (c *linkedContext) Done() <-chan struct{} { return make(chan struct{}) }

// AfterFunc implements the interface that context.AfterFunc looks for.
func (c *linkedContext) AfterFunc(func()) func() bool {
	c.links++
	return func() bool { c.links--; return true }
}

// A receiver that is replaced leaves nothing behind in the context of the process.
func TestReceiver_LeavesContext(t *testing.T) {
	before := &receiver{done: make(chan struct{})} // has not stopped, so that r sends nothing
	ctx, r := &linkedContext{Context: t.Context()}, newReceiver(new(Engine), config.Notification{}, before)
	if r.start(ctx); ctx.links != 1 {
		t.Fatalf("%d links", ctx.links)
	}
	if r.stop(); ctx.links != 0 {
		t.Errorf("%d links are left", ctx.links)
	}
	close(before.done)
	r.wait()
}
