package script

// CachedRuns returns how many runs the cache of m has.
func CachedRuns(m *Model) int {
	m.cache.mu.Lock()
	defer m.cache.mu.Unlock()
	return m.cache.recent.Len()
}
