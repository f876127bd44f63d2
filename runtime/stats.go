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
	rt.mu.Lock()
	defer rt.mu.Unlock()
	l := Load{Tasks: len(rt.tasks), Working: len(rt.active), Commits: rt.commits.Load()}
	for _, run := range rt.tasks {
		l.Delayed += len(run.delayed)
	}
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
