package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/internal/textutil"
)

// sandboxOutput is the isolation of programs as check --sandbox prints it.
type sandboxOutput struct {
	sandbox.Isolation
	Refused []string `json:"refused"` // tools that refuse to run programs here
}

// sandboxTools are the tools that run programs in the sandbox.
var sandboxTools = []string{"run_command", "run_javascript"}

// layerIdentity is the user of programs. It depends on the data directory.
const layerIdentity = "an unprivileged user"

// runCheckSandbox prints how programs are isolated on this system.
func runCheckSandbox(ctx context.Context, c *common) error {
	isolation, err := c.launcher.ProbeIsolation(ctx)
	if err != nil {
		return err
	}
	out := sandboxOutput{isolation, []string{}}
	if isolation.Available() {
		out.Checks = append(out.Checks, identityCheck(c.launcher, c.data))
	} else {
		out.Refused = sandboxTools
	}
	if c.json {
		err = printJSONLine(c.out, out)
	} else {
		_, err = fmt.Fprintln(c.out, strings.Join(sandboxLines(isolation.Available(), out.Checks), "\n"))
	}
	if err == nil && !isolation.Available() {
		err = errReported
	}
	return err
}

// identityCheck reports whether programs of root run as another user.
func identityCheck(l *sandbox.Launcher, data string) sandbox.LayerCheck {
	if err := l.CheckJobUser(existingDir(data)); err != nil {
		return sandbox.LayerCheck{Layer: layerIdentity, Status: sandbox.LayerMissing, Detail: "programs run as root: " + err.Error()}
	}
	return sandbox.LayerCheck{Layer: layerIdentity, Status: sandbox.LayerActive}
}

// sandboxLines describes each layer in a line.
func sandboxLines(available bool, checks []sandbox.LayerCheck) []string {
	lines := []string{"sandbox: programs run with these layers"}
	if !available {
		lines[0] = refusedLine
	}
	for _, c := range checks {
		line := fmt.Sprintf("  %-9s  %s", c.Status, c.Layer)
		if c.Detail != "" {
			line += ": " + textutil.Sanitize(c.Detail)
		}
		lines = append(lines, line)
	}
	if !available {
		lines = append(lines, unisolatedScripts)
	}
	return lines
}

// Lines about a system without a sandbox.
const (
	refusedLine       = "no sandbox: run_command and run_javascript are refused"
	unisolatedScripts = "agent scripts run without a sandbox"
)

// isolationLines describes the isolation of programs in few lines; open means that the
// configuration runs them without it.
func isolationLines(i sandbox.Isolation, open bool) []string {
	first := "sandbox: " + strings.Join(i.Layers, ", ")
	switch {
	case open:
		first = "no sandbox: kind: command has sandbox: none, so programs run with your permissions"
	case !i.Available():
		first = refusedLine
	}
	lines := []string{first}
	for _, what := range i.Missing {
		lines = append(lines, "  missing: "+textutil.Sanitize(what))
	}
	if !i.Available() {
		lines = append(lines, unisolatedScripts)
	}
	return lines
}
