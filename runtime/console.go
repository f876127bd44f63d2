package runtime

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// Print implements builtin.Console.
func (rt *Runtime) Print(_ context.Context, by identity.Principal, text string) error {
	_, err := fmt.Fprintf(rt.config.Console, "%s: %s\n", rt.consoleName(by), printable(text))
	return err
}

// consoleName says who prints: an agent's role, a caller with its role. What
// somebody outside is called stays on its line and acts on no terminal.
func (rt *Runtime) consoleName(by identity.Principal) string {
	if by.Kind == identity.Caller {
		return printable(line("user " + string(by.User) + ", " + rt.roleName(org.Agent{Role: by.Role})))
	}
	agent, _ := rt.org.Agent(by.Agent)
	return rt.roleName(agent)
}
