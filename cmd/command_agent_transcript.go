package cmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
)

func newAgentTranscriptCommand(c *common) *cobra.Command {
	var full bool
	cmd := &cobra.Command{
		Use:   "transcript AGENT",
		Short: "Show the conversation of an agent",
		Long: `Show the conversation of an agent, oldest first: the messages that it has read, its
answers, and its calls with their arguments and results. Long texts are cut; --full shows
them entirely. With --json, print the events of the conversation, not cut.`,
		Example: "  rolecall agent transcript analyst\n  rolecall agent transcript 5c8c53b4 --full",
		Args:    exactArgs(1, "one agent, by id or role name"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return runAgentTranscript(ctx, c, api, args[0], full)
		}),
	}
	cmd.Flags().BoolVar(&full, "full", false, "do not cut long texts")
	return cmd
}

func runAgentTranscript(ctx context.Context, c *common, api *client.Client, ref string, full bool) error {
	ref, err := resolveAgent(ctx, api, ref)
	if err != nil {
		return err
	}
	agent, err := api.FindAgent(ctx, ref)
	if err != nil {
		return err
	}
	if c.json {
		return printConversation(ctx, c.out, api, agent)
	}
	_, err = fmt.Fprintf(c.out, "%s  agent %s  task %s  %s\n", textutil.Sanitize(agent.Role), textutil.Sanitize(string(agent.ID)), textutil.Sanitize(string(agent.Task)), agent.Status)
	t := newTranscript(c.out, full)
	for e, readErr := range api.AgentJournal(ctx, string(agent.ID)) {
		if readErr != nil {
			return readErr
		}
		if err == nil && inConversation(agent, e) {
			err = t.print(e)
		}
		if err != nil {
			return err
		}
	}
	return err
}

// printConversation prints the events of a conversation as JSON.
func printConversation(ctx context.Context, out io.Writer, api *client.Client, agent client.AgentDetail) error {
	items := []journal.Event{}
	for e, err := range api.AgentJournal(ctx, string(agent.ID)) {
		if err != nil {
			return err
		}
		if inConversation(agent, e) {
			items = append(items, e)
		}
	}
	return printJSON(out, map[string]any{"items": items})
}

// inConversation reports whether an event of an agent's journal belongs to its
// conversation. Others are about agents below it, or repeat what an answer says.
func inConversation(agent client.AgentDetail, e journal.Event) bool {
	switch e.Body.(type) {
	case journal.MessageReceived, journal.ModelAnswered, journal.ToolCall, journal.ToolResult, journal.ToolError,
		journal.StateTransition, journal.UngroundedAnswer, journal.QuestionAsked, journal.QuestionAnswered, journal.ApprovalRequested, journal.ApprovalDecided, journal.PatternEnded, journal.ContextCompressed, journal.TurnFailed, journal.AgentTerminated:
		return e.Agent == agent.ID
	}
	return false
}
