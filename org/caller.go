package org

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// Caller is the stored workflow state of an external user in a role. There is a record
// once a call has changed the state. Its key is identity.Principal.Key.
type Caller struct {
	User  identity.UserName `json:"user"`
	Role  identity.RoleID   `json:"roleId"`
	State string            `json:"state"` // never ""
}

// callers holds the workflow states of external callers. A caller without a record is in
// the initial state. A caller whose record is damaged is denied until Org.ResetCaller.
// The initial state may allow more than the lost state.
type callers struct {
	states         map[callerKey]string                    // "" of callers that have called and have no record
	users          map[identity.RoleID][]identity.UserName // those in states, in the order in which they were added
	unrecorded     int                                     // callers in states without a record; at most maxUnrecorded
	damaged        map[string]bool                         // keys of damaged records
	unknownDamaged bool                                    // there are damaged records whose keys are lost too
}

// maxUnrecorded limits the callers without a record that are remembered. They are
// remembered to name them when their role changes.
const maxUnrecorded = 10_000

// callerKey identifies an external user in a role.
type callerKey struct {
	user identity.UserName
	role identity.RoleID
}

func newCallers() callers {
	return callers{states: map[callerKey]string{}, users: map[identity.RoleID][]identity.UserName{}, damaged: map[string]bool{}}
}

// stateOf returns the workflow state of a caller, "" for the initial state. It reports
// false if the state is lost.
func (c *callers) stateOf(p identity.Principal) (string, bool) {
	state, ok := c.states[callerKey{p.User, p.Role}]
	if ok {
		return state, true
	}
	return "", !c.unknownDamaged && (len(c.damaged) == 0 || !c.damaged[p.Key()])
}

// shouldRemember reports whether a caller is to be remembered.
func (c *callers) shouldRemember(p identity.Principal) bool {
	_, known := c.states[callerKey{p.User, p.Role}]
	return !known && c.unrecorded < maxUnrecorded
}

// remember remembers a caller without a record, whose state is the initial one.
func (c *callers) remember(p identity.Principal) {
	if c.shouldRemember(p) {
		c.set(callerKey{p.User, p.Role}, "")
		c.unrecorded++
	}
}

// record sets the recorded state of a caller.
func (c *callers) record(p callerKey, state string) {
	if old, known := c.states[p]; known && old == "" {
		c.unrecorded--
	}
	c.set(p, state)
}

func (c *callers) set(p callerKey, state string) {
	if _, known := c.states[p]; !known {
		c.users[p.role] = append(c.users[p.role], p.user)
	}
	c.states[p] = state
}

// maxCallerName is the maximum length of a user name and of a role id, in bytes.
const maxCallerName = 256

// CheckCaller returns an error with the code Unauthenticated if p is not an external
// caller with a valid user name and role id.
func CheckCaller(p identity.Principal) error {
	switch {
	case p.Kind != identity.Caller:
		return errcode.New(errcode.Unauthenticated, "act in a role: the principal is not an external caller")
	case !validName(string(p.User)) || !validName(string(p.Role)):
		return errcode.New(errcode.Unauthenticated, "act in a role: the names of user and role must have 1 to %d bytes of UTF-8", maxCallerName)
	}
	return nil
}

// validName reports whether a user name or role id can be stored.
func validName(name string) bool {
	return name != "" && len(name) <= maxCallerName && utf8.ValidString(name)
}

