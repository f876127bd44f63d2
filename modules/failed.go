package modules

import "slices"

// FailedModules returns the names of the loaded modules whose last attempt to provision them
// failed, sorted. Their tools are known from an earlier start, and unavailable.
func (l *Loader) FailedModules() (names []string) {
	l.mu.Lock()
	loaded := slices.Clone(l.loaded)
	l.mu.Unlock()
	for _, i := range loaded {
		if i.isLazy() && i.lazy.failed() {
			names = append(names, i.name)
		}
	}
	slices.Sort(names)
	return names
}

// failed reports whether the last attempt failed.
func (s *lazyState) failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lastErr != nil
}
