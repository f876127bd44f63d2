package modules

import "slices"

// HealthChecker is a Module that knows whether what it needs can be reached now. CheckHealth returns
// at once, and is called at any time while the module is in service.
type HealthChecker interface {
	CheckHealth() error
}

// FailedModules returns the names of the loaded modules that cannot work now, sorted: their last
// provisioning failed, or CheckHealth returns an error. Their tools are known, and unavailable.
func (l *Loader) FailedModules() (names []string) {
	l.mu.Lock()
	loaded := slices.Clone(l.loaded)
	l.mu.Unlock()
	for _, i := range loaded {
		checker, ok := i.module.(HealthChecker)
		if i.isLazy() && i.lazy.failed() || ok && checker.CheckHealth() != nil {
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
