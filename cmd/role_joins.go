package cmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
)

// runRoleJoins lists the roles whose tools have all flags together.
func runRoleJoins(ctx context.Context, c *common, api *client.Client) error {
	list := []client.RoleJoins{}
	for role, err := range api.ListJoins(ctx) {
		if err != nil {
			return err
		}
		list = append(list, role)
	}
	if c.json {
		return printJSON(c.out, list)
	}
	if len(list) == 0 {
		_, err := fmt.Fprintln(c.out, "No role joins untrusted input, private data and a way out.")
		return err
	}
	for i, role := range list {
		if err := printJoins(c.out, role.Role, role.Findings); err != nil {
			return err
		}
		if i < len(list)-1 {
			fmt.Fprintln(c.out)
		}
	}
	return nil
}

// joinTexts say what a set of tools joins.
var joinTexts = map[string]string{
	"toolGroups": "by what it uses",
	"reach":      "by what it uses and may grant",
}

// printJoins prints the findings of the kind join of a role. For each flag it prints a tool that
// has the flag, and how to take the flag away.
func printJoins(out io.Writer, role string, findings []client.LintFinding) error {
	for _, f := range findings {
		if f.Kind != "join" {
			continue
		}
		rows := table{{"FLAG", "TOOL", "WITHOUT IT"}}
		for _, j := range f.Joined {
			rows = append(rows, []string{j.Flag, joinedTool(j), apartText(j)})
		}
		if _, err := fmt.Fprintf(out, "%s joins untrusted input, private data and a way out, %s. One change takes them apart:\n", textutil.Sanitize(role), joinTexts[f.Set]); err != nil {
			return err
		}
		if err := rows.printBelow(out); err != nil {
			return err
		}
	}
	return nil
}

// joinedTool names a tool with a flag.
func joinedTool(j client.JoinedFlag) string {
	if !j.FlagsKnown {
		return j.Tool + " (flags not set)"
	}
	return j.Tool
}

// Bounds of the texts of apartText.
const (
	maxApartTools   = 4
	maxApartChanges = 6
)

// apartText says what takes a flag away: changes of groups, or exact tools.
func apartText(j client.JoinedFlag) string {
	var parts []string
	for _, c := range j.Changes[:min(len(j.Changes), maxApartChanges)] {
		text := "drop " + string(c.Group)
		if c.ReadPart {
			text = string(c.Group.ReadPart()) + " for " + string(c.Group)
		}
		if c.Set == "grant" {
			text += " (grant)"
		}
		parts = append(parts, text)
	}
	if more := len(j.Changes) - len(parts); more > 0 {
		parts = append(parts, fmt.Sprintf("and %d groups", more))
	}
	text := strings.Join(parts, ", ")
	if j.ExactTools && j.ToolCount <= maxApartTools {
		text += "; or exact tools, without " + strings.Join(j.Tools, ", ")
	}
	if !j.FlagsKnown {
		text += "; or set flags"
	}
	return text
}
