package runtime

import (
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups"
)

// RegisterGroup adds a tool group while the organization runs, or replaces the group
// of the same owner, and records it. Errors: those of
// toolgroups.Manager.RegisterGroup.
func (rt *Runtime) RegisterGroup(owner toolgroups.Owner, g toolgroups.Group) (toolgroups.Warning, error) {
	warning, err := rt.config.Groups.RegisterGroup(owner, g)
	if err != nil {
		return "", err
	}
	info, _ := rt.config.Groups.Snapshot().Group(g.ID)
	return warning, rt.groupEvent(journal.GroupRegistered{Group: string(g.ID), Owner: string(owner), Tools: info.Tools, Epoch: rt.org.CurrentEpoch()})
}

// UnregisterGroup removes a tool group and records it. After it returns no call of
// the group's tools starts. Calls that returned before, and calls with effects
// that started before, are recorded before this event.
func (rt *Runtime) UnregisterGroup(owner toolgroups.Owner, id toolgroups.GroupID) error {
	if err := rt.config.Groups.UnregisterGroup(owner, id); err != nil {
		return err
	}
	return rt.groupEvent(journal.GroupUnregistered{Group: string(id), Owner: string(owner), Epoch: rt.org.CurrentEpoch()})
}

// groupEvent commits a change of the registry together with the epoch.
func (rt *Runtime) groupEvent(body journal.Body) error {
	_, err := rt.flushAndCommit(&journal.Batch{Events: []journal.Event{{At: rt.now(), Body: body}}, Prepare: func(b *journal.Batch) error {
		b.Put = storeRecords(rt.org.EpochRecord())
		return nil
	}})
	return err
}
