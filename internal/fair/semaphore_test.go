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

// crowd takes places and says who has one, in the order they got them.
type crowd struct {
	places *fair.FairSemaphore
	mu     sync.Mutex // guards what follows
	in     []string
	gives  map[string][]func()
}

// wants has a name wait for a place.
func (c *crowd) wants(ctx context.Context, name string) {
	go func() {
		give, err := c.places.Acquire(ctx, name)
		if err != nil {
			return
		}
		c.mu.Lock()
		defer c.mu.Unlock()
		c.in = append(c.in, name)
		c.gives[name] = append(c.gives[name], give)
	}()
	synctest.Wait()
}

// back gives a place of a name back.
func (c *crowd) back(name string) {
	c.mu.Lock()
	give := c.gives[name][0]
	c.gives[name] = c.gives[name][1:]
	c.mu.Unlock()
	give()
	synctest.Wait()
}

func (c *crowd) want(t *testing.T, what string, names ...string) {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	if !slices.Equal(c.in, names) {
		t.Errorf("%s: got in %v, want %v", what, c.in, names)
	}
	c.in = nil
}

func newCrowd(places int) *crowd {
	return &crowd{places: fair.NewPlaces(places), gives: map[string][]func(){}}
}

func TestOneAloneHasHalfOfThePlaces(t *testing.T) {
	for places, want := range map[int]int{0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 7: 4, 8: 4} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer synctest.Wait()
			defer cancel()
			c := newCrowd(places)
			for range 100 {
				c.wants(ctx, "a")
			}
			c.want(t, fmt.Sprint(places), slices.Repeat([]string{"a"}, want)...)
			if places > 1 {
				c.wants(ctx, "b")
				c.want(t, "another", "b")
			}
		})
	}
}

func TestWhoHasFewestGoesFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(4)
		for _, name := range []string{"a", "a", "a", "b", "b", "c", "d", "e"} {
			c.wants(t.Context(), name)
		}
		c.want(t, "at first", "a", "a", "b", "c")
		c.back("b")
		c.want(t, "who has none, and came first of them", "b")
		c.back("a")
		c.want(t, "then", "d")
		c.back("b")
		c.want(t, "then", "e")
		c.back("a")
		c.want(t, "the last of the first", "a")
	})
}

// A name that many wait under has its turn no more often than another.
func TestNamesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer synctest.Wait()
		defer cancel()
		c := newCrowd(1)
		for range 100 {
			c.wants(ctx, "a")
		}
		c.want(t, "at first", "a")
		for range 3 {
			c.wants(ctx, "b")
			c.back("a")
			c.want(t, "then", "b")
			c.back("b")
			c.want(t, "then", "a")
		}
	})
}

// Whoever waits gets a place in the end, however many others come.
func TestNobodyWaitsForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(2)
		c.wants(t.Context(), "a")
		c.wants(t.Context(), "b")
		c.wants(t.Context(), "a")
		c.want(t, "at first", "a", "b")
		for n, last := range []string{"b", "0", "1"} { // each new one has none
			c.wants(t.Context(), fmt.Sprint(n))
			c.back(last)
		}
		c.wants(t.Context(), "3")
		c.want(t, "those who have none", "0", "1", "2")
		c.back("a") // now a has none too, and came before the last
		c.want(t, "then", "a")
	})
}

func TestWhoLeavesHoldsNoPlace(t *testing.T) {
	var places = fair.NewPlaces(1)
	give, err := places.Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	reason := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(reason)
	if _, err := places.Acquire(ctx, "b"); err != reason {
		t.Errorf("got %v, want why ctx ended", err)
	}
	give()
	var beside sync.WaitGroup
	for n := range 200 { // some leave just as they get it
		ctx, cancel := context.WithCancel(t.Context())
		beside.Go(func() {
			if give, err := places.Acquire(ctx, fmt.Sprint(n%7)); err == nil {
				give()
			}
		})
		beside.Go(cancel)
	}
	beside.Wait()
	if give, err = places.Acquire(t.Context(), "c"); err != nil {
		t.Fatal(err)
	}
	give()
}
