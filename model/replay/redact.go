package replay

import (
	"slices"
	"sync"

	"github.com/rolecall/rolecall/internal/redact"
)

// secretSource asks for the secrets there are. Safe for concurrent use.
type secretSource struct {
	secrets func() []string // nil gives none

	mu    sync.Mutex // guards the rest
	known []string   // what secrets gave last
	hider *redact.Redactor
}

// redactor gives what hides the secrets there are now.
func (v *secretSource) redactor() *redact.Redactor {
	if v.secrets == nil {
		return nil
	}
	now := v.secrets()
	v.mu.Lock()
	defer v.mu.Unlock()
	if !slices.Equal(now, v.known) {
		v.known, v.hider = slices.Clone(now), redact.New(now...)
	}
	return v.hider
}
