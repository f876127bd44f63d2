package cmd

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
)

// defaultLogLimit is the number of events that a person is shown without --limit.
const defaultLogLimit = 100

// logOptions are the flags of log.
type logOptions struct {
	query  client.EventQuery
	types  []string
	limit  int
	follow bool

	flags *pflag.FlagSet
}

func newLogCommand(c *common) *cobra.Command {
	o := &logOptions{}
	cmd := &cobra.Command{
		Use:   "log",
		Short: "Show what happened, newest last",
		Long: `Show the recorded events of the organization, one per line: time, task, agent or caller,
and what happened. A denied call is shown with its code, the rule that denied it, and the
reason. An event is shown if it fits all filters. With --json, print one event per line
as "run --json" does.`,
		Example: `  rolecall log --denied --since 24h
  rolecall log --task last --limit 0
  rolecall log --caller ci --type tool_call,tool_error --follow
  rolecall log --tool run_command --json`,
		Args: exactArgs(0, "no arguments; name a task with --task"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(); err != nil {
				return err
			}
			return withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
				return runLog(ctx, c, api, o)
			})(cmd, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func (o *logOptions) addFlags(flags *pflag.FlagSet) {
	o.flags = flags
	flags.StringVar(&o.query.Task, "task", "", "only events of this `task`, by id or as \"last\"")
	flags.StringVar(&o.query.Agent, "agent", "", "only events of this `agent`, by id or role name")
	flags.StringVar(&o.query.Role, "role", "", "only events of agents and callers in this `role`")
	flags.StringVar(&o.query.Caller, "caller", "", "only calls and tasks of this `caller`: the name of its token, or operator")
	flags.StringVar(&o.query.Tool, "tool", "", "only calls of this `tool`")
	flags.StringSliceVar(&o.types, "type", nil, "only events of these `types`, such as tool_call,message")
	flags.BoolVar(&o.query.Denied, "denied", false, "only denied calls and tasks, and attempts to get more permissions")
	flags.StringVar(&o.query.Since, "since", "", "only events since this `time`: 90m, or 2026-01-31T08:00:00Z")
	flags.IntVar(&o.limit, "limit", defaultLogLimit, "show the newest `n` events; 0 shows all, which is the default with --json")
	flags.BoolVar(&o.follow, "follow", false, "wait for further events, until Ctrl-C")
}

// check rejects values that no request can have.
func (o *logOptions) check() error {
	if o.limit < 0 {
		return usageError{fmt.Errorf("--limit %d is out of range; use 0 for all events", o.limit)}
	}
	if o.query.Since != "" {
		if _, err := wire.ParseSince(o.query.Since, time.Now()); err != nil {
			return err // the command names the flag
		}
	}
	return o.parseTypes()
}

// parseTypes checks the values of --type.
func (o *logOptions) parseTypes() error {
	var known []string
	for _, t := range journal.EventTypes() {
		known = append(known, string(t))
	}
	o.query.Types = nil
	for _, name := range o.types {
		if name = strings.TrimSpace(name); !slices.Contains(known, name) {
			hint := textutil.SuggestName(name, known)
			if hint == "" {
				hint = "use some of " + strings.Join(known, ", ")
			}
			return usageError{fmt.Errorf("--type has the unknown type %q; %s", name, hint)}
		}
		o.query.Types = append(o.query.Types, journal.EventType(name))
	}
	return nil
}

func runLog(ctx context.Context, c *common, api *client.Client, o *logOptions) error {
	v := newLogView(c)
	q, follow := o.query, o.follow
	var err error
	if q.Task, err = resolveTask(ctx, api, q.Task); err != nil {
		return err
	}
	if q.Agent, err = resolveAgent(ctx, api, q.Agent); err != nil {
		return err
	}
	if q.Role, err = resolveRole(ctx, api, q.Role); err != nil {
		return err
	}
	if err := checkNames(ctx, api, q, follow); err != nil {
		return err
	}
	unserved := follow && api.IsLocal()
	if unserved {
		follow = false
	}
	if err := showLog(ctx, c, api, o, q, follow, v); err != nil || !unserved {
		return err
	}
	return fmt.Errorf("--follow has nothing to wait for: no process serves %s; start \"rolecall serve\"", c.data)
}

// showLog shows the events that a query selects. With follow it also shows later events.
func showLog(ctx context.Context, c *common, api *client.Client, o *logOptions, q client.EventQuery, follow bool, v view) error {
	if limit := o.limitFor(c); limit > 0 {
		last, err := showNewest(ctx, c, api, q, limit, v)
		if err != nil || !follow {
			return err
		}
		q.After = last
	}
	for e, err := range api.StreamEvents(ctx, q, follow) {
		if err != nil && follow && ctx.Err() != nil { // the user has ended it
			return nil
		}
		if err == nil {
			err = v.show(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// limitFor returns the limit of past events, 0 for none.
func (o *logOptions) limitFor(c *common) int {
	if c.json && !o.flags.Changed("limit") {
		return 0
	}
	return o.limit
}

// showNewest shows the newest events. It returns the number after which a stream has the later
// events. It notes on stderr if there are older events, or no events at all.
func showNewest(ctx context.Context, c *common, api *client.Client, q client.EventQuery, limit int, v view) (last uint64, err error) {
	page, err := api.NewestEvents(ctx, q, max(limit, limit+1)) // the next one is noticed, not shown
	if err != nil {
		return 0, err
	}
	list := page.Items
	if len(list) == 0 {
		fmt.Fprintln(c.err, "no recorded event matches")
	}
	if len(list) > limit {
		list = list[:limit]
		fmt.Fprintf(c.err, "only the newest %s shown; --limit 0 shows all\n", counted(limit, "event is", "events are"))
	}
	for _, e := range slices.Backward(list) {
		if err := v.show(e); err != nil {
			return 0, err
		}
	}
	return page.Last, nil
}
