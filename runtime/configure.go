package runtime

import (
	"cmp"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/approval"
)

// OrgConfig is the operator's configuration of the organization. Zero values
// mean the defaults of Config.
type OrgConfig struct {
	RootPrompt string
	Default    *toolgroups.GroupSet // tool groups of roles created without any; nil means all groups
	Grant      *toolgroups.GroupSet // what root may grant; nil means all groups
	Rounds     int
	Storage    StorageLimits
	Limits     Limits
	Budget     TaskBudget
	Roles      []org.RoleSpec
	Workspaces WorkspacePolicy
	Approval   []approval.Rule // which calls of all agents and callers wait for people; roles have further rules

	// Oversight says which operations of operators wait for people; nil says that none do. An
	// Oversight that differs from the active Oversight needs the approval of the people of the
	// active Oversight. ApplyConfig returns ApprovalRequired until they approve. With KeepRoles
	// the active one stays.
	Oversight *approval.Oversight

	// KeepRoles keeps existing roles as they are, and deleted roles deleted. Roles only adds
	// roles that never existed. With ReviveRoles also, deleted roles of a configuration that
	// Roles names become active again, for all their agents.
	KeepRoles, ReviveRoles bool

	Groups func(*toolgroups.Tx) error // changes tool groups in the same commit; nil changes none

	Item *ItemChange // a change of an applied item, stored in the same commit; nil changes none

	// Changed is called after the commit with the recorded changes of roles and groups. It
	// may be nil.
	Changed func([]journal.Event)
}

// settings is the configuration without its roles. It is immutable.
type settings struct {
	RootPrompt string
	Rounds     int
	Storage    StorageLimits
	Limits     Limits
	Budget     TaskBudget
	Workspaces WorkspacePolicy
}

// settingsFor returns the settings for s, with the defaults of c.
func (c *Config) settingsFor(s OrgConfig) *settings {
	policy := s.Workspaces
	if c.Workspace != "" {
		policy.Default = Workspace{Path: c.Workspace, ReadOnly: c.WorkspaceReadOnly}
	}
	return &settings{
		Workspaces: policy,
		RootPrompt: cmp.Or(s.RootPrompt, c.RootPrompt),
		Rounds:     cmp.Or(s.Rounds, c.Rounds),
		Storage:    s.Storage.orDefault(c.Storage),
		Limits:     s.Limits.orDefault(c.Limits),
		Budget:     s.Budget.orDefault(c.Budget),
	}
}

// ApplyConfig replaces the active configuration: roles, limits and the tool groups that
// Groups changes, in one commit. Roles of the previous configuration that are missing in s
// are deleted. Roles of s are created or updated. Active agents continue under the new
// configuration: calls that have started end normally, later calls are decided by it. A
// rejected configuration changes nothing.
//
// Errors: the errors of org.Org.ApplyRoles and of Groups. If Oversight changes, also the
// errors of UseOperationApproval.
func (rt *Runtime) ApplyConfig(s OrgConfig) error {
	if err := checkOversight(s); err != nil {
		return err
	}
	groups := s.Groups
	if groups == nil {
		groups = func(*toolgroups.Tx) error { return nil }
	}
	return rt.config.Groups.UpdateWith(func(c toolgroups.Change) error { return rt.commitConfig(s, c) }, groups)
}

// commitConfig makes a configuration active together with a change of the registry.
func (rt *Runtime) commitConfig(s OrgConfig, c toolgroups.Change) error {
	var held error
	var lost lostRequests
	b := &journal.Batch{Prepare: func(b *journal.Batch) error {
		granted, refused := rt.judgeOversight(b, s)
		if held = refused; held != nil {
			return nil // nothing of the configuration becomes active
		}
		forItem, refused, err := rt.judgeItem(b, s.Item)
		if held = refused; err != nil || held != nil {
			return err
		}
		callable := rt.callableRequests(allRoles)
		edits, err := rt.org.ApplyRoles(s.roleConfig(), c)
		if err != nil {
			return err
		}
		rt.useSettings(rt.config.settingsFor(s))
		b.Events = rt.groupEvents(c)
		b.Put = storeRecords(rt.org.EpochRecords())
		if s.Item != nil {
			rt.useApproval(b, s.Item.Requester, forItem)
			rt.addItemChange(b, *s.Item)
		}
		for _, e := range edits {
			rt.addRoleChange(b, byConfig, e.Role, e.Change, e.Diff, e.Records)
		}
		rt.setOversight(b, s, granted)
		lost = rt.voidLost(b, callable)
		return nil
	}}
	_, err := rt.flushAndCommit(b)
	rt.wakeLost(lost)
	err = cmp.Or(err, held)
	if err == nil && s.Changed != nil {
		s.Changed(b.Events)
	}
	return err
}

// useSettings makes settings active.
func (rt *Runtime) useSettings(s *settings) {
	rt.settings.Store(s)
	rt.org.SetLimits(s.Limits.TaskLimits)
}

// byConfig is the principal of changes made by the configuration.
var byConfig = identity.Principal{Kind: identity.Configuration}

// roleConfig returns the part of s that package org applies.
func (c OrgConfig) roleConfig() org.RoleConfig {
	return org.RoleConfig{
		Roles: c.Roles, Default: allIfNil(c.Default), Root: allIfNil(c.Grant), Approval: c.Approval,
		Keep: c.KeepRoles, Revive: c.ReviveRoles,
	}
}

// allIfNil returns *set, all groups if it is nil.
func allIfNil(set *toolgroups.GroupSet) toolgroups.GroupSet {
	if set == nil {
		return toolgroups.AllGroups()
	}
	return *set
}

// advanceEpoch advances the epoch once per process that runs agents. The registered tools may
// differ from the tools of the previous process. From then on, requests for approval expire.
func (rt *Runtime) advanceEpoch() error {
	rt.advanceMu.Lock()
	defer rt.advanceMu.Unlock()
	if rt.advanced {
		return nil
	}
	_, err := rt.commit(&journal.Batch{Prepare: func(b *journal.Batch) error {
		b.Put = storeRecords(rt.org.AdvanceEpoch())
		return nil
	}})
	if rt.advanced = err == nil; rt.advanced {
		rt.approvals.startTimer(rt.expireApprovals)
	}
	return err
}
