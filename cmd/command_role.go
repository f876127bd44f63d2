package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

func newRoleCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "role",
		Short: "Manage roles",
		Long: `A role decides which tool groups its agents can use, and which groups they can grant
to roles they create. A role is named by its exact name, its id, or the beginning of
its id if that is unique and has at least 4 characters. Tasks of several callers may
have roles of one name; it is then an error that lists the ids.

Group ids are bound to their owner when the role is written. A group that is not
registered any more, or has another owner now, has no tools and is shown as dangling.
A group or a model that does not exist is an error, unless --allow-unknown is given.
Which models exist is known only while a configuration is active: that of -f, or that
of the process that serves the data directory.`,
		Example: `  rolecall role list
  rolecall role create analyst --prompt "You read logs." --use workspace,command
  rolecall role update analyst --use workspace --dry-run`,
	}, newRoleListCommand(c), newRoleShowCommand(c), newRoleCreateCommand(c), newRoleUpdateCommand(c), newRoleDeleteCommand(c),
		newRoleLintCommand(c))
}

func newRoleListCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List roles, sorted by name",
		Example: "  rolecall role list\n  rolecall role list --json",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return runRoleList(ctx, c.out, api, c.json)
		}),
	}
}

func runRoleList(ctx context.Context, out io.Writer, api *client.Client, asJSON bool) error {
	head := []string{"NAME", "ID", "USES", "MAY GRANT", "CREATED BY", "MODEL", "STATUS"}
	return printList(out, asJSON, api.ListRoles(ctx), head, func(r client.Role) []string {
		return []string{r.Name, string(r.ID), groupsOf(r, r.Use), groupsOf(r, r.Grant), r.CreatedBy, orDash(string(r.Model)), roleStatus(r)}
	})
}

// pausedBy says who has paused a role, and why.
func pausedBy(r client.Role) (text string) {
	if r.SuspendedBy != "" {
		text = " by " + r.SuspendedBy
	}
	if r.SuspendReason != "" {
		text += ": " + r.SuspendReason
	}
	return text
}

// roleStatus returns the status of a role: the status of its record, or paused.
func roleStatus(r client.Role) string {
	if r.Suspended() && r.Status == org.Active {
		return "paused"
	}
	return string(r.Status)
}

// groupsOf lists the groups of a role and marks dangling groups.
func groupsOf(r client.Role, set toolgroups.GroupSet) string {
	if set.IsAll() {
		return "all"
	}
	ids := set.GroupIDs()
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
		Short: "Show a role and its tools",
		Long: `Show a role and the tools that it has now, each with the group that has it, its
effect and its flags. With --json, print the stored record; a field "tools" is added, and a field
"dangling" if some of its groups have no tools.`,
		Example: "  rolecall role show analyst\n  rolecall role show analyst --json",
		Args:    exactArgs(1, "one role, by id or name"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return runRoleShow(ctx, c.out, api, args[0], c.json)
		}),
	}
}

func runRoleShow(ctx context.Context, out io.Writer, api *client.Client, ref string, asJSON bool) error {
	ref, err := resolveRole(ctx, api, ref)
	if err != nil {
		return err
	}
	r, err := api.FindRole(ctx, ref)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, r)
	}
	if err := roleFields(r).print(out); err != nil || len(r.Tools) == 0 {
		return err
	}
	rows := table{{"TOOL", "GROUP", "EFFECT", "FLAGS"}}
	for _, t := range r.Tools {
		rows = append(rows, []string{t.Name, string(t.Group), t.Effect, flagsText(t.ToolFlags)})
	}
	return rows.printBelow(out)
}

