package org

import (
	"encoding/json"

	"github.com/rolecall/rolecall/toolgroups/approval"
)

// rootApprovalKey is the key of the record of KindMeta that holds the approval rules of the
// organization, which hold for all roles. There is no record while the organization has no rules.
const rootApprovalKey = "approval"

// organizationApproval returns the rules that hold for all roles. They stand in the role of root.
func organizationApproval(find roleLookup) []approval.Rule {
	root, ok := find(RootRole)
	if !ok {
		return operatorRules()
	}
	return root.Approval
}

// operatorRules returns the rules for when it is unknown what the organization's rules are: an
// operator approves every call.
func operatorRules() []approval.Rule {
	return []approval.Rule{{From: approval.Approvers{Any: []approval.Quorum{{Operator: true}}}}}
}

// planRootApproval sets the rules of the organization in the current roleIndex. It returns no
// edit if nothing changes.
func (o *Org) planRootApproval(rules []approval.Rule) []RoleEdit {
	if equalApproval(o.root.Approval, rules) {
		return nil
	}
	root := *o.root
	root.Approval = rules
	o.root = &root
	stored := newRecord(KindMeta, rootApprovalKey, rules)
	if len(rules) == 0 {
		stored.Value = nil
	}
	return []RoleEdit{{Role: root, Change: roleUpdated, Records: []RecordChange{stored}}}
}

// loadRootApproval reads the rules of the organization. The record may be unreadable, or it may be
// one of the records whose keys are lost. Then an operator approves every call.
func (o *Org) loadRootApproval(source RecordSource) {
	for r, err := range source.Records(string(KindMeta)) {
		switch {
		case r.Key == rootApprovalKey:
			if err != nil || json.Unmarshal(r.Value, &o.root.Approval) != nil || len(o.root.Approval) == 0 {
				o.root.Approval = operatorRules()
			}
			return
		case r.Key == "" && err != nil:
			o.root.Approval = operatorRules()
		}
	}
}
