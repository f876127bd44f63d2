package config

import (
	"fmt"
	"time"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// Oversight is the document of kind oversight: which operations of operators wait for other
// people. A configuration has at most one.
//
//	kind: oversight
//	name: four-eyes
//	operations: [role_gain, apply, tool_accept, override]
//	from: {all: [{role: security}]}
//	deadline: 1h
type Oversight struct {
	Name string
	Rule *approval.Oversight // nil if there is no such document
	Pos  yamldoc.Pos
}

// readOversight reads the document of kind oversight.
func readOversight(it item) {
	rule, to := new(approval.Oversight), &it.r.config.Oversight
	var operations []string
	before := it.ErrorCount()
	it.ReadFields(yamldoc.Fields{
		"operations": yamldoc.NameList(&operations, "operation"),
		"from":       approversField(&rule.From),
		"deadline":   yamldoc.DurationField(&rule.Deadline, approval.MaxDeadline),
	})
	if to.Pos != (yamldoc.Pos{}) {
		it.AddError(fmt.Sprintf("duplicate oversight; the first is at %s", to.Pos), "a configuration has at most one")
		return
	}
	for _, name := range operations {
		rule.Operations = append(rule.Operations, approval.Operation(name))
	}
	if it.ErrorCount() == before {
		if err := rule.Check(); err != nil {
			it.AddError(err.Error(), "")
		}
	}
	*to = Oversight{Name: it.Name, Rule: rule, Pos: it.Pos}
}

// CheckApprovable returns an error if no one can approve an operation of an operator at a time:
// tokens and issuers name too few people. The holder of the data directory is an operator, too.
func (c *Config) CheckApprovable(now time.Time) *yamldoc.Error {
	err := c.Oversight.Rule.CheckApprovable(func(role string) int { return c.countPeople(role, now) }, 1+c.countPeople("", now))
	if err == nil {
		return nil
	}
	return c.ErrorAt(c.Oversight.Pos, "from", "no possible approver: "+err.Error(), "")
}

// manyPeople stands for the users of an issuer, whose number is not known.
const manyPeople = 1000

// countPeople returns how many people may act in a role, or as operators if the role is "".
func (c *Config) countPeople(role string, now time.Time) (n int) {
	for _, t := range c.Gateway.Tokens {
		if (t.Scope == OperatorScope) == (role == "") && t.Role == role && t.Scope != MetricsScope && (t.Expires.IsZero() || now.Before(t.Expires)) {
			n++
		}
	}
	for _, issuer := range c.Gateway.Issuers {
		for _, r := range issuer.Roles {
			if r.Operator == (role == "") && r.Role == role {
				n += manyPeople
			}
		}
	}
	return n
}
