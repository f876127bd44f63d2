package org

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/toolgroups"
)

// MaxNamedGroups is the most groups that a request or a role may name. Roles of the configuration
// have no such limit: the operator has written them.
const MaxNamedGroups = 1000

// CheckNamedGroups returns an error with the code InvalidArguments if one of the sets names more
// than MaxNamedGroups. what says what was attempted. A nil set names none.
func CheckNamedGroups(what string, sets ...*toolgroups.GroupSet) error {
	for _, set := range sets {
		if set != nil && len(set.GroupIDs()) > MaxNamedGroups {
			return errcode.New(errcode.InvalidArguments, "%s: it names %d tool groups; at most %d are allowed", what, len(set.GroupIDs()), MaxNamedGroups)
		}
	}
	return nil
}

// checkNamedGroups is CheckNamedGroups for a role.
func (s RoleSpec) checkNamedGroups() error {
	sets := []*toolgroups.GroupSet{s.Use, s.Grant}
	if s.Agent != nil {
		sets = append(sets, s.Agent.DefaultGroups)
	}
	if err := CheckNamedGroups("role", sets...); err != nil {
		return errcode.New(errcode.InvalidRole, "%s", errcode.Message(err))
	}
	return nil
}
