package runtime

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
)

// maxConsoleLines bounds the lines that one call prints.
const maxConsoleLines = 100

// PrintLine implements builtin.Console. Each line begins with the name of its author. A text must
// not look like a line of the program or of others.
func (h *ToolHost) PrintLine(_ context.Context, by identity.Principal, text string) error {
	name, lines := h.rt.consoleName(by), strings.Split(strings.TrimSuffix(printable(text), "\n"), "\n")
	if more := len(lines) - maxConsoleLines; more > 0 {
		lines = append(lines[:maxConsoleLines], fmt.Sprintf("%d more lines", more))
	}
	var out strings.Builder
	for _, line := range lines {
		fmt.Fprintf(&out, "%s: %s\n", name, line)
	}
	_, err := io.WriteString(h.rt.config.Console, out.String())
	return err
}

// consoleName returns the name printed before a line: "agent" and the role of an
// agent, or "user" with the user and role of a caller. Names from outside are
// made safe to print on one line.
func (rt *Runtime) consoleName(by identity.Principal) string {
	if by.Kind == identity.Caller {
		return textutil.Sanitize(textutil.OneLine("user "+string(by.User)+", "+rt.roleName(org.Agent{Role: by.Role}), maxLine))
	}
	agent, _ := rt.org.AgentByID(by.Agent)
	return textutil.Sanitize(textutil.OneLine("agent "+rt.roleName(agent), maxLine))
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
