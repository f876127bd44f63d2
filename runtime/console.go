package runtime

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
)

// PrintLine implements builtin.Console.
func (h *ToolHost) PrintLine(_ context.Context, by identity.Principal, text string) error {
	_, err := fmt.Fprintf(h.rt.config.Console, "%s: %s\n", h.rt.consoleName(by), printable(text))
	return err
}

// consoleName returns the name printed before a text: the role of an agent, or
// the user and role of a caller. Names from outside are made safe to print on
// one line.
func (rt *Runtime) consoleName(by identity.Principal) string {
	if by.Kind == identity.Caller {
		return textutil.Sanitize(textutil.OneLine("user "+string(by.User)+", "+rt.roleName(org.Agent{Role: by.Role}), maxLine))
	}
	agent, _ := rt.org.AgentByID(by.Agent)
	return rt.roleName(agent)
}

// printable replaces characters that could control a terminal. Newlines and
// tabs stay.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}
