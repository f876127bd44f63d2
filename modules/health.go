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
	for _, inst := range loaded {
		checker, checks := inst.module.(HealthChecker)
		notProvisioned := inst.isLazy() && inst.lazy.hasFailed()
		if notProvisioned || (checks && checker.CheckHealth() != nil) {
			names = append(names, inst.name)
		}
	}
	slices.Sort(names)
	return names
}
