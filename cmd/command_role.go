package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
)

func newRoleCommand(c *common) *cobra.Command {
	return parentCommand(&cobra.Command{
		Use:   "role",
		Short: "Say what agents are told and which tools they may use",
		Long: `A role says which tool groups the agents that hold it may use, and which
groups they may grant to roles they create. Roles are named by id or by exact
name. A group that nobody has registered, or not the owner it had when the
role was written, gives nothing and is shown as dangling.`,
		Example: `  rolecall role list
  rolecall role create analyst --prompt "You read logs." --use workspace,command
  rolecall role update analyst --use workspace --dry-run`,
	}, newRoleListCommand(c), newRoleShowCommand(c), newRoleCreateCommand(c), newRoleUpdateCommand(c), newRoleDeleteCommand(c))
}

func newRoleListCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the roles, sorted by name",
		Example: "  rolecall role list\n  rolecall role list --json",
		Args:    exactly(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return roleListFunc(ctx, c.out, api, c.json)
		}),
	}
}

func roleListFunc(ctx context.Context, out io.Writer, api *client.Client, asJSON bool) error {
	head := []string{"NAME", "ID", "USES", "MAY GRANT", "MADE BY", "MODEL"}
	return printList(out, asJSON, api.Roles(ctx), head, func(r client.Role) []string {
		return []string{r.Name, string(r.ID), groupsOf(r, r.Use), groupsOf(r, r.Grant), r.CreatedBy, orDash(string(r.Model))}
	})
}

// groupsOf shows a role's groups, and which of them dangle.
func groupsOf(r client.Role, set toolgroups.Set) string {
	if set.IsAll() {
		return "all"
	}
	ids := set.IDs()
	for i, id := range ids {
		if slices.Contains(r.Dangling, id) {
			ids[i] += " (dangling)"
		}
	}
	return orDash(joinNames(ids))
}

func newRoleShowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "show ROLE",
		Short: "Show one role",
		Long: `Show one role. With --json it is the record itself; a field "dangling" is
added when it names groups that give nothing.`,
		Example: "  rolecall role show analyst\n  rolecall role show analyst --json",
		Args:    exactly(1, "one role, by id or name"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return roleShowFunc(ctx, c.out, api, args[0], c.json)
		}),
	}
}

func roleShowFunc(ctx context.Context, out io.Writer, api *client.Client, ref string, asJSON bool) error {
	r, err := api.Role(ctx, ref)
	if err != nil {
		return err
	}
	return printOne(out, asJSON, r, roleFields(r))
}

func roleFields(r client.Role) fields {
	f := fields{
		{"name", r.Name}, {"id", string(r.ID)}, {"status", string(r.Status)},
		{"uses", groupsOf(r, r.Use)}, {"may grant", groupsOf(r, r.Grant)}, {"model", string(r.Model)},
		{"made by", r.CreatedBy + ", " + formatTime(r.CreatedAt)}, {"revision", strconv.FormatUint(r.Revision, 10)},
	}
	if r.Limits.Rounds > 0 {
		f = append(f, [2]string{"rounds", strconv.Itoa(r.Limits.Rounds)})
	}
	return append(f, [2]string{"prompt", r.Prompt})
}

// roleOptions are the flags of role create and role update.
type roleOptions struct {
	name, prompt, model string
	use, grant          groupOptions
	dryRun, json        bool
}

func (o *roleOptions) bind(flags *pflag.FlagSet) {
	flags.StringVar(&o.prompt, "prompt", "", "what its agents are told")
	flags.StringVar(&o.model, "model", "", "`name` of the model that thinks for them; the organization's when left out")
	o.use.bind(flags, "use", "its agents may use")
	o.grant.bind(flags, "grant", "its agents may put into roles they create")
	flags.BoolVar(&o.dryRun, "dry-run", false, "say what would be, and change nothing")
}

func (o *roleOptions) request() (client.RoleRequest, error) {
	use, err := o.use.set()
	if err != nil {
		return client.RoleRequest{}, err
	}
	grant, err := o.grant.set()
	return client.RoleRequest{Name: o.name, Prompt: o.prompt, Model: o.model, Use: use, Grant: grant}, err
}

// groupOptions are three flags that choose groups: some, all or none.
type groupOptions struct {
	flag      string
	ids       []string
	all, none bool
	given     func() bool // whether ids were
}

func (o *groupOptions) bind(flags *pflag.FlagSet, name, what string) {
	o.flag = name
	o.given = func() bool { return flags.Changed(name) }
	flags.StringSliceVar(&o.ids, name, nil, "tool `groups` "+what)
	flags.BoolVar(&o.all, name+"-all", false, "all tool groups, also those to come")
	flags.BoolVar(&o.none, name+"-none", false, "no tool groups")
}

// set gives the choice; nil when there is none.
func (o *groupOptions) set() (*toolgroups.Set, error) {
	chosen, n := toolgroups.OfNames(o.ids...), 0
	for _, on := range []bool{o.given(), o.all, o.none} {
		if on {
			n++
		}
	}
	switch {
	case n > 1:
		return nil, usageError{fmt.Errorf("--%s, --%s-all and --%s-none exclude each other", o.flag, o.flag, o.flag)}
	case o.given() && slices.Equal(o.ids, []string{}), slices.Contains(o.ids, ""):
		return nil, usageError{fmt.Errorf("--%s has an empty group id; for no groups say --%s-none", o.flag, o.flag)}
	case n == 0:
		return nil, nil
	case o.all:
		chosen = toolgroups.All()
	}
	return &chosen, nil
}

