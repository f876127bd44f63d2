package runtime

import "github.com/rolecall/rolecall/journal"

// Load is a snapshot of the work in progress.
type Load struct {
	Tasks   int    // running in this process
	Working int    // active agents
	Delayed int    // delayed messages of those tasks
	Commits uint64 // since the Runtime was created
}

// Load returns the current load. It reads no records.
func (rt *Runtime) Load() Load {
	l := rt.tracker.load()
	l.Commits = rt.commits.Load()
	return l
}

// observe counts a commit and passes its events to Config.Observe.
func (rt *Runtime) observe(events []journal.Event) {
	rt.commits.Add(1)
	if rt.config.Observe == nil {
		return
	}
	for _, e := range events {
		rt.config.Observe(e)
	}
}