func roleFields(r client.Role) fields {
	f := fields{{"name", r.Name}, {"id", string(r.ID)}, {"status", roleStatus(r)}}
	if r.Suspended() {
		f = append(f, [2]string{"paused", "since " + formatTime(r.SuspendedAt) + pausedBy(r)})
	}
	if r.Description != "" {
		f = append(f, [2]string{"description", r.Description})
	}
	f = append(f, fields{
		{"uses", groupsOf(r, r.Use)}, {"may grant", groupsOf(r, r.Grant)}, {"model", string(r.Model)},
		{"created by", r.CreatedBy + ", " + formatTime(r.CreatedAt)}, {"revision", strconv.FormatUint(r.Revision, 10)},
	}...)
	if r.CallerRole != "" {
		f = append(f, [2]string{"of caller", r.Caller})
	}
	if r.Pattern != "" {
		f = append(f, [2]string{"pattern", string(r.Pattern)})
	}
	if r.ToolGated != toolgroups.NotGated {
		f = append(f, [2]string{"tool-gated", gatedText(r.ToolGated)})
	}
	if r.Server != "" {
		f = append(f, [2]string{"server", r.Server})
	}
	if as := r.TasksAs; as != nil {
		f = append(f, [2]string{"tasks as", tasksAsText(*as)})
	}
	if r.Agent != nil {
		f = append(f, [2]string{"agent groups", agentGroupsText(r.Agent)})
	}
	if len(r.States) > 0 {
		f = append(f, [2]string{"states", strings.Join(r.States, ", ")})
	}
	for _, name := range r.Bind.ToolNames() {
		f = append(f, [2]string{"bind " + name, r.Bind[name].String()})
	}
	for _, rule := range r.Approval {
		f = append(f, [2]string{"approval", rule.String()})
	}
	if r.Limits.Rounds > 0 {
		f = append(f, [2]string{"rounds", strconv.Itoa(r.Limits.Rounds)})
	}
	for _, l := range []struct {
		name  string
		value int
	}{{"depth", r.Limits.Depth}, {"hires", r.Limits.Hires}, {"seconds", r.Limits.Seconds}} {
		if l.value > 0 {
			f = append(f, [2]string{l.name, strconv.Itoa(l.value)})
		}
	}
	if b := r.Limits.Budget; b != (org.ModelAllowance{}) {
		f = append(f, [2]string{"budget", allowanceText(b)})
	}
	if r.Result != nil {
		f = append(f, [2]string{"result", string(r.Result.Schema)})
	}
	return append(f, [2]string{"prompt", r.Prompt})
}

// agentGroupsText names the groups of requests that name none.
func agentGroupsText(a *org.AskSettings) string {
	if a.DefaultGroups == nil {
		return string(toolgroups.DefaultGroup)
	}
	return a.DefaultGroups.String()
}

// tasksAsText names the role that bounds the tasks of callers.
func tasksAsText(as client.BoundingRole) string {
	if as.Status != org.Active {
		return as.Name + " (deleted: its tasks may use nothing)"
	}
	return as.Name
}

// roleOptions are the flags of role create and role update.
type roleOptions struct {
	name, prompt, model string
	description         string
	pattern, server     string
	tasksAs             string
	agentGroups, states []string
	result, bounds      string // files
	toolGated           gatingFlag
	limits              map[string]int
	use, grant          groupOptions
	allowUnknown        bool
	revision            uint64
	dryRun, json        bool

	flags *pflag.FlagSet
}

func (o *roleOptions) addFlags(flags *pflag.FlagSet) {
	o.flags = flags
	flags.StringVar(&o.description, "description", "", "`text` of one line that says what its agents are for; models that choose a role read it")
	flags.StringVar(&o.prompt, "prompt", "", "system `prompt` of its agents")
	flags.StringVar(&o.model, "model", "", "`name` of the model of its agents; default: the organization's model")
	o.use.addFlags(flags, "use", "its agents can use")
	o.grant.addFlags(flags, "grant", "its agents can grant to roles they create")
	flags.VarPF(&o.toolGated, "tool-gated", "", "its agents answer from the results of their tools only; strict withholds answers of turns without a successful call").NoOptDefVal = toolgroups.Gated.String()
	flags.StringVar(&o.server, "server", "", "restrict its agents to the tools of this `module`")
	flags.StringVar(&o.tasksAs, "tasks-as", "", "bound the tasks of its callers by what this `role` may use, and let them start tasks; none for their own role")
	flags.StringSliceVar(&o.agentGroups, "agent-groups", nil, "let its callers ask its agents, with these tool `groups` when a request names none; none to let them ask nothing")
	flags.StringSliceVar(&o.states, "states", nil, "workflow `states` in which requests of its callers may begin; none for no states")
	flags.StringVar(&o.pattern, "pattern", "", "how its agents work: react or plan")
	flags.StringVar(&o.result, "result", "", "require results of its agents that fit the JSON schema in this `file`")
	flags.StringVar(&o.bounds, "bind", "", "bound the arguments of tools by the JSON in this `file`; none for no bounds")
	flags.StringToIntVar(&o.limits, "limits", nil, "limits of its agents as `NAME=NUMBER`, such as rounds=20 or depth=1; 0 is the organization's")
	flags.BoolVar(&o.allowUnknown, "allow-unknown", false, "accept tool groups, a module and a model that do not exist; the groups have no effect until the role is updated")
	flags.BoolVar(&o.dryRun, "dry-run", false, "show the result without changing anything")
}

