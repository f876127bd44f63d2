package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

// lintOptions are the flags of role lint.
type lintOptions struct{ from, to string }

func newRoleLintCommand(c *common) *cobra.Command {
	o := &lintOptions{}
	cmd := &cobra.Command{
		Use:   "lint [ROLE]",
		Short: "Recommend smaller groups, and list roles that can leak private data",
		Long: `Compare what a role uses and may grant with what the record shows, and print the smallest
groups that would have allowed the same: each allowed call of its agents and callers, each
allowed call of others that the role limits, and each role, agent and task that was
created within it. The recommendation has no tool that the role does not hold. Nothing is
changed.

The record shows only what happened. A tool that was never called may still be needed.

Then say whether the role joins untrusted input, private data and a way out: whether its
tools have all flags together, by what it uses, and by what it uses and may grant. For each
flag one tool is named, and what takes the flag away. Without ROLE, list this for all roles;
the record is not read.`,
		Example: `  rolecall role lint
  rolecall role lint analyst
  rolecall role lint analyst --from 720h
  rolecall role lint analyst --from 2026-01-01T00:00:00Z --to 2026-02-01T00:00:00Z --json`,
		Args: func(cmd *cobra.Command, args []string) error {
			return exactArgs(min(len(args), 1), "at most one role, by id or name")(cmd, args)
		},
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			if len(args) == 0 && o.from == "" && o.to == "" {
				return runRoleJoins(ctx, c, api)
			}
			if len(args) == 0 {
				return usageError{errors.New("--from and --to need a role: without one, the record is not read")}
			}
			return runRoleLint(ctx, c, api, args[0], o)
		}),
	}
	cmd.Flags().StringVar(&o.from, "from", "", "read events from this `time`: 24h (before now), or 2026-01-31T08:00:00Z")
	cmd.Flags().StringVar(&o.to, "to", "", "read events before this `time`")
	return cmd
}

func runRoleLint(ctx context.Context, c *common, api *client.Client, ref string, o *lintOptions) error {
	var err error
	if ref != org.RootRole {
		if ref, err = resolveRole(ctx, api, ref); err != nil {
			return err
		}
	}
	lint, err := api.LintRole(ctx, ref, o.from, o.to)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, lint)
	}
	return printLint(c.out, lint)
}

