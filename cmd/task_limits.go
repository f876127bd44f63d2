package cmd

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// printLimitsOf prints the limits that apply to a task of this process on stderr.
func (s *session) printLimitsOf(ctx context.Context, c *common, id identity.TaskID) error {
	api, err := s.Client()
	if err != nil {
		return err
	}
	task, err := api.FindTask(ctx, string(id))
	if err == nil {
		printLimits(c, task)
	}
	return err
}

// printLimits prints the limits that apply to a task on stderr.
func printLimits(c *common, task client.Task) {
	if task.Limits != nil {
		fmt.Fprintln(c.err, limitsLine(*task.Limits))
	}
}

// limitsLine returns the limits of a task on one line.
func limitsLine(l client.TaskLimits) string {
	tokens := "any number of tokens"
	if l.Tokens > 0 {
		tokens = strconv.FormatInt(l.Tokens, 10) + " tokens"
	}
	if l.Cost > 0 {
		tokens += ", " + costLimitText(l.Cost)
	}
	if l.Calls > 0 {
		tokens += ", " + strconv.FormatInt(l.Calls, 10) + " tool calls"
	}
	return fmt.Sprintf("limits: %s, %d requests to models, %d turns, %d agents, %d hired by one, %d answers of a turn",
		tokens, l.Requests, l.Turns, l.Agents, l.Hires, l.Rounds)
}

// costLimitText returns a limit of the cost with all its digits.
func costLimitText(cost float64) string { return "cost " + strconv.FormatFloat(cost, 'f', -1, 64) }

// allowanceText returns the amounts of a role's budget on one line.
func allowanceText(b org.ModelAllowance) string {
	var parts []string
	for _, p := range []struct {
		amount int64
		text   string
	}{{b.Tokens, "tokens"}, {b.Requests, "requests to models"}, {b.Calls, "tool calls"}} {
		if p.amount > 0 {
			parts = append(parts, strconv.FormatInt(p.amount, 10)+" "+p.text)
		}
	}
	if b.Cost > 0 {
		parts = append(parts, costLimitText(float64(b.Cost)/1e9))
	}
	return strings.Join(parts, ", ")
}