func newRoleCreateCommand(c *common) *cobra.Command {
	o := &roleOptions{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a role",
		Long: `Create a role. Without a use flag its agents may use every tool group, also
those to come, or the groups that the configuration names as defaultToolGroups.
Without a grant flag they may grant what they use if that holds
org_management, else nothing.`,
		Example: `  rolecall role create analyst --prompt "You read logs." --use workspace,command
  rolecall role create lead --prompt "You lead." --use org_management --grant workspace
  rolecall role create thinker --prompt "You only think." --use-none`,
		Args: exactly(1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name, o.json = args[0], c.json
			return roleCreateFunc(cmd.Context(), c, o)
		},
	}
	o.bind(cmd.Flags())
	return cmd
}

func roleCreateFunc(ctx context.Context, c *common, o *roleOptions) error {
	q, err := o.request()
	if err != nil {
		return err
	}
	api, done, err := connect(ctx, c, o.purpose(createIfMissing))
	if err != nil {
		return err
	}
	r, err := api.CreateRole(ctx, q, o.dryRun)
	if err = errors.Join(err, done()); err != nil {
		return err
	}
	warnDangling(c.err, r)
	if o.json {
		return printJSON(c.out, r)
	}
	fmt.Fprintf(c.err, "role %s %s\n", clean(r.Name), o.done("created"))
	return roleFields(r).print(c.out)
}

// purpose is what the command wants, unless it is a dry run.
func (o *roleOptions) purpose(p accessMode) accessMode {
	if o.dryRun {
		return readOnly
	}
	return p
}

func (o *roleOptions) done(what string) string {
	if o.dryRun {
		return "would be " + what
	}
	return what
}

func warnDangling(talk io.Writer, r client.Role) {
	for _, id := range r.Dangling {
		fmt.Fprintf(talk, "nobody has registered the tool group %s: it gives nothing until the role is updated after somebody has\n", clean(string(id)))
	}
}

func newRoleUpdateCommand(c *common) *cobra.Command {
	o := &roleOptions{}
	cmd := &cobra.Command{
		Use:   "update ROLE",
		Short: "Change a role and see who gains or loses which tools",
		Long: `Change what the flags name and print the effective-permission diff: which
agents gain or lose which tools. The change is in force when the command
returns: no call that it forbids starts after it. Roles of the configuration
are changed in its file.`,
		Example: `  rolecall role update analyst --use workspace --dry-run
  rolecall role update analyst --use workspace
  rolecall role update analyst --name reader --prompt "You only read."`,
		Args: exactly(1, "one role, by id or name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.json = c.json
			return roleUpdateFunc(cmd.Context(), c, args[0], o)
		},
	}
	o.bind(cmd.Flags())
	cmd.Flags().StringVar(&o.name, "name", "", "another `name`")
	return cmd
}

func roleUpdateFunc(ctx context.Context, c *common, ref string, o *roleOptions) error {
	q, err := o.request()
	if err != nil {
		return err
	}
	if q == (client.RoleRequest{}) {
		return usageError{errors.New("there is nothing to change; name it with --use, --grant, --prompt, --model or --name")}
	}
	api, done, err := connect(ctx, c, o.purpose(readWrite))
	if err != nil {
		return err
	}
	change, err := api.UpdateRole(ctx, ref, q, o.dryRun)
	if err = errors.Join(err, done()); err != nil {
		return err
	}
	warnDangling(c.err, change.Role)
	return printChange(c, o, "updated", change)
}

// printChange prints a change's diff; the talk says what was changed.
func printChange(c *common, o *roleOptions, what string, change client.RoleChange) error {
	if o.json {
		return printJSON(c.out, change)
	}
	fmt.Fprintf(c.err, "role %s %s, revision %d\n", clean(change.Role.Name), o.done(what), change.Role.Revision)
	if len(change.Diff) == 0 {
		_, err := fmt.Fprintln(c.out, "no agent gains or loses a tool")
		return err
	}
	return diffTable(change.Diff).print(c.out)
}

func diffTable(diff org.Diff) table {
	rows := table{{"AGENT", "ROLE", "GAINS", "LOSES"}}
	for _, d := range diff {
		rows = append(rows, []string{string(d.Agent), d.Role, orDash(joinNames(d.Gains)), orDash(joinNames(d.Loses))})
	}
	return rows
}

func newRoleDeleteCommand(c *common) *cobra.Command {
	o := &roleOptions{}
	cmd := &cobra.Command{
		Use:   "delete ROLE",
		Short: "Take a role out of use; its agents lose every tool",
		Long: `Take a role out of use and print who loses which tools: its agents, and those
whose roles they made. The record stays, for those who read what happened.`,
		Example: "  rolecall role delete analyst --dry-run\n  rolecall role delete analyst",
		Args:    exactly(1, "one role, by id or name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.json = c.json
			return roleDeleteFunc(cmd.Context(), c, args[0], o)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "say what would be, and change nothing")
	return cmd
}

func roleDeleteFunc(ctx context.Context, c *common, ref string, o *roleOptions) error {
	api, done, err := connect(ctx, c, o.purpose(readWrite))
	if err != nil {
		return err
	}
	change, err := api.DeleteRole(ctx, ref, o.dryRun)
	if err = errors.Join(err, done()); err != nil {
		return err
	}
	return printChange(c, o, "deleted", change)
}
