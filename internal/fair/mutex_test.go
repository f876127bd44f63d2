package fair_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/rolecall/rolecall/internal/fair"
)

func TestThoseOfOneNamePassOneAfterTheOther(t *testing.T) {
	var all fair.KeyedMutex
	var beside sync.WaitGroup
	inside := 0 // guarded by the turn
	for range 50 {
		beside.Go(func() {
			done, err := all.Lock(t.Context(), "a")
			if err != nil {
				t.Error(err)
				return
			}
			defer done()
			if inside++; inside != 1 {
				t.Errorf("%d are in at once", inside)
			}
			inside--
		})
	}
	beside.Wait()
}

func TestOthersAreNotHeldUpAndWhoWaitsMayLeave(t *testing.T) {
	var all fair.KeyedMutex
	done, err := all.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := all.Lock(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("enough")
	cancel(reason)
	if _, err := all.Lock(ctx, "a"); err != reason {
		t.Errorf("got %v, want why ctx ended", err)
	}
	done()
	if done, err = all.Lock(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	done()
}
