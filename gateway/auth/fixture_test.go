package auth_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/test/gatewaytest"
	"github.com/rolecall/rolecall/persist/persisttest"
)

// newFixture returns a gateway on a store of its own.
func newFixture(t testing.TB) *gatewaytest.Fixture {
	t.Helper()
	return gatewaytest.NewFixture(t, persisttest.Open(t), gatewaytest.ModelFunc(gatewaytest.TeamModel))
}
