package cmd

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/modules"
)

func newKeyCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:     "key",
		Short:   "Create, list and rotate the keys of tool services",
		Example: "  rolecall key service joke-service\n  rolecall key list\n  rolecall key rotate joke-service",
	}, newKeyServiceCommand(c), newKeyListCommand(c), newKeyRotateCommand(c))
}

func newKeyServiceCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "service NAME",
		Short: "Create the key of a tool service",
		Long: `Create the key of a tool service and print it, only this once. With it the service
connects to the embedded broker, where its name is the user and the key the password, and
checks the call tokens of requests.

The keys are in the file keys.json of the data directory, which only its owner can read.
A backup does not contain them. A running rolecall uses a new key at once.`,
		Example: `  rolecall key service joke-service
  ROLECALL_SERVICE_KEY=$(rolecall key service joke-service) ./joke-service`,
		Args: exactArgs(1, "the name of one tool service"),
		RunE: func(_ *cobra.Command, args []string) error {
			return createAndPrintKey(c, "key service", args[0], (*keystore.Store).CreateKey)
		},
	}
}

func newKeyRotateCommand(c *common) *cobra.Command {
	var now bool
	cmd := &cobra.Command{
		Use:   "rotate NAME",
		Short: "Replace the key of a tool service",
		Long: `Create a new key of a tool service and print it, only this once. The old key stays valid
for an hour. Until then requests are signed with both keys, so the service can be started
again with the new one at any time. With --now the old keys end at once; use it when a key
is known to others.

A service that is connected with a key that has ended is disconnected within 10 seconds.`,
		Example: "  rolecall key rotate joke-service\n  rolecall key rotate --now joke-service",
		Args:    exactArgs(1, "the name of one tool service"),
		RunE: func(_ *cobra.Command, args []string) error {
			overlap := keystore.Overlap
			if now {
				overlap = 0
			}
			return createAndPrintKey(c, "key rotate", args[0], func(s *keystore.Store, use keystore.Use, name string) (keystore.Key, error) {
				return s.RotateKey(use, name, overlap)
			})
		},
	}
	cmd.Flags().BoolVar(&now, "now", false, "end the old keys at once")
	return cmd
}

// keyOutput is a key as commands print it with --json.
type keyOutput struct {
	ID      string     `json:"id"`
	Use     string     `json:"use"`
	Name    string     `json:"name"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
	Key     string     `json:"key,omitempty"`
}

// keyOutputOf returns a key as commands print it.
func keyOutputOf(k keystore.Key) keyOutput {
	out := keyOutput{ID: k.ID, Use: string(k.Use), Name: k.Name, Created: k.Created, Key: k.Secret}
	if !k.Expires.IsZero() {
		out.Expires = &k.Expires
	}
	return out
}

// createAndPrintKey creates a key of a service with create and prints it.
func createAndPrintKey(c *common, command, name string, create func(*keystore.Store, keystore.Use, string) (keystore.Key, error)) error {
	if err := c.rejectFiles(command); err != nil {
		return err
	}
	if err := modules.CheckName(name); err != nil {
		return usageError{err}
	}
	if err := os.MkdirAll(c.data, 0o700); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	k, err := create(keystore.Open(c.data), keystore.Service, name)
	if err != nil {
		return err
	}
	if c.json {
		return printJSON(c.out, keyOutputOf(k))
	}
	_, err = fmt.Fprintln(c.out, k.Secret)
	return err
}

func newKeyListCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "list",
		Short:   "List the keys, without their secrets",
		Example: "  rolecall key list",
		Args:    exactArgs(0, "no arguments"),
		RunE: func(*cobra.Command, []string) error {
			if err := c.rejectFiles("key list"); err != nil {
				return err
			}
			return runKeyList(c)
		},
	}
}

// runKeyList prints the keys that are valid.
func runKeyList(c *common) error {
	list, err := keystore.Open(c.data).ListKeys()
	seq := func(yield func(keyOutput, error) bool) {
		for _, k := range list {
			if !yield(keyOutputOf(k), nil) {
				return
			}
		}
		if err != nil {
			yield(keyOutput{}, err)
		}
	}
	return printList(c.out, c.json, seq, []string{"ID", "USE", "NAME", "CREATED", "EXPIRES"}, func(k keyOutput) []string {
		expires := "-"
		if k.Expires != nil {
			expires = k.Expires.UTC().Format(time.RFC3339)
		}
		return []string{k.ID, k.Use, k.Name, k.Created.UTC().Format(time.RFC3339), expires}
	})
}
