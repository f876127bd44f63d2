package runtime

import (
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups"
)

// commitGroups publishes a change of the registry and records it in one commit. It is
// the commit function of the Manager.
//
// After it returns no call of a removed group's tools starts. Calls that returned before,
// and calls with effects that started before, are recorded before the change.
func (rt *Runtime) commitGroups(c toolgroups.Change) error {
	c.Publish()
	events := rt.groupEvents(c)
	if len(events) == 0 {
		return nil
	}
	_, err := rt.flushAndCommit(&journal.Batch{Events: events, Prepare: func(b *journal.Batch) error {
		b.Put = storeRecords(rt.org.EpochRecords())
		return nil
	}})
	return err
}

// groupEvents returns the events of a published change. The built-in groups are part of
// the program and have none.
func (rt *Runtime) groupEvents(c toolgroups.Change) (events []journal.Event) {
	epoch := rt.org.CurrentEpoch()
	add := func(b journal.EventBody) { events = append(events, journal.Event{At: rt.now(), Body: b}) }
	for _, g := range c.Groups {
		id, owner := string(g.Group.ID), string(g.Group.Owner)
		if g.Group.Reserved {
			continue
		}
		if g.Removed {
			add(journal.GroupUnregistered{Group: id, Owner: owner, Epoch: epoch})
			continue
		}
		if !g.Switched {
			add(journal.GroupRegistered{Group: id, Owner: owner, Tools: g.Group.Tools, Epoch: epoch})
		}
		if g.Group.Hours != nil {
			add(hoursEvent(g.Group, epoch))
		}
	}
	return events
}

// hoursEvent returns the event that says whether a group with hours is open or closed.
func hoursEvent(g toolgroups.GroupInfo, epoch uint64) journal.EventBody {
	next := g.Hours.NextChange.UTC()
	if g.Hours.Closed {
		return journal.GroupClosed{Group: string(g.ID), Owner: string(g.Owner), NextChange: next, Epoch: epoch}
	}
	return journal.GroupOpened{Group: string(g.ID), Owner: string(g.Owner), Tools: g.Tools, NextChange: next, Epoch: epoch}
}