// callerScope returns the scope and the workflow state of a caller, nil if it is denied.
// The callers of a role with the same limit share one scope. It is created for the first caller of an active
// role; requests for unknown roles do not create scopes.
func (o *Org) callerScope(p identity.Principal) (*scope, string) {
	if CheckCaller(p) != nil {
		return nil, ""
	}
	o.mu.RLock()
	state, ok := o.activeCallerState(p)
	key := scopeKey{role: p.Role, bounds: p.Within} // no other text of bounds looks like one of LimitTo
	s, isNew := o.scopes.byKey[key], o.callers.shouldRemember(p)
	o.mu.RUnlock()
	switch {
	case !ok:
		return nil, ""
	case s != nil && !isNew:
		s.used.Store(true)
		return s, state
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if state, ok = o.activeCallerState(p); !ok {
		return nil, ""
	}
	o.callers.remember(p)
	_, known := o.scopes.byKey[key]
	s = o.intern(key, networkLimits(p))
	s.used.Store(true)
	if !known {
		o.scopes.addLimited(key)
	}
	return s, state
}

// activeCallerState returns the workflow state of a caller. It reports false if the role
// is not active or the state is lost. It must be called with mu held.
func (o *Org) activeCallerState(p identity.Principal) (state string, ok bool) {
	if !o.roleIsActive(p.Role) {
		return "", false
	}
	return o.callers.stateOf(p)
}

// roleIsActive reports whether there is an active role with this id. It must be called with
// mu held.
func (o *Org) roleIsActive(id identity.RoleID) bool {
	role, ok := o.roles[id]
	return ok && role.Status == Active
}

// SetCallerState sets the workflow state of a caller. The state "" is UndefinedState.
func (o *Org) SetCallerState(p identity.Principal, state string) []RecordChange {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.setCallerState(p, state)
}

// ResetCaller sets a caller to the initial workflow state, whether its record is damaged
// or not. The error has the code Unauthenticated if p is not a valid caller, and
// RoleNotFound if its role is not active.
func (o *Org) ResetCaller(p identity.Principal) ([]RecordChange, error) {
	if err := CheckCaller(p); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if role, ok := o.roles[p.Role]; !ok || role.Status != Active {
		return nil, notFound(errcode.RoleNotFound, "role", string(p.Role))
	}
	delete(o.callers.damaged, p.Key())
	// Write a record, so that the caller is known even if unknownDamaged is set.
	return o.setCallerState(p, toolgroups.UndefinedState), nil
}

// setCallerState sets the state and returns its record. It must be called with mu held.
func (o *Org) setCallerState(p identity.Principal, state string) []RecordChange {
	state = toolgroups.StateName(state)
	o.callers.record(callerKey{p.User, p.Role}, state)
	return []RecordChange{newRecord(KindCaller, p.Key(), Caller{p.User, p.Role, state})}
}

// loadCallers reads the callers and remembers which records are damaged.
func (o *Org) loadCallers(source RecordSource) {
	for r, err := range source.Records(string(KindCaller)) {
		var c Caller
		if err == nil {
			c, err = readCaller(r)
		}
		if err == nil {
			o.callers.record(callerKey{c.User, c.Role}, c.State)
			continue
		}
		o.skipRecord(KindCaller, r, err.Error())
		o.callers.damaged[r.Key] = true
		o.callers.unknownDamaged = o.callers.unknownDamaged || r.Key == ""
	}
}

// readCaller decodes a record. It returns an error if the record does not match its key.
func readCaller(r StoredRecord) (Caller, error) {
	var c Caller
	if err := json.Unmarshal(r.Value, &c); err != nil {
		return c, err
	}
	p := identity.ByCaller(c.User, c.Role)
	if CheckCaller(p) != nil || p.Key() != r.Key || c.State == "" {
		return c, errors.New("it does not match its key")
	}
	return c, nil
}

// KnownCallers returns the external callers with this user name, one for each active role,
// sorted by role id. They are known if they have a workflow state, or have called since the
// program was started.
func (o *Org) KnownCallers(user identity.UserName) (list []identity.Principal) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	for key := range o.callers.states {
		if key.user == user && o.roleIsActive(key.role) {
			list = append(list, identity.ByCaller(user, key.role))
		}
	}
	slices.SortFunc(list, func(a, b identity.Principal) int { return strings.Compare(string(a.Role), string(b.Role)) })
	return list
}
