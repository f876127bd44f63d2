package runtime

import (
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups"
)

// Register adds a tool group while the organization runs, or replaces the group
// of the same owner, and records it. Errors: those of
// toolgroups.Manager.Register.
func (rt *Runtime) Register(owner toolgroups.Owner, g toolgroups.Group) (toolgroups.Warning, error) {
	warning, err := rt.config.Groups.Register(owner, g)
	if err != nil {
		return "", err
	}
	info, _ := rt.config.Groups.Snapshot().Group(g.ID)
	return warning, rt.groupEvent(journal.GroupRegistered{Group: string(g.ID), Owner: string(owner), Tools: info.Tools, Epoch: rt.org.Epoch()})
}

// Unregister removes a tool group and records it. After it returns no call of
// the group's tools starts. Calls that returned before, and calls with effects
// that started before, are recorded before this event.
func (rt *Runtime) Unregister(owner toolgroups.Owner, id toolgroups.GroupID) error {
	if err := rt.config.Groups.Unregister(owner, id); err != nil {
		return err
	}
	return rt.groupEvent(journal.GroupUnregistered{Group: string(id), Owner: string(owner), Epoch: rt.org.Epoch()})
}

// groupEvent commits a change of the registry together with the epoch.
func (rt *Runtime) groupEvent(body journal.Body) error {
	_, err := rt.flushAndCommit(&journal.Batch{Events: []journal.Event{{At: rt.now(), Body: body}}, Prepare: func(b *journal.Batch) error {
		b.Put = storeRecords(rt.org.EpochRecord())
		return nil
	}})
	return err
}
