package runtime

import (
	"context"
	"sync"
)

// turns lets those who share a name pass one after the other. The zero turns
// is ready.
type turns struct {
	mu    sync.Mutex // guards what follows
	named map[string]*turn
}

// turn is of one name, as long as somebody has it or waits for it.
type turn struct {
	taken chan struct{} // holds a token while somebody has it
	users int
}

// wait waits for a name's turn; done gives it on.
func (t *turns) wait(ctx context.Context, name string) (done func(), err error) {
	mine := t.join(name)
	select {
	case mine.taken <- struct{}{}:
		return func() { <-mine.taken; t.part(name, mine) }, nil
	case <-ctx.Done():
		t.part(name, mine)
		return nil, context.Cause(ctx)
	}
}

func (t *turns) join(name string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine, ok := t.named[name]
	if !ok {
		mine = &turn{taken: make(chan struct{}, 1)}
		if t.named == nil {
			t.named = map[string]*turn{}
		}
		t.named[name] = mine
	}
	mine.users++
	return mine
}

func (t *turns) part(name string, mine *turn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(t.named, name)
	}
}
