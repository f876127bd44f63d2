package org

import (
	"encoding/json"
	"errors"
	"unicode/utf8"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/toolgroups"
)

// Caller is where somebody from outside stands in the workflow of a role, as
// it is stored: once a call has moved it, under identity.Principal.Key.
type Caller struct {
	User  identity.User   `json:"user"`
	Role  identity.RoleID `json:"roleId"`
	State string          `json:"state"` // never ""
}

// callers are those from outside who have a record. One who has none stands at
// the beginning; one whose record cannot be read is denied, since nobody knows
// where it stands, until Org.ResetCaller.
type callers struct {
	states         map[callerKey]string
	damaged        map[string]bool // keys of records that could not be read
	unknownDamaged bool            // there are such records whose keys are not known either
}

type callerKey struct {
	user identity.User
	role identity.RoleID
}

func newCallers() callers {
	return callers{states: map[callerKey]string{}, damaged: map[string]bool{}}
}

// state gives where a caller stands; false when nobody knows.
func (c *callers) state(p identity.Principal) (string, bool) {
	state, ok := c.states[callerKey{p.User, p.Role}]
	if ok {
		return state, true
	}
	return "", !c.unknownDamaged && (len(c.damaged) == 0 || !c.damaged[p.Key()])
}

// maxCallerName bounds a user's name and a role's id, in bytes.
const maxCallerName = 256

// CheckCaller refuses a principal that is no caller from outside, or has no
// usable name. Error: Unauthenticated.
func CheckCaller(p identity.Principal) error {
	switch {
	case p.Kind != identity.Caller:
		return errcode.New(errcode.Unauthenticated, "act in a role: only a caller from outside does")
	case !validName(string(p.User)) || !validName(string(p.Role)):
		return errcode.New(errcode.Unauthenticated, "act in a role: the names of user and role must have 1 to %d bytes of UTF-8", maxCallerName)
	}
	return nil
}

func validName(name string) bool {
	return name != "" && len(name) <= maxCallerName && utf8.ValidString(name)
}

// callerScope gives the slot of an active role and where the caller stands in
// it; nil for one that is denied. A role's slot is made when somebody first acts
// in it; asking for roles that are not there makes nothing.
func (o *Org) callerScope(p identity.Principal) (*scope, string) {
	if CheckCaller(p) != nil {
		return nil, ""
	}
	o.mu.RLock()
	state, ok := o.callerState(p)
	s := o.slots.byKey[scopeKey{role: p.Role}]
	o.mu.RUnlock()
	switch {
	case !ok:
		return nil, ""
	case s != nil:
		return s, state
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if state, ok = o.callerState(p); !ok {
		return nil, ""
	}
	return o.intern(scopeKey{role: p.Role}, nil), state
}

// callerState says whether a caller has a seat, and in which state.
func (o *Org) callerState(p identity.Principal) (state string, ok bool) {
	role, there := o.roles[p.Role]
	if !there || role.Status != Active {
		return "", false
	}
	return o.callers.state(p)
}

// SetCallerState sets a caller's workflow state.
func (o *Org) SetCallerState(p identity.Principal, state string) []Change {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.storeCallerState(p, state)
}

// ResetCaller puts a caller back to the beginning of its role's workflow,
// whether its record could be read or not.
//
// Errors: Unauthenticated for one that is no caller, RoleNotFound.
func (o *Org) ResetCaller(p identity.Principal) ([]Change, error) {
	if err := CheckCaller(p); err != nil {
		return nil, err
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if role, ok := o.roles[p.Role]; !ok || role.Status != Active {
		return nil, notFound(errcode.RoleNotFound, "role", string(p.Role))
	}
	delete(o.callers.damaged, p.Key())
	return o.storeCallerState(p, toolgroups.Undefined), nil // a record, so that the caller is known also when others are lost
}

func (o *Org) storeCallerState(p identity.Principal, state string) []Change {
	if state == "" {
		state = toolgroups.Undefined
	}
	o.callers.states[callerKey{p.User, p.Role}] = state
	return []Change{record(KindCaller, p.Key(), Caller{p.User, p.Role, state})}
}

func (o *Org) loadCallers(source Source) {
	for r, err := range source.Records(string(KindCaller)) {
		var c Caller
		if err == nil {
			c, err = readCaller(r)
		}
		if err == nil {
			o.callers.states[callerKey{c.User, c.Role}] = c.State
			continue
		}
		o.skipRecord(KindCaller, r, err.Error())
		o.callers.damaged[r.Key] = true
		o.callers.unknownDamaged = o.callers.unknownDamaged || r.Key == ""
	}
}

// readCaller reads a record, which has to be what its key names.
func readCaller(r Record) (Caller, error) {
	var c Caller
	if err := json.Unmarshal(r.Value, &c); err != nil {
		return c, err
	}
	p := identity.ByCaller(c.User, c.Role)
	if CheckCaller(p) != nil || p.Key() != r.Key || c.State == "" {
		return c, errors.New("it is not the record of a caller that its key names")
	}
	return c, nil
}
