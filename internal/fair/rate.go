package fair

import (
	"container/list"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// RateTable limits how often each key does something: a burst at once, and then one in each
// interval. It remembers a bounded number of keys and forgets the key that was used longest
// ago. Without a rate it limits nothing. It is safe for concurrent use.
type RateTable[K comparable] struct {
	maxKeys int

	mu     sync.Mutex // guards what follows
	limit  rate.Limit // 0 is no limit
	burst  int
	recent *list.List // of *rateEntry[K], the last used entry in front
	byKey  map[K]*list.Element
}

// rateEntry is the limiter of one key.
type rateEntry[K comparable] struct {
	key     K
	limiter *rate.Limiter
}

// NewRateTable returns a table without a rate, which remembers at most so many keys.
func NewRateTable[K comparable](most int) *RateTable[K] {
	return &RateTable[K]{maxKeys: max(most, 1), recent: list.New(), byKey: map[K]*list.Element{}}
}

// SetRate sets the rate of all keys. If it is another one than before, all keys may have a
// whole burst. An interval of 0 is no limit.
func (t *RateTable[K]) SetRate(interval time.Duration, burst int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	limit := rate.Limit(0)
	if interval > 0 {
		limit = rate.Every(interval)
	}
	if limit == t.limit && burst == t.burst {
		return
	}
	t.limit, t.burst = limit, burst
	t.recent.Init()
	clear(t.byKey)
}

// WaitTime returns how long key has to wait before it may do something; 0 is not at all. It
// counts nothing.
func (t *RateTable[K]) WaitTime(key K) time.Duration { return t.takeN(key, 0) }

// Take counts that key does something, unless it has to wait. It returns how long.
func (t *RateTable[K]) Take(key K) time.Duration { return t.takeN(key, 1) }

// takeN counts n, if key need not wait.
func (t *RateTable[K]) takeN(key K, n int) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.limit == 0 {
		return 0
	}
	limiter, now := t.limiterOf(key), time.Now()
	if missing := 1 - limiter.TokensAt(now); missing > 0 {
		return max(1, time.Duration(missing/float64(t.limit)*float64(time.Second)))
	}
	limiter.AllowN(now, n)
	return 0
}

// limiterOf returns the limiter of a key and marks it as used last. It must be called with mu held.
func (t *RateTable[K]) limiterOf(key K) *rate.Limiter {
	if at, ok := t.byKey[key]; ok {
		t.recent.MoveToFront(at)
		return at.Value.(*rateEntry[K]).limiter
	}
	if t.recent.Len() >= t.maxKeys {
		oldest := t.recent.Back()
		t.recent.Remove(oldest)
		delete(t.byKey, oldest.Value.(*rateEntry[K]).key)
	}
	entry := &rateEntry[K]{key, rate.NewLimiter(t.limit, t.burst)}
	t.byKey[key] = t.recent.PushFront(entry)
	return entry.limiter
}
