package cmd

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/config"
)

// tokenEntry is a token as a document of kind gateway lists it.
type tokenEntry struct {
	Name     string `yaml:"name" json:"name"`
	SHA256   string `yaml:"sha256" json:"sha256"`
	Role     string `yaml:"role,omitempty" json:"role,omitempty"`
	Operator bool   `yaml:"operator,omitempty" json:"operator,omitempty"`
	Scope    string `yaml:"scope,omitempty" json:"scope,omitempty"`
	Audience string `yaml:"audience,omitempty" json:"audience,omitempty"`
	Expires  string `yaml:"expires,omitempty" json:"expires,omitempty"`
}

// tokenOutput is the output of token create with --json.
type tokenOutput struct {
	Token string     `json:"token"`
	Entry tokenEntry `json:"entry"`
}

func newTokenCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:     "token",
		Short:   "Create and list bearer tokens for external clients",
		Example: "  rolecall token create ci --role reader\n  rolecall token list",
	}, newTokenCreateCommand(c), newTokenListCommand(c))
}

func newTokenCreateCommand(c *common) *cobra.Command {
	o := &tokenEntry{}
	cmd := &cobra.Command{
		Use:   "create NAME (--role ROLE | --operator | --scope metrics)",
		Short: "Create a bearer token for an external client",
		Long: `Create a bearer token for an external program or person. The command prints the token,
only this once, and the entry for the tokens of kind: gateway. The configuration
contains the hash of the token, never the token. The command changes nothing.

The holder of a token with --role acts in that role: it sees and calls the tools that
the role's agents would, and nothing else. The token is accepted over HTTP and MCP, and
by rolecall itself in ROLECALL_TOKEN. The holder of a token with --operator can do
everything. The holder of a token with --scope metrics reads /metrics, and nothing else.`,
		Example: `  rolecall token create ci --role reader
  rolecall token create inspector --role reader --audience http://127.0.0.1:7464/mcp --expires 2027-01-31
  rolecall token create prometheus --scope metrics
  rolecall token create me --operator --json`,
		Args: exactArgs(1, "one name for the token's holder"),
		RunE: func(_ *cobra.Command, args []string) error {
			if err := c.rejectFiles("token create"); err != nil {
				return err
			}
			o.Name = args[0]
			if err := o.check(time.Now()); err != nil {
				return usageError{err}
			}
			return runTokenCreate(c.out, *o, c.json)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Role, "role", "", "`role` of the configuration in which the holder acts")
	flags.BoolVar(&o.Operator, "operator", false, "the holder has the operator's permissions")
	flags.StringVar(&o.Scope, "scope", "", "`scope` of the holder without a role: metrics")
	flags.StringVar(&o.Audience, "audience", "", "`URL` that the token is valid for, including all paths below; default: the whole gateway")
	flags.StringVar(&o.Expires, "expires", "", "`date` from which the token is invalid, such as 2027-01-31")
	return cmd
}

// check rejects flags that make no useful entry. Whether the role exists is not known here.
func (e tokenEntry) check(now time.Time) error {
	if err := config.CheckTokenName(e.Name); err != nil {
		return err
	}
	if (e.Role != "" && e.Operator) || (e.Scope != "") == (e.Role != "" || e.Operator) {
		return errors.New("token create needs one of --role ROLE, --operator and --scope metrics")
	}
	if e.Scope != "" {
		if err := config.CheckTokenScope(e.Scope); err != nil {
			return fmt.Errorf("--scope %w", err)
		}
	}
	if e.Audience != "" {
		if err := config.CheckAudience(e.Audience); err != nil {
			return fmt.Errorf("--audience %w", err)
		}
	}
	if e.Expires == "" {
		return nil
	}
	at, err := config.ParseMoment(e.Expires)
	switch {
	case err != nil:
		return fmt.Errorf("--expires %w", err)
	case !now.Before(at):
		return fmt.Errorf("--expires %s is past", e.Expires)
	}
	return nil
}

func runTokenCreate(out io.Writer, e tokenEntry, asJSON bool) error {
	token, digest := auth.NewToken()
	e.SHA256 = hex.EncodeToString(digest[:])
	if asJSON {
		return printJSON(out, tokenOutput{token, e})
	}
	entry, err := yaml.Marshal([]tokenEntry{e})
	if err != nil {
		return err
	}
	text := "  " + strings.ReplaceAll(strings.TrimRight(string(entry), "\n"), "\n", "\n  ")
	_, err = fmt.Fprintf(out, "%s\n\n# The token is shown only once. Add this to the configuration; if that has a document\n# of kind gateway, add the entry to its tokens.\nkind: gateway\nname: http\ntokens:\n%s\n", token, text)
	return err
}