// printLint prints the result of a lint for people. It prints the range that was read, and the
// groups that the role has and that its calls used. It also prints the groups to write in place of
// them.
func printLint(out io.Writer, l client.RoleLint) error {
	if err := lintFields(l).print(out); err != nil {
		return err
	}
	if rows := lintRows(l); len(rows) > 1 {
		if err := rows.printBelow(out); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprint(out, "\n", lintAdvice(l)); err != nil {
		return err
	}
	return printJoins(out, l.Role, l.Findings)
}

func lintFields(l client.RoleLint) fields {
	f := fields{
		{"role", l.Role}, {"id", string(l.RoleID)}, {"record", recordText(l)},
		{"calls", fmt.Sprintf("%d allowed, %d denied", l.Calls.Total-l.Calls.Denied, l.Calls.Denied)},
	}
	if l.OtherCalls > 0 {
		f = append(f, [2]string{"others", fmt.Sprintf("%d allowed calls that the role limits", l.OtherCalls)})
	}
	if l.Grants > 0 {
		f = append(f, [2]string{"grants", fmt.Sprintf("%d roles, agents and tasks", l.Grants)})
	}
	if gone := unregisteredTools(l.Tools); gone != "" {
		f = append(f, [2]string{"gone", gone})
	}
	if len(l.Denied) > 0 {
		f = append(f, [2]string{"denied", toolCallCounts(l.Denied)})
	}
	return f
}

// recordText says which part of the record was read, and when it has calls.
func recordText(l client.RoleLint) string {
	if l.RecordBegins.IsZero() {
		return "empty"
	}
	from := l.RecordBegins
	if l.From.After(from) {
		from = l.From
	}
	text := "from " + formatTime(from)
	if !l.To.IsZero() {
		text += " to " + formatTime(l.To)
	}
	if !l.FirstCall.IsZero() {
		text += fmt.Sprintf("; calls from %s to %s", formatTime(l.FirstCall), formatTime(l.LastCall))
	}
	return text
}

// unregisteredTools names the tools that were called and are not registered now.
func unregisteredTools(list []client.LintTool) string {
	var gone []client.LintTool
	for _, t := range list {
		if t.Gone {
			gone = append(gone, t)
		}
	}
	return toolCallCounts(gone)
}

// toolCallCounts lists tools, each with the number of its calls.
func toolCallCounts(list []client.LintTool) string {
	names := make([]string, len(list))
	for i, t := range list {
		names[i] = fmt.Sprintf("%s (%d)", t.Name, t.Calls+t.OtherCalls)
	}
	return strings.Join(names, ", ")
}

// lintRows is the table of the groups of both sets.
func lintRows(l client.RoleLint) table {
	rows := table{{"SET", "GROUP", "USED TOOLS", "CALLS", "ADVICE"}}
	for _, set := range []struct {
		name, id string
		client.LintSet
	}{{"uses", "toolGroups", l.ToolGroups}, {"may grant", "grant", l.Grant}} {
		for _, g := range set.Groups {
			rows = append(rows, []string{set.name, string(g.ID), fmt.Sprintf("%d of %d", g.UsedTools, g.Tools), strconv.Itoa(g.Calls), groupAdvice(g, l.Used, enoughTools(l, set.id, g.ID))})
		}
		if set.Unused > 0 {
			rows = append(rows, []string{set.name, fmt.Sprintf("%d others", set.Unused), "-", "0", "drop"})
		}
	}
	return rows
}

// enoughTools returns the tools of which a toolset would be enough in place of a group.
func enoughTools(l client.RoleLint, set string, id toolgroups.GroupID) []string {
	for _, f := range l.Findings {
		if f.Kind == "tools" && f.Set == set && f.Group == id {
			return f.Tools
		}
	}
	return nil
}

// groupAdvice says what to do with a group. The role has it if it is Held, and should have it if it
// is Kept. used reports whether the record shows a use of the role; otherwise there is no advice.
// A toolset of tools would be enough in place of the group, if there are any.
func groupAdvice(g client.LintGroup, used bool, tools []string) string {
	var text string
	switch {
	case !used:
		return "-"
	case g.Kept && !g.Held && isReadPart(g.ID): // the role has the whole group
		text = "add in place of the group: only reading was needed"
	case g.Kept && !g.Held:
		text = "add in place of a group above it"
	case g.Kept:
		text = "keep"
	default:
		text = "drop"
	}
	if g.Away {
		text += "; it is not registered"
	}
	if len(tools) > 0 {
		text += "; a toolset of " + strings.Join(tools, ", ") + " would be enough"
	}
	if len(g.Fallbacks) > 0 {
		text += "; its fallback is dropped: " + joinNames(g.Fallbacks)
	}
	return text
}

// isReadPart reports whether an id names a read part.
func isReadPart(id toolgroups.GroupID) bool {
	_, reads := id.WholeGroup()
	return reads
}

// lintAdvice says what to write in place of the groups of a role.
func lintAdvice(l client.RoleLint) string {
	switch {
	case !l.Used:
		return "The record shows no use of the role, so nothing is recommended.\n"
	case !l.Narrows:
		return "The role holds the smallest groups for what the record shows.\n"
	}
	text := fmt.Sprintf("The record needs %d of the %d tools that it may use, and %d of the %d that it may grant.\n",
		l.ToolGroups.KeptTools, l.ToolGroups.HeldTools, l.Grant.KeptTools, l.Grant.HeldTools)
	if !l.ToolGroups.Exact || !l.Grant.Exact {
		text += "There are too many groups to compare all choices, so a smaller one may exist.\n"
	}
	return text + "A tool that was never called may still be needed.\n\n" + lintChange(l)
}

// lintChange is the command, or the fields of a file, that narrow the role.
func lintChange(l client.RoleLint) string {
	use, grant := *l.ToolGroups.Recommended, *l.Grant.Recommended
	if l.CreatedBy == org.CreatorConfig {
		return fmt.Sprintf("In the file of the role:\n\n  toolGroups: %s\n  grant: %s\n", yamlSet(use), yamlSet(grant))
	}
	text := fmt.Sprintf("  rolecall role update %s --revision %d %s %s", textutil.Sanitize(string(l.RoleID)), l.Revision, groupFlag("use", use), groupFlag("grant", grant))
	if keepsUnregistered(l.ToolGroups) || keepsUnregistered(l.Grant) {
		text += " --allow-unknown"
	}
	return text + "\n"
}

// keepsUnregistered reports whether a set should keep a group that is not registered.
func keepsUnregistered(set client.LintSet) bool {
	return slices.ContainsFunc(set.Groups, func(g client.LintGroup) bool { return g.Kept && g.Away })
}

// groupFlag returns the flag of role update that sets a set of groups: --use or --grant.
func groupFlag(name string, set toolgroups.GroupSet) string {
	switch {
	case set.IsAll():
		return "--" + name + "-all"
	case len(set.GroupIDs()) == 0:
		return "--" + name + "-none"
	}
	return "--" + name + " " + textutil.Sanitize(strings.Join(set.Names(), ","))
}

// yamlSet returns a set as a value of a configuration file. JSON is YAML, and quotes ids that
// look like other values.
func yamlSet(set toolgroups.GroupSet) string {
	text, _ := json.Marshal(set) // lists of strings always marshal
	return jsonText(textutil.EscapeUnprintable(text))
}
