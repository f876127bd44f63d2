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

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/gateway/auth"
)

// tokenEntry is a token as kind: gateway lists it.
type tokenEntry struct {
	Name     string `yaml:"name" json:"name"`
	SHA256   string `yaml:"sha256" json:"sha256"`
	Role     string `yaml:"role,omitempty" json:"role,omitempty"`
	Operator bool   `yaml:"operator,omitempty" json:"operator,omitempty"`
	Audience string `yaml:"audience,omitempty" json:"audience,omitempty"`
	Expires  string `yaml:"expires,omitempty" json:"expires,omitempty"`
}

// tokenShown is what token says with --json.
type tokenShown struct {
	Token string     `json:"token"`
	Entry tokenEntry `json:"entry"`
}

func newTokenCommand(c *common) *cobra.Command {
	o := &tokenEntry{}
	cmd := &cobra.Command{
		Use:   "token NAME (--role ROLE | --operator)",
		Short: "Make a bearer token for somebody outside",
		Long: `Make a bearer token for a program or person outside and print it, this once,
with what to write under tokens of kind: gateway. The configuration holds the
token's hash, never the token; nothing is changed by this command.

The holder of a token with --role acts in that role: it sees and calls what the
role's agents would, and nothing else exists for it. The same token is taken
over HTTP and MCP, and by rolecall itself, from ROLECALL_TOKEN. --operator makes
a token that may do everything.`,
		Example: `  rolecall token ci --role reader
  rolecall token inspector --role reader --audience http://127.0.0.1:7464/mcp --expires 2027-01-31
  rolecall token me --operator --json`,
		Args: exactly(1, "one name for the token's holder"),
		RunE: func(_ *cobra.Command, args []string) error {
			o.Name = args[0]
			if err := o.check(time.Now()); err != nil {
				return usageError{err}
			}
			return tokenFunc(c.out, *o, c.json)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.Role, "role", "", "the `role`, of the configuration, that the holder acts in")
	flags.BoolVar(&o.Operator, "operator", false, "the holder is the operator")
	flags.StringVar(&o.Audience, "audience", "", "the `URL` that the token is for, with what is below; all of the gateway when left out")
	flags.StringVar(&o.Expires, "expires", "", "the `date` from which the token is not taken any more, as 2027-01-31")
	return cmd
}

// check refuses what a configuration would refuse.
func (e tokenEntry) check(now time.Time) error {
	if err := config.CheckTokenName(e.Name); err != nil {
		return err
	}
	if (e.Role != "") == e.Operator {
		return errors.New("token needs either --role ROLE or --operator")
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

func tokenFunc(out io.Writer, e tokenEntry, asJSON bool) error {
	token, digest := auth.NewToken()
	e.SHA256 = hex.EncodeToString(digest[:])
	if asJSON {
		return printJSON(out, tokenShown{token, e})
	}
	entry, err := yaml.Marshal([]tokenEntry{e})
	if err != nil {
		return err
	}
	text := "  " + strings.ReplaceAll(strings.TrimRight(string(entry), "\n"), "\n", "\n  ")
	_, err = fmt.Fprintf(out, "%s\n\n# It is shown this once. For the configuration; where that has a document of kind\n# gateway, the entry goes under its tokens.\nkind: gateway\nname: door\ntokens:\n%s\n", token, text)
	return err
}
