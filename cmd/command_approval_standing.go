package cmd

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
)

const patternExample = `{"/amount": {"max": 100}}`

// patternFlags are the flags of a pattern for further calls.
type patternFlags struct {
	args string
	uses int
	time time.Duration
}

func (f *patternFlags) addFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.args, "pattern", "", "also approve further calls in this task whose arguments fit, such as "+patternExample)
	cmd.Flags().IntVar(&f.uses, "uses", 0, "how many further calls the pattern approves")
	cmd.Flags().DurationVar(&f.time, "for", 0, "how long the pattern approves calls, such as 30m")
}

// pattern returns the pattern of the flags, nil if there is none.
func (f *patternFlags) pattern() (*client.ApprovalPattern, error) {
	if f.args == "" {
		if f.uses != 0 || f.time != 0 {
			return nil, usageError{errors.New("--uses and --for belong to --pattern")}
		}
		return nil, nil
	}
	if !json.Valid([]byte(f.args)) {
		return nil, usageError{fmt.Errorf("--pattern is no JSON: use conditions by path, such as %s", patternExample)}
	}
	if f.time%time.Second != 0 {
		return nil, usageError{fmt.Errorf("--for is %s: use whole seconds", f.time)}
	}
	return &client.ApprovalPattern{Args: json.RawMessage(f.args), Uses: f.uses, Seconds: int64(f.time / time.Second)}, nil
}

func newApprovalStandingCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "standing",
		Short:   "List the patterns by which further calls of tasks are approved",
		Long:    `List the standing approvals: the patterns of "approval approve --pattern" that are in effect.`,
		Example: "  rolecall approval standing",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return printList(c.out, c.json, api.ListStandingApprovals(ctx), []string{"ID", "TOOL", "ROLE", "TASK", "PATTERN", "USED", "UNTIL"}, standingRow)
		}),
	}
}

func standingRow(s client.StandingApproval) []string {
	used, until := fmt.Sprint(s.Used), "the task ends"
	if s.Pattern.Uses > 0 {
		used += fmt.Sprintf(" of %d", s.Pattern.Uses)
	}
	if s.Until != nil {
		until = s.Until.UTC().Format(time.RFC3339)
	}
	return []string{s.ID, s.Tool, s.Role, string(s.Task), textutil.TruncateWidth(textutil.Sanitize(string(s.Pattern.Args)), maxShortArgs), used, until}
}

// maxShortArgs is how many characters of arguments a table shows.
const maxShortArgs = 60

func newApprovalRevokeCommand(c *common) *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "End a standing approval",
		Long:    `End a standing approval. No call that starts after this command uses it: people are asked again.`,
		Example: `  rolecall approval revoke 01a2227d-68c1-7b4f-9de0-9397cdc7eb31 --reason "enough for today"`,
		Args:    exactArgs(1, "the id of a standing approval"),
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, args []string) error {
			if err := api.RevokeStandingApproval(ctx, args[0], reason); err != nil {
				return err
			}
			if c.json {
				return printJSON(c.out, map[string]string{"id": args[0]})
			}
			_, err := fmt.Fprintf(c.out, "standing approval %s is revoked\n", textutil.Sanitize(args[0]))
			return err
		}),
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why, for the record")
	return cmd
}
