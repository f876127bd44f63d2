package config

import (
	"time"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/toolgroups/approval"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// approvalField reads the rules of a role, or of the organization, that say which calls wait for
// people:
//
//	approval:
//	  - tools: [transfer]
//	    from: {all: [{role: finance}, {role: security, count: 2}]}
//	    deadline: 1h
func approvalField(to *[]approval.Rule) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of rules", "for example [{tools: [transfer], from: {any: [{role: finance}]}}]")
			return
		}
		for i, item := range v.ListItems() {
			if i == approval.MaxRules {
				item.AddError("is one rule too many", "at most 100 are allowed")
				return
			}
			if rule, ok := readApprovalRule(item); ok {
				*to = append(*to, rule)
			}
		}
	}
}

// readApprovalRule reads one rule. It reports false after an error.
func readApprovalRule(v yamldoc.Value) (rule approval.Rule, ok bool) {
	before := v.ErrorCount()
	yamldoc.MappingField(yamldoc.Fields{
		"tools":    yamldoc.NameList(&rule.Tools, "tool"),
		"unless":   unlessField(&rule.Unless),
		"groups":   yamldoc.NameList(&rule.Groups, "tool group"),
		"effect":   yamldoc.OneOfField(&rule.Effect, "mutating", "idempotent", "readOnly"),
		"from":     approversField(&rule.From),
		"deadline": yamldoc.DurationField(&rule.Deadline, approval.MaxDeadline),
		"escalate": escalateField(&rule.Escalate),
		"self":     yamldoc.BoolField(&rule.Self),
	})(v)
	if v.ErrorCount() > before {
		return rule, false
	}
	if err := rule.Check(); err != nil {
		v.AddError(err.Error(), "")
		return rule, false
	}
	return rule, true
}

// approversField reads whose votes a rule needs.
func approversField(to *approval.Approvers) func(yamldoc.Value) {
	return yamldoc.MappingField(yamldoc.Fields{"all": quorumsField(&to.All), "any": quorumsField(&to.Any)})
}

// unlessField reads the bounds of arguments that need no approval.
func unlessField(to *bounds.Rule) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		text := v.ReadObject()
		if text == nil {
			return
		}
		r, err := bounds.ParseRule(text)
		if err != nil {
			at, problem := locateBound(v, err.Error())
			at.AddError(problem, "see docs/bounds.md for the operators")
			return
		}
		*to = r
	}
}

// quorumsField reads the approvers of a rule.
func quorumsField(to *[]approval.Quorum) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of approvers", "for example [{role: finance}]")
			return
		}
		for _, item := range v.ListItems() {
			var quorum approval.Quorum
			quorumField(&quorum)(item)
			*to = append(*to, quorum)
		}
	}
}

// quorumField reads one approver: a role or operators, and how many people.
func quorumField(to *approval.Quorum) func(yamldoc.Value) {
	return yamldoc.MappingField(yamldoc.Fields{
		"role": yamldoc.NonEmptyField(&to.Role), "operator": yamldoc.BoolField(&to.Operator), "count": yamldoc.CountField(&to.Count),
	})
}

// escalateField reads who may approve alone after a time.
func escalateField(to **approval.Escalation) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		*to = new(approval.Escalation)
		yamldoc.MappingField(yamldoc.Fields{"after": yamldoc.DurationField(&(*to).After, 30*24*time.Hour), "to": quorumField(&(*to).To)})(v)
	}
}
