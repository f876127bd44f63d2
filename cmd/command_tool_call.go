package cmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
)

func newToolCallCommand(c *common) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "call --role ROLE TOOL [JSON]",
		Short: "Call a tool in a role",
		Long: `Call TOOL with the arguments in JSON, as an external caller in the role would. The call
is checked and recorded. JSON is an object; "-" reads it from stdin; without it the
arguments are {}.

The result is printed as JSON. If the call is denied or the tool fails, the exit status
is 1. --json adds the id of the call, whether it was denied, and the code.

If a process serves the data directory, or ROLECALL_URL names a gateway, that process
makes the call. Otherwise the organization runs in this process with the configuration
of -f.`,
		Example: `  rolecall tool call -f org.yaml --role reader list_files
  rolecall tool call --role reader read_file '{"path": "notes.txt"}'
  rolecall tool call --role reader http_request - < request.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 || len(args) == 2 {
				return exactArgs(len(args), "a tool name and its arguments in JSON")(cmd, args)
			}
			return usageError{fmt.Errorf("%s takes a tool name and its arguments in JSON (arguments given: %d)", cmd.CommandPath(), len(args))}
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if role == "" {
				return usageError{errors.New("tool call needs --role ROLE, the id or name of the role in which to call")}
			}
			call := client.CallRequest{Role: role}
			var err error
			if len(args) == 2 {
				call.Args, err = callArguments(c.in, args[1])
			}
			if err != nil {
				return err
			}
			return withOrganization(cmd.Context(), c, func(ctx context.Context, api *client.Client) error {
				return runToolCall(ctx, c, api, args[0], call)
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "call in this `role`, by id or name")
	return cmd
}

// maxCallArguments is the largest size of the arguments of a call in bytes.
const maxCallArguments = 1 << 20

// callArguments returns the arguments of a call: text, or what in contains if text is "-".
func callArguments(in io.Reader, text string) (json.RawMessage, error) {
	args := []byte(text)
	if text == "-" {
		var err error
		if args, err = io.ReadAll(io.LimitReader(in, maxCallArguments+1)); err != nil {
			return nil, fmt.Errorf("read the arguments: %w", err)
		}
	}
	if len(args) > maxCallArguments {
		return nil, usageError{fmt.Errorf("the arguments have more than %d bytes", maxCallArguments)}
	}
	if err := strictjson.CheckObject(args, nil); err != nil {
		return nil, usageError{fmt.Errorf("the arguments are not one JSON object: %w", err)}
	}
	return args, nil
}

func runToolCall(ctx context.Context, c *common, api *client.Client, name string, call client.CallRequest) error {
	var err error
	if call.Role, err = resolveRole(ctx, api, call.Role); err != nil {
		return err
	}
	r, err := api.CallTool(ctx, name, call)
	if err != nil {
		return err
	}
	switch {
	case c.json:
		err = printJSON(c.out, r)
	case r.Denied:
		reason := denialReason(r.Result)
		if r.Code == errcode.UnknownTool {
			reason = c.addConfigHint(api, reason)
		}
		fmt.Fprintf(c.err, "rolecall: denied: %s: %s\n", r.Code, textutil.Sanitize(reason))
	default:
		err = printJSON(c.out, r.Result)
	}
	if err == nil && r.IsError {
		return errReported
	}
	return err
}

// denialReason returns the message in the result of a denied call.
func denialReason(result json.RawMessage) string {
	var denial struct{ Message string }
	if json.Unmarshal(result, &denial) != nil || denial.Message == "" {
		return string(bytes.TrimSpace(result))
	}
	return denial.Message
}
