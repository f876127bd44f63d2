package fair_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/internal/fair"
)

func TestKeyedMutex_ExcludesSameKey(t *testing.T) {
	var m fair.KeyedMutex
	var callers sync.WaitGroup
	holders := 0 // guarded by the lock of a
	for range 50 {
		callers.Go(func() {
			unlock, err := m.Lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer unlock()
			if holders++; holders != 1 {
				t.Errorf("%d callers hold the lock", holders)
			}
			holders--
		})
	}
	callers.Wait()
}

func TestKeyedMutex_OtherKeysAndCancelledWaits(t *testing.T) {
	var m fair.KeyedMutex
	unlock, err := m.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	unlockOther, err := m.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	unlockOther()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	if _, err := m.Lock(ctx, "a"); err != reason {
		t.Errorf("got %v, want the cause of ctx", err)
	}
	unlock()
	if unlock, err = m.Lock(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	unlock()
}
