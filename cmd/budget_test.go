package cmd

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// A task that is shown names the budgets of its agents, and those of which a warning is on record.
func TestTaskFields_Budgets(t *testing.T) {
	task := client.Task{Budgets: []client.BudgetUse{
		{Quantity: "tokens", Limit: 100, Used: 20, Reserved: 60},
		{Quantity: "cost", Limit: 0.5, Used: 0.45, Warned: true},
		{Agent: "a1", Name: "clerk-1", Quantity: "tokens", Limit: 60, Used: 5, Reserved: 10},
	}}
	var lines []string
	for _, f := range taskFields(task) {
		if f[0] == "budget" {
			lines = append(lines, f[1])
		}
	}
	want := "the task has used 0.45 of 0.5 cost (warned)\nclerk-1 has used 5 of 60 tokens, and 10 are reserved for its agents"
	if got := strings.Join(lines, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The cost of a role's budget has all its digits, as that of a task.
func TestAllowanceText(t *testing.T) {
	if got, want := allowanceText(org.ModelAllowance{Tokens: 5, Cost: 1, Calls: 2}), "5 tokens, 2 tool calls, cost 0.000000001"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := allowanceText(org.ModelAllowance{Cost: 500_000_000}), "cost 0.5"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A warning about a budget has a line, with a cost in the currency of the prices.
func TestLineView_BudgetWarning(t *testing.T) {
	v := newLineView(&terminal{})
	for want, body := range map[string]journal.BudgetWarning{
		"~ clerk  the budget of the task is nearly spent: 80 of 100 tokens are used":          {Quantity: "tokens", Used: 80, Limit: 100},
		"~ clerk  the budget of an agent is nearly spent: 0.400000 of 0.500000 cost are used": {Owner: "a1", Quantity: "cost", Used: 400_000_000, Limit: 500_000_000},
	} {
		if got := v.format(journal.Event{Agent: "a1", Role: "clerk", Body: body}); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
