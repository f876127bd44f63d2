package org

import (
	"encoding/json"
	"maps"
	"time"
)

// lostRoles are the roles of the operator and of the configuration whose records are damaged. Any of them
// may have been paused. The zero value is empty.
type lostRoles struct {
	any   bool            // the names of one are unknown
	names map[string]bool // present and former names of the others
}

// add adds what is still readable of a record.
func (l *lostRoles) add(value []byte) {
	var r struct {
		Name        string   `json:"name"`
		FormerNames []string `json:"formerNames"`
		CreatedBy   string   `json:"createdBy"`
	}
	switch err := json.Unmarshal(value, &r); {
	case err != nil || r.Name == "" || r.CreatedBy == "":
		l.any = true
	case r.CreatedBy == CreatorOperator || r.CreatedBy == CreatorConfig:
		if l.names == nil {
			l.names = map[string]bool{}
		}
		for _, name := range append(r.FormerNames, r.Name) {
			l.names[name] = true
		}
	}
}

// has reports whether a role of a name may be lost.
func (l lostRoles) has(name string) bool { return l.any || l.names[name] }

// clone returns a copy.
func (l lostRoles) clone() lostRoles { return lostRoles{l.any, maps.Clone(l.names)} }

// suspension returns the pause of a new role that may have been paused before its record was damaged.
func (lostRoles) suspension(now time.Time) Suspension {
	return Suspension{
		SuspendedAt: now, SuspendedBy: "rolecall",
		SuspendReason: "the record of a role is damaged, and may have been a paused role of this name: resume it, or restore a backup",
	}
}
