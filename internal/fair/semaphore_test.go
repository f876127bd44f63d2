package fair_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/rolecall/rolecall/internal/fair"
)

// clients acquires units in goroutines and records the keys in the order they got one.
type clients struct {
	semaphore *fair.Semaphore
	mu        sync.Mutex // guards what follows
	acquired  []string
	releases  map[string][]func()
}

// acquire starts a client of key, which gets a unit or waits.
func (c *clients) acquire(ctx context.Context, key string) {
	go func() {
		release, err := c.semaphore.Acquire(ctx, key)
		if err != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.acquired = append(c.acquired, key)
		c.releases[key] = append(c.releases[key], release)
	}()
	synctest.Wait()
}

// release releases one unit of key.
func (c *clients) release(key string) {
	c.mu.Lock()
	release := c.releases[key][0]
	c.releases[key] = c.releases[key][1:]
	c.mu.Unlock()
	release()
	synctest.Wait()
}

// want checks which keys have got a unit since the last check.
func (c *clients) want(t *testing.T, when string, keys ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.acquired, keys) {
		t.Errorf("%s: units acquired by %v, want %v", when, c.acquired, keys)
	}
	c.acquired = nil
}

func newClients(units int) *clients {
	return &clients{semaphore: fair.NewSemaphore(units), releases: map[string][]func(){}}
}

func TestSemaphore_OneKeyGetsHalf(t *testing.T) {
	for units, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 7: 4, 8: 4} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			c := newClients(units)
			for range 100 {
				c.acquire(ctx, "a")
			}
			c.want(t, fmt.Sprint(units, " units"), slices.Repeat([]string{"a"}, want)...)
			if units > 1 {
				c.acquire(ctx, "b")
				c.want(t, "another key", "b")
			}
		})
	}
}

func TestSemaphore_PrefersKeyWithFewest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClients(4)
		for _, key := range []string{"a", "a", "a", "b", "b", "c", "d", "e"} {
			c.acquire(t.Context(), key)
		}
		c.want(t, "at first", "a", "a", "b", "c")
		c.release("b")
		c.want(t, "the first key without a unit", "b")
		c.release("a")
		c.want(t, "after a release", "d")
		c.release("b")
		c.want(t, "after a release", "e")
		c.release("a")
		c.want(t, "the key with a unit", "a")
	})
}

// A key with many waiters gets no more units than another key.
func TestSemaphore_AlternatesKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		c := newClients(1)
		for range 100 {
			c.acquire(ctx, "a")
		}
		c.want(t, "at first", "a")
		for range 3 {
			c.acquire(ctx, "b")
			c.release("a")
			c.want(t, "after a release", "b")
			c.release("b")
			c.want(t, "after a release", "a")
		}
	})
}

// A waiter gets a unit in the end, however many other keys arrive.
func TestSemaphore_DoesNotStarve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newClients(2)
		c.acquire(t.Context(), "a")
		c.acquire(t.Context(), "b")
		c.acquire(t.Context(), "a")
		c.want(t, "at first", "a", "b")
		for n, last := range []string{"b", "0", "1"} { // each new key has no unit
			c.acquire(t.Context(), fmt.Sprint(n))
			c.release(last)
		}
		c.acquire(t.Context(), "3")
		c.want(t, "keys without a unit", "0", "1", "2")
		c.release("a") // now a has no unit either, and arrived before 3
		c.want(t, "after a release", "a")
	})
}

func TestSemaphore_CancelledWaitReleases(t *testing.T) {
	s := fair.NewSemaphore(1)
	release, err := s.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := s.Acquire(ctx, "b"); err != reason {
		t.Errorf("got %v, want the cause of ctx", err)
	}
	release()
	var callers sync.WaitGroup
	for n := range 200 { // some are cancelled just as they get a unit
		ctx, cancel := context.WithCancel(t.Context())
		callers.Go(func() {
			if release, err := s.Acquire(ctx, fmt.Sprint(n%7)); err == nil {
				release()
			}
		})
		callers.Go(cancel)
	}
	callers.Wait()
	if release, err = s.Acquire(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	release()
}

func TestSemaphore_LimitsQueue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		c := newClients(2)
		c.semaphore.LimitQueue(6, 4)
		c.acquire(ctx, "a")
		c.acquire(ctx, "b")
		full := func(key string) bool {
			done, cancelled := context.WithCancel(ctx)
			cancelled()
			_, err := c.semaphore.Acquire(done, key)
			return errors.Is(err, fair.ErrQueueFull)
		}
		for _, step := range []struct {
			key  string
			want int // callers of key that may wait
		}{{"a", 3}, {"b", 2}, {"c", 1}, {"d", 0}} {
			waiting := 0
			for ; !full(step.key) && waiting < 10; waiting++ {
				c.acquire(ctx, step.key)
			}
			if waiting != step.want {
				t.Errorf("%d callers of %s may wait, want %d", waiting, step.key, step.want)
			}
		}
		c.want(t, "at first", "a", "b")
		c.release("a") // another caller of a gets the unit, and leaves the queue
		c.want(t, "after a release", "a")
		if full("d") {
			t.Error("the place of a caller that does not wait any more is not free")
		}
	})
}
