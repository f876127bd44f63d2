package runtime

import "github.com/rolecall/rolecall/journal"

// Load is how much there is to do at one moment.
type Load struct {
	Tasks   int    // that are worked on
	Working int    // agents at work
	Delayed int    // messages of those tasks that are not due yet
	Commits uint64 // since the Runtime was made
}

// Load counts what there is to do. It looks at no record.
func (rt *Runtime) Load() Load {
	rt.mu.Lock()
	defer rt.mu.Unlock()
	l := Load{Tasks: len(rt.tasks), Working: len(rt.active), Commits: rt.commits.Load()}
	for _, run := range rt.tasks {
		l.Delayed += len(run.delayed)
	}
	return l
}

// observe tells of a commit.
func (rt *Runtime) observe(events []journal.Event) {
	rt.commits.Add(1)
	if rt.config.Observe == nil {
		return
	}
	for _, e := range events {
		rt.config.Observe(e)
	}
}
