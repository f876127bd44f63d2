package cmd

import (
	"github.com/spf13/cobra"
)

func newAgentAskCommand(c *common) *cobra.Command {
	o := &runOptions{ask: true}
	cmd := &cobra.Command{
		Use:   "ask ROLE \"QUESTION\"",
		Short: "Ask an agent of a role, and wait for its answer",
		Long: `Ask an agent of a role, without root, and wait for its answer. Without --group the agent
has the tools of the role's default groups: those of agent.defaultGroups, else the group
default. -g '*' stands for all groups of the role, and -g none for no group.

A caller with a token (ROLECALL_URL, ROLECALL_TOKEN) asks agents of its own role, if the
role has the field agent. It can name a state that its role lists in states, while no
state is on record for it.`,
		Example: `  rolecall agent ask -f org.yaml clerk "Which orders are open?"
  rolecall agent ask -f org.yaml clerk -g knowledge -g compute -s analysis "Go on"`,
		Args: exactArgs(2, "a role, and one question in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.role, o.text, o.timed = args[0], args[1], cmd.Flags().Changed("timeout")
			if isNone(o.groups) {
				o.groups = []string{}
			}
			return runGivenTask(cmd.Context(), c, o)
		},
	}
	flags := cmd.Flags()
	flags.StringArrayVarP(&o.groups, "group", "g", nil, "let the agent use this tool `group` only; can be repeated")
	flags.StringVarP(&o.state, "state", "s", "", "start the agent in this workflow `state`")
	flags.DurationVar(&o.timeout, "timeout", 0, "cancel the request after this `duration`")
	return cmd
}
