//go:build linux && (amd64 || arm64)

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

// baseline is what an undisturbed organization leaves.
type baseline struct {
	stored   *stored
	observed *observed
	effects  effects
}

func (u baseline) faults() []string {
	return slices.Concat(u.stored.faults(u.observed), u.stored.unfinished(), u.effects.faults(u.stored))
}

// clone returns a copy to be tampered with.
func (u baseline) clone() baseline {
	r, s, tr := *u.stored, *u.observed, u.effects
	r.events, r.tasks, r.agents = slices.Clone(r.events), slices.Clone(r.tasks), slices.Clone(r.agents)
	s.events, s.prints = maps.Clone(s.events), maps.Clone(s.prints)
	tr.lines, tr.files = maps.Clone(tr.lines), maps.Clone(tr.files)
	return baseline{&r, &s, tr}
}

// dropEvent removes the first event of a type that mentions a mark.
func (u baseline) dropEvent(kind journal.EventType, mark string) {
	u.stored.events = slices.Delete(u.stored.events, u.findEvent(kind, mark), u.findEvent(kind, mark)+1)
}

// repeatEvent appends such an event once more.
func (u baseline) repeatEvent(kind journal.EventType, mark string) {
	e := u.stored.events[u.findEvent(kind, mark)]
	e.Seq = u.stored.events[len(u.stored.events)-1].Seq + 1
	u.stored.events = append(u.stored.events, e)
}

func (u baseline) findEvent(kind journal.EventType, mark string) int {
	return slices.IndexFunc(u.stored.events, func(e journal.Event) bool {
		return e.Body.EventType() == kind && strings.Contains(eventJSON(e), mark)
	})
}

// Each case tampers with a correct data file in a way a crash must not, and the checks
// must find it.
func TestFaults_DetectsTampering(t *testing.T) {
	fx := newFixture(t)
	fx.runAndKill(t, neverKill)
	good := baseline{fx.readStored(t), fx.observed, fx.readEffects(t)}
	if faults := good.faults(); len(faults) > 0 || len(good.observed.events) < 100 {
		t.Fatalf("undisturbed, it printed %d events; faults: %v", len(good.observed.events), faults)
	}
	for name, c := range map[string]struct {
		tamper func(u baseline)
		want   string
	}{
		"a printed event is lost":             {func(u baseline) { u.dropEvent("message", "left-1.2") }, "was printed as"},
		"the last event is lost":              {func(u baseline) { u.dropEvent("result", "") }, "was printed as"},
		"a printed event has changed":         {func(u baseline) { u.stored.events[9].Role = "else" }, "was printed as"},
		"the order has changed":               {func(u baseline) { u.stored.events[9], u.stored.events[8] = u.stored.events[8], u.stored.events[9] }, "is stored after"},
		"the task is lost":                    {func(u baseline) { u.observed.task = "another" }, "was started"},
		"the parent is lost":                  {func(u baseline) { u.stored.agents = withoutOneParent(u.stored.agents) }, "is an orphan"},
		"an agent is lost":                    {func(u baseline) { u.stored.agents = u.stored.agents[1:] }, "is not stored"},
		"an agent is spawned twice":           {func(u baseline) { u.repeatEvent("agent_spawned", "parent") }, "was spawned twice"},
		"the spawn event of an agent is lost": {func(u baseline) { u.dropEvent("agent_spawned", "parent") }, "its event has"},
		"a mutating call starts twice":        {func(u baseline) { u.repeatEvent("tool_call", "printed left-1.2") }, "started 2 times"},
		"a call ends twice":                   {func(u baseline) { u.repeatEvent("tool_result", "") }, "ended 2 times"},
		"a call has no outcome":               {func(u baseline) { u.dropEvent("tool_result", "") }, "has no outcome"},
		"an effect has no call":               {func(u baseline) { u.dropEvent("tool_call", "printed left-1.2") }, "its call is stored: false"},
		"a line is printed twice":             {func(u baseline) { u.observed.prints["left-1.2"]++ }, "was printed 2 times"},
		"a program acts twice":                {func(u baseline) { u.effects.lines["left-1.2"]++ }, "left-1.2 acted 2 times"},
		"a success has no effect":             {func(u baseline) { delete(u.effects.lines, "left-1.2") }, "left-1.2 acted 0 times"},
		"a file is not what was written":      {func(u baseline) { u.effects.files["left-1.2.txt"] = "left" }, "the workspace contains"},
		"an artifact is lost":                 {func(u baseline) { u.stored.artifacts-- }, "15 artifacts"},
		"a message is pending":                {func(u baseline) { u.stored.pending = []string{"message 1"} }, "pending after the end"},
		"the result has changed":              {func(u baseline) { u.stored.tasks[0].Result = []byte("[]") }, "the task is done"},
		"the task failed":                     {func(u baseline) { u.stored.tasks[0].Status = org.Failed }, "the task is failed"},
		"stdout contains another line":        {func(u baseline) { u.observed.addEvent("panic:") }, "stdout is not an event"},
	} {
		t.Run(name, func(t *testing.T) {
			u := good.clone()
			c.tamper(u)
			if got := strings.Join(u.faults(), "\n"); !strings.Contains(got, c.want) {
				t.Errorf("the checks report %q, want %q in it", got, c.want)
			}
		})
	}
}

// withoutOneParent returns the agents without the first that has children.
func withoutOneParent(agents []org.Agent) []org.Agent {
	parents := map[identity.AgentID]bool{}
	for _, a := range agents {
		parents[a.Parent] = true
	}
	i := slices.IndexFunc(agents, func(a org.Agent) bool { return parents[a.ID] })
	return slices.Delete(agents, i, i+1)
}
