package toolgroups

import (
	"time"

	"github.com/rolecall/rolecall/errcode"
)

// Hours say when a group is open. They only describe it: the owner of the group opens and
// closes it, see [Tx.SwitchGroup]. Implementations must be safe for concurrent use.
type Hours interface {
	Zone() string          // name of a time zone
	Spans() []string       // such as "mon-fri 08:00-18:00"
	NextChange() time.Time // when the group opens or closes next; zero if it never does
}

// GroupHours describes the Hours of a registered group.
type GroupHours struct {
	Zone       string    `json:"zone"`
	Open       []string  `json:"open"`                // spans, such as "mon-fri 08:00-18:00"
	Closed     bool      `json:"closed"`              // the group has no tools now
	NextChange time.Time `json:"nextChange,omitzero"` // absent if the hours never change
}

// isClosed reports whether g has hours and is not open.
func (g *group) isClosed() bool { return g.hours != nil && !g.open }

// describeHours returns the hours of g, nil if it has none.
func (g *group) describeHours() *GroupHours {
	if g.hours == nil {
		return nil
	}
	return &GroupHours{Zone: g.hours.Zone(), Open: g.hours.Spans(), Closed: g.isClosed(), NextChange: g.hours.NextChange()}
}

// SwitchGroup opens or closes a group that has Hours. Nothing else of it changes. The error
// has the code GroupNotFound if owner has no such group, and InvalidGroupDef if the group
// has no Hours.
func (tx *Tx) SwitchGroup(owner *Owner, id GroupID, open bool) error {
	if err := owner.check(tx.manager); err != nil {
		return err
	}
	e := tx.edit(id)
	if e.after != nil {
		return errcode.New(errcode.InvalidGroupDef, "switch tool group %q: it is registered in the same change; register it open or closed", id)
	}
	if err := checkSwitch(e, id, owner.name); err != nil {
		return err
	}
	if e.before.open != open {
		e.switches, e.after = true, e.before.withOpen(open)
	}
	return nil
}

// checkSwitch returns an error unless an edit may open or close its group.
func checkSwitch(e *groupEdit, id GroupID, owner GroupOwner) error {
	switch {
	case e.dropped || e.before == nil || e.before.Owner != owner:
		return errcode.New(errcode.GroupNotFound, "switch tool group %q: %s has no group of this id", id, owner)
	case e.before.hours == nil:
		return errcode.New(errcode.InvalidGroupDef, "switch tool group %q: it has no hours", id)
	}
	return nil
}

// opened returns a copy of g that is open.
func (g *group) opened() *group { return g.withOpen(true) }

// withOpen returns a copy of g that is open or closed.
func (g *group) withOpen(open bool) *group {
	next := *g
	next.open = open
	return &next
}

// checkHours returns an error if a group has Hours and tools of its own. Such tools could not be
// closed without their registration.
func checkHours(g Group) error {
	if g.Hours != nil && len(g.Tools) > 0 {
		return errcode.New(errcode.InvalidGroupDef, "register tool group %q: it has hours and tools of its own; only a group of references can have hours", g.ID)
	}
	return nil
}

// FindClosed returns a closed group through which b would contain the tool h. It reports
// false if there is none.
func (s *Snapshot) FindClosed(b PinnedSet, h *ToolHandle) (GroupInfo, bool) {
	if !b.matchesOwner(h) {
		return GroupInfo{}, false
	}
	for _, g := range s.pinnedGroups(b) {
		if !g.isClosed() {
			continue
		}
		for _, member := range s.members(g.opened()) {
			if member.isSameTool(h) {
				return s.info(g), true
			}
		}
	}
	return GroupInfo{}, false
}
