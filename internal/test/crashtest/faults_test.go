package crashtest

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// undisturbed is what an organization that was left alone leaves.
type undisturbed struct {
	record *record
	seen   *evidence
	traces traces
}

func (u undisturbed) faults() []string {
	return slices.Concat(u.record.faults(u.seen), u.record.unfinished(), u.traces.faults(u.record))
}

// clone gives a copy to be tampered with.
func (u undisturbed) clone() undisturbed {
	r, s, tr := *u.record, *u.seen, u.traces
	r.events, r.tasks, r.agents = slices.Clone(r.events), slices.Clone(r.tasks), slices.Clone(r.agents)
	s.events, s.prints = maps.Clone(s.events), maps.Clone(s.prints)
	tr.lines, tr.files = maps.Clone(tr.lines), maps.Clone(tr.files)
	return undisturbed{&r, &s, tr}
}

// drop takes from the record the first event of a type that concerns a mark.
func (u undisturbed) drop(kind journal.Type, mark string) {
	u.record.events = slices.Delete(u.record.events, u.find(kind, mark), u.find(kind, mark)+1)
}

// again puts such an event into the record once more.
func (u undisturbed) again(kind journal.Type, mark string) {
	e := u.record.events[u.find(kind, mark)]
	e.Seq = u.record.events[len(u.record.events)-1].Seq + 1
	u.record.events = append(u.record.events, e)
}

func (u undisturbed) find(kind journal.Type, mark string) int {
	return slices.IndexFunc(u.record.events, func(e journal.Event) bool {
		return e.Body.EventType() == kind && strings.Contains(text(e), mark)
	})
}

// What the checks are for they find: each case does to a good record what a
// crash must not.
func TestTheChecksFindWhatACrashMustNotDo(t *testing.T) {
	h := newHouse(t)
	h.live(t, never)
	good := undisturbed{h.record(t), h.seen, h.traces(t)}
	if faults := good.faults(); len(faults) > 0 || len(good.seen.events) < 100 {
		t.Fatalf("left alone, it printed %d events, and: %v", len(good.seen.events), faults)
	}
	for name, c := range map[string]struct {
		tamper func(u undisturbed)
		want   string
	}{
		"a printed event is lost":         {func(u undisturbed) { u.drop("message", "left-1.2") }, "was printed as"},
		"the last event is lost":          {func(u undisturbed) { u.drop("result", "") }, "was printed as"},
		"a printed event reads otherwise": {func(u undisturbed) { u.record.events[9].Role = "else" }, "was printed as"},
		"the order is another":            {func(u undisturbed) { u.record.events[9], u.record.events[8] = u.record.events[8], u.record.events[9] }, "stands in the log behind"},
		"the task is lost":                {func(u undisturbed) { u.seen.task = "another" }, "was begun"},
		"the parent is lost":              {func(u undisturbed) { u.record.agents = orphaned(u.record.agents) }, "is an orphan"},
		"an agent is lost":                {func(u undisturbed) { u.record.agents = u.record.agents[1:] }, "is not on record"},
		"an agent is made twice":          {func(u undisturbed) { u.again("agent_spawned", "parent") }, "was made twice"},
		"an agent's making is lost":       {func(u undisturbed) { u.drop("agent_spawned", "parent") }, "the events say"},
		"a mutating call starts twice":    {func(u undisturbed) { u.again("tool_call", "printed left-1.2") }, "started 2 times"},
		"a call ends twice":               {func(u undisturbed) { u.again("tool_result", "") }, "ended 2 times"},
		"a call has no outcome":           {func(u undisturbed) { u.drop("tool_result", "") }, "has no outcome"},
		"what was not asked for acts":     {func(u undisturbed) { u.drop("tool_call", "printed left-1.2") }, "its call is on record: false"},
		"a line is printed twice":         {func(u undisturbed) { u.seen.prints["left-1.2"]++ }, "was printed 2 times"},
		"a program acts twice":            {func(u undisturbed) { u.traces.lines["left-1.2"]++ }, "left-1.2 acted 2 times"},
		"a success has no effect":         {func(u undisturbed) { delete(u.traces.lines, "left-1.2") }, "left-1.2 acted 0 times"},
		"a file is not what was written":  {func(u undisturbed) { u.traces.files["left-1.2.txt"] = "left" }, "the workspace holds"},
		"an artifact is lost":             {func(u undisturbed) { u.record.artifacts-- }, "15 artifacts"},
		"a message is left":               {func(u undisturbed) { u.record.waiting = []string{"message 1"} }, "after the end wait"},
		"the result is another":           {func(u undisturbed) { u.record.tasks[0].Result = []byte("[]") }, "the task is done"},
		"the task failed":                 {func(u undisturbed) { u.record.tasks[0].Status = org.Failed }, "the task is failed"},
		"stdout holds something else":     {func(u undisturbed) { u.seen.event("panic:") }, "stdout is no event"},
	} {
		t.Run(name, func(t *testing.T) {
			u := good.clone()
			c.tamper(u)
			if got := strings.Join(u.faults(), "\n"); !strings.Contains(got, c.want) {
				t.Errorf("the checks say %q, want %q in it", got, c.want)
			}
		})
	}
}

// orphaned gives the agents without the first that has children.
func orphaned(agents []org.Agent) []org.Agent {
	parents := map[identity.AgentID]bool{}
	for _, a := range agents {
		parents[a.Parent] = true
	}
	i := slices.IndexFunc(agents, func(a org.Agent) bool { return parents[a.ID] })
	return slices.Delete(agents, i, i+1)
}
