// Package fair owns waiting that is fair: those who share a name have their
// turns, one after the other (Turns) or some at once (Places), and those of other
// names are not held up.
package fair

import (
	"context"
	"sync"
)

// KeyedMutex lets those who share a name pass one after the other. The zero Turns is
// ready. Safe for concurrent use.
type KeyedMutex struct {
	mu    sync.Mutex // guards what follows
	named map[string]*keyLock
}

// keyLock is of one name, as long as somebody has it or waits for it.
type keyLock struct {
	taken chan struct{} // holds a token while somebody has it
	users int
}

// Lock waits for a name's turn; done gives it on. The error is ctx's cause.
func (t *KeyedMutex) Lock(ctx context.Context, name string) (done func(), err error) {
	mine := t.join(name)
	select {
	case mine.taken <- struct{}{}:
		return func() { <-mine.taken; t.part(name, mine) }, nil
	case <-ctx.Done():
		t.part(name, mine)
		return nil, context.Cause(ctx)
	}
}

func (t *KeyedMutex) join(name string) *keyLock {
	t.mu.Lock()
	defer t.mu.Unlock()
	mine, ok := t.named[name]
	if !ok {
		mine = &keyLock{taken: make(chan struct{}, 1)}
		if t.named == nil {
			t.named = map[string]*keyLock{}
		}
		t.named[name] = mine
	}
	mine.users++
	return mine
}

func (t *KeyedMutex) part(name string, mine *keyLock) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if mine.users--; mine.users == 0 {
		delete(t.named, name)
	}
}
