package runtime

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/identity"
)

// Print implements builtin.Console.
func (rt *Runtime) Print(_ context.Context, id identity.AgentID, text string) error {
	agent, _ := rt.org.Agent(id)
	_, err := fmt.Fprintf(rt.config.Console, "%s: %s\n", rt.roleName(agent), printable(text))
	return err
}
