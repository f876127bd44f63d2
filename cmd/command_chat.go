package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/org"
)

func newChatCommand(c *common) *cobra.Command {
	var role string
	cmd := &cobra.Command{
		Use:   "chat [--role ROLE] [-f …]",
		Short: "Talk with an agent at the terminal",
		Long: `Talk with root, or with an agent of --role. Each line is a message to the agent. The
answer is printed on stdout as it comes, events are shown on stderr.

Ctrl-C interrupts the answer. Ctrl-C twice, or Ctrl-D, ends the conversation. It is a
task, which is recorded and then cancelled.

If a process serves the data directory, or ROLECALL_URL names one, the agent works
there. Otherwise it works in this process.`,
		Example: `  rolecall chat -f org.yaml
  rolecall chat -f org.yaml --role analyst`,
		Args: exactArgs(0, "no arguments"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if c.json {
				return usageError{errors.New("chat prints no JSON; use \"rolecall task follow --json\" for its events")}
			}
			signals := make(chan os.Signal, 4) // chat handles them itself: the first does not end it
			signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
			defer signal.Stop(signals)
			if role == org.RootRole {
				role = ""
			}
			return runChat(context.WithoutCancel(cmd.Context()), c, role, signals)
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "talk with an agent of this `role`, by id or name; default: root")
	return cmd
}

// runChat talks with an agent in the process that serves the organization, or in this one.
func runChat(ctx context.Context, c *common, role string, signals <-chan os.Signal) error {
	return withServing(ctx, c, func(api *client.Client) error {
		return chatServed(ctx, c, api, role, signals)
	}, func() (began bool, err error) { return true, chatHere(ctx, c, role, signals) })
}

// chatServed talks with an agent in the process that serves the organization.
func chatServed(ctx context.Context, c *common, api *client.Client, role string, signals <-chan os.Signal) error {
	role, err := resolveRole(ctx, api, role)
	if err != nil {
		return err
	}
	if err := checkServedChat(ctx, c, api, role); err != nil {
		return err
	}
	t := newChat(c, api, newTerminal(c.err), signals)
	t.start = func(ctx context.Context, text string) (identity.TaskID, error) {
		task, err := api.StartTask(ctx, client.TaskRequest{Text: text, Role: role, Open: true}, "")
		return task.ID, err
	}
	return t.run(ctx)
}

// checkServedChat reports before the first line what the process that serves would reject:
// the token, and a role that does not exist. "" is root.
func checkServedChat(ctx context.Context, c *common, api *client.Client, role string) error {
	for _, err := range api.QueryTasks(ctx, client.TaskQuery{Limit: 1}) {
		if err != nil {
			return err
		}
	}
	return checkTaskRole(ctx, c, api, nil, role)
}

// chatHere talks with an agent in this process.
func chatHere(ctx context.Context, c *common, role string, signals <-chan os.Signal) error {
	cfg, err := loadConfig(c)
	if err != nil {
		return err
	}
	if err := checkChatConfig(c, cfg); err != nil {
		return err
	}
	return withSession(ctx, c, sessionOptions{}, func(ctx context.Context, s *session) error {
		api, err := s.Client()
		if err != nil {
			return err
		}
		if role, err = resolveRole(ctx, api, role); err != nil {
			return err
		}
		if err := checkTaskRole(ctx, c, api, cfg, role); err != nil {
			return err
		}
		if cfg != nil {
			if err := s.ApplyConfig(ctx, cfg, nil); err != nil {
				return err
			}
		}
		s.printNotes()
		t := newChat(c, api, s.screen, signals)
		t.start = func(ctx context.Context, text string) (identity.TaskID, error) {
			return s.StartTask(ctx, org.TaskSpec{Text: text, Role: role, Caller: identity.ByOperator("cli"), Open: true}, nil)
		}
		return t.run(ctx)
	})
}

// checkChatConfig rejects a configuration that cannot work in this process. There must be a
// configuration, which names the models. A person cannot be a model: the person would read the same
// input.
func checkChatConfig(c *common, cfg *config.Config) error {
	if cfg == nil {
		return cmp.Or(c.requireOrganization(), errNoConfig("chat"))
	}
	for _, m := range cfg.UsedModels() {
		if m.Type == config.ModelHuman {
			return usageError{fmt.Errorf("chat reads stdin, and so does model %q of type human; use another model", m.Name)}
		}
	}
	return nil
}