// gatingFlag is the value of --tool-gated.
type gatingFlag struct{ toolgroups.Gating }

// Set implements pflag.Value.
func (f *gatingFlag) Set(text string) (err error) {
	f.Gating, err = toolgroups.ParseGating(text)
	return err
}

// Type implements pflag.Value.
func (f *gatingFlag) Type() string { return gatingType }

const gatingType = "true|strict"

// gatedText returns what role show says of a tool-gated role.
func gatedText(g toolgroups.Gating) string {
	if g == toolgroups.StrictlyGated {
		return "strict"
	}
	return "yes"
}

// noneWord is the value of --tasks-as for no role, of --bind for no bounds, and of lists for none.
// A role of this name is named by its id.
const noneWord = "none"

// isNone reports whether a list of a flag is the word none.
func isNone(list []string) bool { return slices.Equal(list, []string{noneWord}) }

// resolveTasksAs replaces the beginning of an id in a request by the id.
func resolveTasksAs(ctx context.Context, api *client.Client, q client.RoleRequest) (err error) {
	if q.Tasks != nil {
		q.Tasks.As, err = resolveRole(ctx, api, q.Tasks.As)
	}
	return err
}

// request returns the request for the flags that are given.
func (o *roleOptions) request() (q client.RoleRequest, err error) {
	q = client.RoleRequest{Name: o.name, Description: o.description, Prompt: o.prompt, Model: o.model, Pattern: org.CollaborationPattern(o.pattern), AllowUnknown: o.allowUnknown, Revision: o.revision}
	if q.Use, err = o.use.set(); err != nil {
		return q, err
	}
	if q.Grant, err = o.grant.set(); err != nil {
		return q, err
	}
	for name, value := range o.limits {
		limit, ok := map[string]*int{"rounds": &q.Limits.Rounds, "depth": &q.Limits.Depth, "hires": &q.Limits.Hires, "seconds": &q.Limits.Seconds}[name]
		if !ok {
			return q, usageError{fmt.Errorf("--limits has no limit %q; it has rounds, depth, hires and seconds", name)}
		}
		*limit = value
	}
	if o.flags.Changed("tool-gated") {
		q.ToolGated = &o.toolGated.Gating
	}
	if o.flags.Changed("server") {
		q.Server = &o.server
	}
	if o.tasksAs != "" && o.tasksAs != noneWord {
		q.Tasks = &client.TasksRequest{As: o.tasksAs}
	}
	if o.flags.Changed("agent-groups") && !isNone(o.agentGroups) {
		set := toolgroups.SetOfNames(o.agentGroups...)
		q.Agent = &org.AskSettings{DefaultGroups: &set}
	}
	if !isNone(o.states) {
		q.States = o.states
	}
	if o.result != "" {
		schema, err := readSchema(o.result)
		if err != nil {
			return q, err
		}
		q.Result = &client.ResultSpec{Schema: schema}
	}
	if q.Bind, err = readBounds(o.bounds); err != nil {
		return q, err
	}
	q.Defaults = o.resetFields(q)
	return q, nil
}

// readBounds returns the bounds in a file, nil without a file and for none.
func readBounds(path string) (json.RawMessage, error) {
	if path == "" || path == noneWord {
		return nil, nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, usageError{fmt.Errorf("--bind: %w", err)}
	}
	if _, err := bounds.ParseBind(text); err != nil {
		return nil, usageError{fmt.Errorf("--bind: %s: %w", path, err)}
	}
	return text, nil
}

