package org

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// LimitKind says what sets a limit on permissions.
type LimitKind string

// The kinds of limits.
const (
	LimitUse         LimitKind = "use"          // what the role may use
	LimitCreator     LimitKind = "creator"      // what the creator of a role may grant
	LimitRootGrant   LimitKind = "root_grant"   // what the organization lets root grant
	LimitParent      LimitKind = "parent"       // what the parent of an agent may grant
	LimitTaskGroups  LimitKind = "task_groups"  // the groups that a task is restricted to
	LimitCaller      LimitKind = "caller"       // what the caller of a task may use now
	LimitCallerStart LimitKind = "caller_start" // what the caller of a task could use when it started
	LimitState       LimitKind = "state"        // the workflow states in which a tool is offered
	LimitMissing     LimitKind = "missing"      // a role, a creator, a parent or a task that is unknown: nothing is allowed
	LimitHosts       LimitKind = "hosts"        // hosts that requests may reach; it allows every tool
	LimitNetwork     LimitKind = "network"      // the groups of the network that a caller's request comes from
)

// PermissionLimit is one limit on what a principal may call, and whether it allows a tool.
// A tool is allowed if all limits allow it.
type PermissionLimit struct {
	Kind   LimitKind       `json:"kind"`
	RoleID identity.RoleID `json:"roleId,omitempty"` // of the role whose limit it is
	Role   string          `json:"role,omitempty"`   // its name
	Rule   string          `json:"rule"`             // in words
	Allows bool            `json:"allows"`

	// Bound has what the limit bounds the arguments of the tool by, as JSON; "" for nothing.
	Bound string `json:"bound,omitempty"`

	// The caller of the agent's task and the name of its role, if the limit bounds the task
	// because of them.
	Caller     identity.UserName `json:"caller,omitempty"`
	CallerRole string            `json:"callerRole,omitempty"`

	// Closed is a group through which the limit would allow the tool if its hours had not
	// closed it. Rule says until when.
	Closed toolgroups.GroupID `json:"closedGroup,omitempty"`
}

// LimitsOnRole returns the limits on the agents of RoleView, the role's own use first.
func (o *Org) LimitsOnRole(id identity.RoleID, groups toolgroups.GroupSet, h *toolgroups.ToolHandle) []PermissionLimit {
	return o.LimitsOnCallerRole(identity.ByCaller("", id), groups, h)
}

// LimitsOnCallerRole returns the limits on the agents of CallerRoleView, the role's own use first.
func (o *Org) LimitsOnCallerRole(p identity.Principal, groups toolgroups.GroupSet, h *toolgroups.ToolHandle) []PermissionLimit {
	o.mu.RLock()
	defer o.mu.RUnlock()
	return o.limitsOn(o.previewScope(p.Role, groups, networkLimits(p)...), h, nil)
}

// LimitsOnAgent returns the limits on an agent, the use of its role first.
func (o *Org) LimitsOnAgent(id identity.AgentID, h *toolgroups.ToolHandle) []PermissionLimit {
	o.mu.RLock()
	defer o.mu.RUnlock()
	m, ok := o.agents[id]
	if !ok {
		return []PermissionLimit{{Kind: LimitMissing, Rule: "there is no such agent"}}
	}
	return o.limitsOn(m.scope, h, o.tasks[m.task])
}

// LimitsOnCaller returns the limits on an external caller, the use of its role first.
func (o *Org) LimitsOnCaller(p identity.Principal, h *toolgroups.ToolHandle) []PermissionLimit {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if _, ok := o.activeCallerState(p); !ok && o.roleIsActive(p.Role) {
		return []PermissionLimit{{Kind: LimitMissing, Rule: "the workflow state of the caller is lost"}}
	}
	return o.limitsOn(&scope{role: p.Role, bounds: networkLimits(p)}, h, nil)
}

// DenyingLimit returns the first limit that denies, nil if all allow.
func DenyingLimit(limits []PermissionLimit) *PermissionLimit {
	i := slices.IndexFunc(limits, func(l PermissionLimit) bool { return !l.Allows })
	if i < 0 {
		return nil
	}
	return &limits[i]
}

// limitsOn returns the limits of a scope, each once. A nil task is unknown. It must be
// called with mu held.
func (o *Org) limitsOn(s *scope, h *toolgroups.ToolHandle, task *Task) (list []PermissionLimit) {
	snapshot := o.config.Groups.CurrentSnapshot()
	use, limits := s.permissions(o.lookupRole)
	for _, c := range append([]constraint{use}, limits...) {
		l := c.evaluate(snapshot, h)
		if c.ofCaller && task.isExternal() {
			caller, _ := task.ExternalCaller()
			l.Caller, l.CallerRole = caller.User, o.roleName(caller.Role)
			l.Rule += " (caller " + string(l.Caller) + " in role " + l.CallerRole + ")"
		}
		if c.kind != LimitHosts && !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// ofCaller marks limits as limits of the caller of a task. What is no other kind is what the caller
// may use.
func ofCaller(limits ...constraint) []constraint {
	for i := range limits {
		limits[i].ofCaller = true
		limits[i].kind = cmp.Or(limits[i].kind, LimitCaller)
	}
	return limits
}

// evaluate returns the limit in its public form, without the caller of a task.
func (c constraint) evaluate(s *toolgroups.Snapshot, h *toolgroups.ToolHandle) PermissionLimit {
	l := PermissionLimit{Kind: c.kind, Rule: c.reason, Allows: s.ReachesTool(c.PinnedSet, h)}
	for _, r := range c.RulesFor(h) {
		l.Bound = strings.TrimPrefix(l.Bound+" and "+r.String(), " and ")
	}
	if !l.Allows && c.Only != "" && h.Owner != c.Only {
		l.Rule = c.serverReason
	}
	if g, ok := s.FindClosed(c.PinnedSet, h); ok && !l.Allows {
		l.Closed, l.Rule = g.ID, l.Rule+": "+closedText(g)
	}
	if c.role != nil {
		l.RoleID, l.Role = c.role.ID, c.role.Name
	}
	return l
}

// closedText says that a group is closed by its hours, and until when.
func closedText(g toolgroups.GroupInfo) string {
	text := "group " + string(g.ID) + " is closed by its hours"
	if next := g.Hours.NextChange; !next.IsZero() {
		text += " until " + next.Format(time.RFC3339) + " (" + g.Hours.Zone + ")"
	}
	return text
}
