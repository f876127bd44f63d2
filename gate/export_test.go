package gate

import (
	"context"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/fair"
)

// StepNames returns the names of the steps, in order.
func StepNames() []string {
	var names []string
	for _, s := range steps {
		names = append(names, s.name)
	}
	return names
}

// AtSteps calls fn before and after every step until the test ends. No gate may be
// in use when AtSteps is called or when the test ends.
func AtSteps(t testing.TB, fn func(step string, after bool)) {
	real := steps
	t.Cleanup(func() { steps = real })
	steps = nil
	for _, s := range real {
		steps = append(steps, step{s.name, func(g *Gate, ctx context.Context, a *Admission) error {
			fn(s.name, false)
			err := s.run(g, ctx, a)
			fn(s.name, true)
			return err
		}})
	}
}

// AcquireValidation takes a place of those that validate arguments for p.
func (g *Gate) AcquireValidation(t testing.TB, p identity.Principal) (release func()) {
	t.Helper()
	release, err := g.validations.Acquire(t.Context(), fair.Key{Owner: g.config.Owner(p)})
	if err != nil {
		t.Fatal(err)
	}
	return release
}

// Admit takes a request through the steps, without recording and running it.
func (g *Gate) Admit(ctx context.Context, p identity.Principal, r CallRequest) *Admission {
	return g.admit(ctx, p, r)
}