// resetFields returns the fields that the flags set back to their default.
func (o *roleOptions) resetFields(q client.RoleRequest) (fields []org.RoleField) {
	for _, f := range []struct {
		reset bool
		field org.RoleField
	}{
		{o.flags.Changed("description") && q.Description == "", org.DescriptionField},
		{o.flags.Changed("prompt") && q.Prompt == "", org.PromptField}, {o.flags.Changed("model") && q.Model == "", org.ModelField},
		{o.flags.Changed("pattern") && q.Pattern == "", org.PatternField},
		{o.flags.Changed("tasks-as") && q.Tasks == nil, org.TasksField},
		{o.flags.Changed("result") && q.Result == nil, org.ResultField},
		{o.flags.Changed("agent-groups") && q.Agent == nil, org.AgentField}, {o.flags.Changed("states") && len(q.States) == 0, org.StatesField},
		{o.flags.Changed("bind") && q.Bind == nil, org.BindField},
		{o.use.toDefault, org.UseField}, {o.grant.toDefault, org.GrantField},
	} {
		if f.reset {
			fields = append(fields, f.field)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(o.limits)) {
		if o.limits[name] == 0 {
			fields = append(fields, org.RoleField("limits."+name))
		}
	}
	return fields
}

// isChange reports whether a flag is given that changes the role.
func (o *roleOptions) isChange() (change bool) {
	o.flags.Visit(func(f *pflag.Flag) {
		switch f.Name {
		case "description", "prompt", "model", "use", "use-all", "use-none", "use-default", "grant", "grant-all", "grant-none", "grant-default",
			"tool-gated", "server", "tasks-as", "agent-groups", "states", "pattern", "limits", "result", "bind", "name":
			change = true
		}
	})
	return change
}

// groupOptions are four flags that select tool groups: some, all, none or the default.
type groupOptions struct {
	flag                 string
	ids                  []string
	all, none, toDefault bool
	given                func() bool // reports whether ids were given
}

func (o *groupOptions) addFlags(flags *pflag.FlagSet, name, what string) {
	o.flag = name
	o.given = func() bool { return flags.Changed(name) }
	flags.StringSliceVar(&o.ids, name, nil, "tool `groups` "+what)
	flags.BoolVar(&o.all, name+"-all", false, "all tool groups, including future ones")
	flags.BoolVar(&o.none, name+"-none", false, "no tool groups")
	flags.BoolVar(&o.toDefault, name+"-default", false, "the tool groups of a role that is created without these flags")
}

// set returns the selected groups; nil if no flag is given, or the default.
func (o *groupOptions) set() (*toolgroups.GroupSet, error) {
	chosen, n := toolgroups.SetOfNames(o.ids...), 0
	for _, on := range []bool{o.given(), o.all, o.none, o.toDefault} {
		if on {
			n++
		}
	}
	switch {
	case n > 1:
		return nil, usageError{fmt.Errorf("--%s, --%s-all, --%s-none and --%s-default are mutually exclusive", o.flag, o.flag, o.flag, o.flag)}
	case slices.Contains(o.ids, ""):
		return nil, usageError{fmt.Errorf("--%s has an empty group id; use --%s-none for no groups", o.flag, o.flag)}
	case n == 0, o.toDefault:
		return nil, nil
	case o.all:
		chosen = toolgroups.AllGroups()
	}
	return &chosen, nil
}

func newRoleCreateCommand(c *common) *cobra.Command {
	o := &roleOptions{}
	cmd := &cobra.Command{
		Use:   "create NAME",
		Short: "Create a role",
		Long: `Create a role. Without a use flag, its agents can use the groups that the configuration
lists as defaultToolGroups, or else all tool groups, including future ones. Without a
grant flag, they can grant what they can use if that includes org_management, and
nothing otherwise.

Callers in a role can start tasks if the role has a tool of org_management. Such a task
can use no more than the role. With --tasks-as they can start tasks in any case, and
what that other role can use bounds the tasks instead.`,
		Example: `  rolecall role create analyst --prompt "You read logs." --use workspace,command
  rolecall role create reader --description "Reads files and answers questions about them." --use workspace
  rolecall role create lead --prompt "You lead." --use org_management --grant workspace
  rolecall role create clerk --use workspace --tasks-as ops
  rolecall role create counter --prompt "You count." --use workspace --result count.json
  rolecall role create thinker --prompt "You only think." --use-none`,
		Args: exactArgs(1, "one name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.name, o.json = args[0], c.json
			return runRoleCreate(cmd.Context(), c, o)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runRoleCreate(ctx context.Context, c *common, o *roleOptions) error {
	q, err := o.request()
	if err != nil {
		return err
	}
	api, done, err := connect(ctx, c, o.access(createIfMissing, createInCopy))
	if err != nil {
		return err
	}
	known, _ := api.FindRole(ctx, q.Name)
	var r client.Role
	if err = resolveTasksAs(ctx, api, q); err == nil {
		r, err = api.CreateRole(ctx, q, o.dryRun)
	}
	if err = done(err); err != nil {
		return err
	}
	outcome := o.outcome("created")
	if known.ID != "" && known.ID == r.ID { // creating succeeds only for an identical role
		outcome = "exists already and is the same; nothing was changed"
	}
	warnIneffective(c.err, r)
	if o.json {
		return printJSON(c.out, r)
	}
	fmt.Fprintf(c.err, "role %s %s\n", textutil.Sanitize(r.Name), outcome)
	return roleFields(r).print(c.out)
}

// access returns the access mode that the command needs: p, or dry for a dry run.
func (o *roleOptions) access(p, dry accessMode) accessMode {
	if o.dryRun {
		return dry
	}
	return p
}

func (o *roleOptions) outcome(what string) string {
	if o.dryRun {
		return "would be " + what
	}
	return what
}

// warnIneffective warns about groups of a written role that are not registered, and about a
// model that could not be checked.
func warnIneffective(stderr io.Writer, r client.Role) {
	for _, id := range r.Dangling {
		fmt.Fprintf(stderr, "tool group %s is not registered and has no tools; once it is registered, update the role\n", textutil.Sanitize(string(id)))
	}
	if len(r.Unchecked) > 0 {
		fmt.Fprintf(stderr, "it is not checked whether there is a model %q, because no configuration is active; -f FILE names one\n", textutil.Sanitize(string(r.Model)))
	}
}

func newRoleUpdateCommand(c *common) *cobra.Command {
	o := &roleOptions{}
	cmd := &cobra.Command{
		Use:   "update ROLE",
		Short: "Change a role and show who gains or loses tools",
		Long: `Change the given fields of a role and print the effective-permission diff: which roles,
agents and outside callers gain or lose which tools. A role stands for the agents that
are spawned of it from now on. Agents of ended tasks are left out. At most 100 of each
are listed; the others are counted. The change is effective when the command returns: no call that
it forbids starts afterwards. Roles of the configuration are changed in its file.

--use-default, --grant-default, --tasks-as none, --agent-groups none, --states none,
--bind none and an empty --description, --prompt, --model, --server, --states, --pattern
or --result set the field to what a new role gets. A limit of 0 in --limits is removed;
the other limits stay. Updates of one role take effect one after another; --revision
rejects the change if there was another one since.`,
		Example: `  rolecall role update analyst --use workspace --dry-run
  rolecall role update analyst --use workspace
  rolecall role update analyst --use-default --limits rounds=20 --revision 2
  rolecall role update analyst --name reader --prompt "You only read."`,
		Args: exactArgs(1, "one role, by id or name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.json = c.json
			return runRoleUpdate(cmd.Context(), c, args[0], o)
		},
	}
	o.addFlags(cmd.Flags())
	cmd.Flags().StringVar(&o.name, "name", "", "new `name` of the role")
	cmd.Flags().Uint64Var(&o.revision, "revision", 0, "change the role only if it has this `revision`, as role show prints it")
	return cmd
}

func runRoleUpdate(ctx context.Context, c *common, ref string, o *roleOptions) error {
	q, err := o.request()
	if err != nil {
		return err
	}
	if o.flags.Changed("revision") && o.revision == 0 {
		return usageError{errors.New("--revision 0 does not exist; the first revision of a role is 1")}
	}
	if !o.isChange() {
		return usageError{errors.New("nothing to change; use --use, --grant, --description, --prompt, --model, --name, --tool-gated, --server, --tasks-as, --agent-groups, --states, --pattern, --result, --bind or --limits")}
	}
	api, done, err := connect(ctx, c, o.access(readWrite, readOnly))
	if err != nil {
		return err
	}
	var change client.RoleChange
	if ref, err = resolveRole(ctx, api, ref); err == nil {
		err = resolveTasksAs(ctx, api, q)
	}
	if err == nil {
		change, err = api.UpdateRole(ctx, ref, q, o.dryRun)
	}
	if err = done(err); err != nil {
		return err
	}
	warnIneffective(c.err, change.Role)
	if err := printChange(c, o, "updated", change); err != nil || change.Refusal == "" {
		return err
	}
	return errcode.New(errcode.Conflict, "%s", change.Refusal)
}

// printChange prints the diff of a change on stdout, and what was changed on stderr.
func printChange(c *common, o *roleOptions, what string, change client.RoleChange) error {
	if o.json {
		return printJSON(c.out, change)
	}
	fmt.Fprintf(c.err, "role %s %s, revision %d\n", textutil.Sanitize(change.Role.Name), o.outcome(what), change.Role.Revision)
	return printDiff(c.out, change.Diff)
}

// printDiff prints who is affected by a change.
func printDiff(out io.Writer, diff org.PermissionDiff) error {
	if diff.IsEmpty() {
		_, err := fmt.Fprintln(out, "no agent, role or caller gains or loses a tool")
		return err
	}
	if err := diffTable(diff).print(out); err != nil {
		return err
	}
	for _, d := range diff.Roles {
		if err := printBounds(out, d.Name, d.Bounds); err != nil {
			return err
		}
	}
	for _, more := range []struct {
		n    int
		what string
	}{{diff.Counts.Roles - len(diff.Roles), "roles"}, {diff.Counts.Agents - len(diff.Agents), "agents"}, {diff.Counts.Callers - len(diff.Callers), "callers"}, {diff.Counts.Tasks - len(diff.Tasks), "roles whose tasks are affected"}} {
		if more.n > 0 {
			fmt.Fprintf(out, "and %d more %s\n", more.n, more.what)
		}
	}
	return nil
}

// printBounds prints how the bounds on the tools of a role change.
func printBounds(out io.Writer, role string, list []org.BoundChange) error {
	for _, b := range list {
		for _, change := range []struct {
			sign  string
			rules []bounds.Rule
		}{{"-", b.Removed}, {"+", b.Added}} {
			for _, r := range change.rules {
				text := textutil.Sanitize(fmt.Sprintf("%s bound of %s on %s: %s", change.sign, role, b.Tool, r))
				if _, err := fmt.Fprintln(out, textutil.TruncateWidth(text, 1000)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func diffTable(diff org.PermissionDiff) table {
	rows := table{{"AFFECTED", "ROLE", "GAINS", "LOSES"}}
	add := func(who, role string, c org.AccessChange) {
		gains := orDash(joinNames(c.Gains))
		if c.Hosts != nil {
			gains += " (reaches other hosts)"
		}
		if len(c.Bounds) > 0 {
			gains += " (other bounds)"
		}
		rows = append(rows, []string{who, role, gains, orDash(joinNames(c.Loses))})
	}
	for _, d := range diff.Roles {
		add("role "+d.Name, d.Name, d.AccessChange)
	}
	for _, d := range diff.Agents {
		add("agent "+string(d.Agent), d.Role, d.AccessChange)
	}
	for _, d := range diff.Callers {
		add("caller "+string(d.User), d.Role, d.AccessChange)
	}
	for _, d := range diff.Tasks {
		add("tasks of "+callerWithRole(d.Role, d.As), d.Role, d.AccessChange)
	}
	return rows
}

func newRoleDeleteCommand(c *common) *cobra.Command {
	o := &roleOptions{}
	cmd := &cobra.Command{
		Use:   "delete ROLE",
		Short: "Delete a role; its agents lose all tools",
		Long: `Delete a role and print who loses which tools: the role, its agents and outside callers,
and the roles that its agents created with theirs. The record is kept for the history.`,
		Example: "  rolecall role delete analyst --dry-run\n  rolecall role delete analyst",
		Args:    exactArgs(1, "one role, by id or name"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.json = c.json
			return runRoleDelete(cmd.Context(), c, args[0], o)
		},
	}
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "show the result without changing anything")
	return cmd
}

func runRoleDelete(ctx context.Context, c *common, ref string, o *roleOptions) error {
	api, done, err := connect(ctx, c, o.access(readWrite, readOnly))
	if err != nil {
		return err
	}
	var change client.RoleChange
	if ref, err = resolveRole(ctx, api, ref); err == nil {
		change, err = api.DeleteRole(ctx, ref, o.dryRun)
	}
	if err = done(err); err != nil {
		return err
	}
	return printChange(c, o, "deleted", change)
}
