package fair_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
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
		release, err := c.semaphore.Acquire(ctx, keyOf(key))
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

// keyOf returns a key from its text: OWNER or OWNER/MEMBER.
func keyOf(text string) fair.Key {
	owner, member, _ := strings.Cut(text, "/")
	return fair.Key{Owner: owner, Member: member}
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
	release, err := s.Acquire(t.Context(), keyOf("a"))
	if err != nil {
		t.Fatal(err)
	}
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := s.Acquire(ctx, keyOf("b")); err != reason {
		t.Errorf("got %v, want the cause of ctx", err)
	}
	release()
	var callers sync.WaitGroup
	for n := range 200 { // some are cancelled just as they get a unit
		ctx, cancel := context.WithCancel(t.Context())
		callers.Go(func() {
			if release, err := s.Acquire(ctx, keyOf(fmt.Sprint(n%7))); err == nil {
				release()
			}
		})
		callers.Go(cancel)
	}
	callers.Wait()
	if release, err = s.Acquire(t.Context(), keyOf("c")); err != nil {
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
		c.semaphore.LimitQueue(6, 4, 4)
		c.acquire(ctx, "a")
		c.acquire(ctx, "b")
		full := func(key string) bool {
			done, cancelled := context.WithCancel(ctx)
			cancelled()
			_, err := c.semaphore.Acquire(done, keyOf(key))
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

// An owner with many members gets no more units than another owner, and its members take
// turns.
func TestSemaphore_MembersShareTheirOwnersUnits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		c := newClients(4)
		for range 3 {
			c.acquire(ctx, "a/1")
		}
		for member := range 100 {
			c.acquire(ctx, fmt.Sprint("a/", 2+member))
		}
		c.want(t, "at first", "a/1", "a/1")
		c.acquire(ctx, "b/1")
		c.want(t, "another owner", "b/1")
		c.acquire(ctx, "b/2")
		c.release("b/1")
		c.want(t, "the owner with the fewest units", "b/2")
		c.release("a/1")
		c.want(t, "a member without a unit", "a/2")
		c.release("a/1")
		c.want(t, "the next member without a unit", "a/3")
		c.release("a/2")
		c.want(t, "a member that waits", "a/4")
	})
}

// The members of an owner share its places of the queue.
func TestSemaphore_LimitsQueueOfMembers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		c := newClients(1)
		c.semaphore.LimitQueue(20, 4, 2)
		c.acquire(ctx, "a/1")
		for range 10 {
			c.acquire(ctx, "b/1")
			c.acquire(ctx, "c/1")
			c.acquire(ctx, "c/2")
			c.acquire(ctx, "c/3")
		}
		got := map[string]int{}
		c.release("a/1")
		for range 20 {
			c.mu.Lock()
			last := append([]string{"none"}, c.acquired...)[len(c.acquired)]
			held := len(c.releases[last]) > 0
			c.mu.Unlock()
			if held {
				got[last]++
				c.release(last)
			}
		}
		if got["b/1"] != 2 || got["c/1"]+got["c/2"]+got["c/3"] != 4 || got["c/1"] > 2 {
			t.Errorf("waiting callers: %v, want 2 of b/1 and 4 of c", got)
		}
	})
}
