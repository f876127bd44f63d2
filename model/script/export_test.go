package script

import "github.com/rolecall/rolecall/model"

// CachedRuns returns how many runs the cache of m has.
func CachedRuns(m *Model) int {
	m.cache.mu.Lock()
	defer m.cache.mu.Unlock()
	return m.cache.recent.Len()
}

// NewCachedRun returns what drops a new run from the cache, and what resumes it.
func NewCachedRun(m *Model, r model.Request) (drop func(), resume func(model.Request)) {
	run := newRun(m, r)
	return func() { m.cache.drop(run) }, func(r model.Request) { run.resumeFrom(r) }
}
