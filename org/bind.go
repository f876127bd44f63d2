package org

import (
	"slices"
	"strconv"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org/hosts"
	"github.com/rolecall/rolecall/toolgroups"
	"github.com/rolecall/rolecall/toolgroups/bounds"
)

// bindOr returns the bounds of a specification, or the bounds of the role that it changes.
func (s RoleSpec) bindOr(old bounds.Bind) bounds.Bind {
	if s.Bind == nil {
		return old
	}
	return s.Bind
}

// storedBind returns a Bind as it is stored in a Role: nil if it bounds nothing.
func storedBind(b bounds.Bind) bounds.Bind {
	if len(b) == 0 {
		return nil
	}
	return b
}

// checkBind returns an error if the bounds of a specification are surely wider than the
// bounds of its creator. It also returns an error if they surely let nothing through. That
// serves its author: the bounds of all roles along the line hold at every call.
func (o *Org) checkBind(creator grantor, spec RoleSpec) error {
	var unknown []string
	for _, name := range spec.Bind.ToolNames() {
		rule := spec.Bind[name]
		if !rule.Readable() {
			return errcode.New(errcode.InvalidRole, "role %q: bind: %s: the bounds cannot be read", spec.Name, name).With("field", "bind")
		}
		h, known := o.boundTool(creator, name)
		if !known {
			unknown = append(unknown, name)
			continue
		}
		if path := rule.UnknownPath(h.Definition.Input); path != "" {
			return errcode.New(errcode.InvalidRole, "role %q: bind: %s: %s: the tool has no such argument", spec.Name, name, path).With("field", "bind")
		}
		if err := checkNotWider(creator, spec.Name, h, rule); err != nil {
			return err
		}
	}
	if len(unknown) > 0 && !spec.AllowUnknown && creator.createdBy != CreatorConfig {
		return o.unknownToolsError(creator, spec.Name, unknown)
	}
	return nil
}

// boundTool returns a tool by one of its names. A tool that the grantor may not grant does not
// exist for it.
func (o *Org) boundTool(g grantor, name string) (*toolgroups.ToolHandle, bool) {
	h, ok := o.registry().LookupTool(name)
	if !ok {
		return nil, false
	}
	hidden := func(limit constraint) bool { return !o.registry().ReachesTool(limit.PinnedSet, h) }
	return h, !slices.ContainsFunc(g.limits, hidden)
}

// checkNotWider returns an error if a rule surely allows what a limit of the creator rejects.
func checkNotWider(creator grantor, name string, h *toolgroups.ToolHandle, rule bounds.Rule) error {
	for _, limit := range creator.limits {
		for _, own := range limit.RulesFor(h) {
			if path := rule.WiderPath(own); path != "" {
				return errcode.New(errcode.InsufficientPermissions, "grant role %q the tool %s: %s: your own bound is narrower: %s", name, h.Definition.Name, path, textutil.Truncate(own.String(), 300)).
					With("tool", h.Definition.Name).With("path", path)
			}
		}
	}
	return nil
}

// unknownToolsError returns the error for bounds on tools that do not exist.
func (o *Org) unknownToolsError(creator grantor, role string, names []string) error {
	var list []string
	for _, name := range names[:min(len(names), maxSuggestions)] {
		list = append(list, strconv.Quote(textutil.Truncate(name, 128)))
	}
	advice := "; name tools that exist"
	if creator.createdBy == CreatorOperator {
		advice += ", or allow unknown ones (allowUnknown, --allow-unknown)"
	}
	return errcode.New(errcode.InvalidRole, "role %q: bind: there is no tool %s%s", role, strings.Join(list, ", "), advice).With("field", "bind")
}

// UnknownBoundTools returns the tools that the bounds of active roles of the configuration name and
// no group has, by role. Such bounds hold once a group has a tool of this name.
func (o *Org) UnknownBoundTools() map[string][]string {
	o.mu.RLock()
	defer o.mu.RUnlock()
	found := map[string][]string{}
	for _, r := range o.sortedRoles() {
		for _, name := range r.Bind.ToolNames() {
			if _, ok := o.registry().LookupTool(name); !ok && r.CreatedBy == CreatorConfig {
				found[r.Name] = append(found[r.Name], name)
			}
		}
	}
	return found
}

// bindRules returns the bounds of limits, each once.
func bindRules(limits []constraint) (list []bounds.Bind) {
	for _, l := range limits {
		if len(l.Bind) > 0 && !slices.ContainsFunc(list, l.Bind.Equal) {
			list = append(list, l.Bind)
		}
	}
	return list
}

// startBounds returns the bounds that the caller of a task had when the task started.
func startBounds(list []bounds.Bind) (limits []constraint) {
	for _, b := range list {
		limits = append(limits, constraint{
			PinnedSet: toolgroups.PinnedSet{Set: toolgroups.AllGroups(), Bind: b}, Hosts: hosts.AnyHost(),
			reason: "the bounds of the task's caller when the task started", kind: LimitCallerStart, ofCaller: true,
		})
	}
	return limits
}

// ParseBind parses the bounds of a role. The error has the code InvalidRole and names the
// tool, the path and the operator.
func ParseBind(role string, data []byte) (bounds.Bind, error) {
	b, err := bounds.ParseBind(data)
	if err != nil {
		return nil, errcode.New(errcode.InvalidRole, "role %q: bind: %s", role, err.Error()).With("field", "bind")
	}
	return b, nil
}
