package org

import (
	"slices"
	"strconv"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// approvalRules returns which calls of the agents of s wait for people. It collects the rules
// of the organization, of their role and of all limits. It adds the rules of the task's caller,
// also if another role bounds its tasks. A limit that is added adds rules and never removes
// one.
func (s *scope) approvalRules(find roleLookup, line []constraint) []approval.Rule {
	rules := slices.Clone(organizationApproval(find))
	for _, c := range line {
		rules = append(rules, c.approval...)
	}
	for at := s; at != nil; at = at.parent {
		if caller, ok := find(at.caller); ok {
			rules = append(rules, caller.Approval...)
		}
	}
	return rules
}

// approvalOr returns the rules of a specification, or the rules of the role that it changes.
func (s RoleSpec) approvalOr(old []approval.Rule) []approval.Rule {
	if s.Approval == nil {
		return old
	}
	return s.Approval
}

func equalApproval(a, b []approval.Rule) bool {
	return slices.EqualFunc(a, b, func(x, y approval.Rule) bool { return x.Equal(&y) })
}

// checkApproval rejects rules that are not valid, and rules of a role that the configuration does
// not declare.
func checkApproval(creator grantor, spec RoleSpec) error {
	if len(spec.Approval) > 0 && creator.createdBy != CreatorConfig && creator.createdBy != CreatorOperator {
		return errcode.New(errcode.InvalidRole, "role %q: approval: only roles of the operator have it", spec.Name).With("field", "approval")
	}
	return checkRules("role "+strconv.Quote(spec.Name), spec.Approval)
}

// checkRules rejects rules of a role, or of the organization, that are not valid.
func checkRules(of string, rules []approval.Rule) error {
	invalid := func(format string, args ...any) error {
		return errcode.New(errcode.InvalidRole, "%s: approval: "+format, append([]any{of}, args...)...).With("field", "approval")
	}
	if len(rules) > approval.MaxRules {
		return invalid("it has %d rules; at most %d are allowed", len(rules), approval.MaxRules)
	}
	for i, r := range rules {
		if err := r.Check(); err != nil {
			return invalid("rule %d: %s", i+1, err)
		}
		for _, id := range r.Groups {
			if err := toolgroups.CheckListedID(toolgroups.GroupID(id)); err != nil {
				return invalid("rule %d: %s", i+1, errcode.Message(err))
			}
		}
	}
	return nil
}

// checkApprovers rejects a configuration with a rule whose approvers have a role that does not
// exist. It is called after all roles are in the current roleIndex.
func (o *Org) checkApprovers(c RoleConfig) error {
	for _, spec := range c.Roles {
		if name := o.missingApprover(spec.Approval); name != "" {
			return errcode.New(errcode.InvalidRole, "configure role %q: approval: there is no role %q, whose people are to approve", spec.Name, name).With("field", "approval")
		}
	}
	if name := o.missingApprover(c.Approval); name != "" {
		return errcode.New(errcode.InvalidRole, "configure the organization: approval: there is no role %q, whose people are to approve", name).With("field", "approval")
	}
	return nil
}

// missingApprover returns the first role of approvers that does not exist, "" if all do.
func (o *Org) missingApprover(rules []approval.Rule) string {
	for _, r := range rules {
		for _, name := range r.RoleNames() {
			if o.roleNamed(operatorOwner(), name) == nil {
				return name
			}
		}
	}
	return ""
}

// ApproverRole returns the name of the role in which a caller votes about calls. It reports
// false unless the role is declared, active and not suspended.
func (o *Org) ApproverRole(p identity.Principal) (name string, ok bool) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	role := o.roles[p.Role]
	if CheckCaller(p) != nil || !role.isActive() || !role.isDeclared() {
		return "", false
	}
	return role.Name, true
}
