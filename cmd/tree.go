package cmd

import (
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// treeView keeps the tree of agents at the bottom of a terminal. Above it, it prints denied
// calls, messages between agents, and notes about their models.
type treeView struct {
	lines  *lineView
	agents []*node // parents before children
}

// node is an agent in the tree.
type node struct {
	id, parent identity.AgentID
	depth      int    // 0 for the top agent of a task
	activity   string // a state such as "waits", or the tool that it called last
	calls      int    // calls so far, with the denied ones
	denied     int
}

// observe takes an event of the past into account and prints nothing.
func (v *treeView) observe(e journal.Event) {
	v.lines.observe(e)
	v.track(e)
}

// event prints the line of an event, if it is logged, and draws the tree again.
func (v *treeView) event(e journal.Event) error {
	line := v.lines.format(e)
	v.track(e)
	if line == "" || !isLogged(e) {
		return v.lines.screen.update("", v.tree())
	}
	return v.lines.screen.update(line+"\n", v.tree())
}

// isLogged reports whether the line of an event is printed above the tree. Other events
// only change the tree.
func isLogged(e journal.Event) bool {
	switch b := e.Body.(type) {
	case journal.MessageSent, journal.TurnFailed, journal.ToolError, journal.ModelDelta, journal.ModelAnswered, journal.ContextCompressed:
		return true
	case journal.ToolCall:
		return b.Decision == journal.Denied
	}
	return false
}

// track updates the tree after an event.
func (v *treeView) track(e journal.Event) {
	switch b := e.Body.(type) {
	case journal.AgentSpawned:
		v.insert(&node{id: e.Agent, parent: b.Parent, activity: "starts"})
	case journal.AgentTerminated:
		v.setActivity(e.Agent, "terminated")
	case journal.ToolCall:
		if n := v.find(e.Agent); n != nil {
			n.calls++
			n.activity = textutil.Sanitize(b.Tool) // models can write any text as a tool name
			if b.Decision == journal.Denied {
				n.denied++
			}
		}
	case journal.ModelDelta:
		if b.Note == "" {
			v.setActivity(e.Agent, "answers")
		}
	case journal.ModelAnswered:
		switch b.Answer.Finish {
		case model.FinishEnd:
			v.setActivity(e.Agent, "done")
		case model.FinishWait:
			v.setActivity(e.Agent, "waits")
		}
	case journal.TurnFailed:
		v.setActivity(e.Agent, "failed")
	}
}

func (v *treeView) setActivity(id identity.AgentID, what string) {
	if n := v.find(id); n != nil {
		n.activity = what
	}
}

func (v *treeView) find(id identity.AgentID) *node {
	for _, n := range v.agents {
		if n.id == id {
			return n
		}
	}
	return nil
}

// insert adds an agent after the last descendant of its parent.
func (v *treeView) insert(n *node) {
	at := len(v.agents)
	for i, p := range v.agents {
		if p.id != n.parent {
			continue
		}
		n.depth = p.depth + 1
		for at = i + 1; at < len(v.agents) && v.agents[at].depth > p.depth; at++ {
		}
		break
	}
	v.agents = append(v.agents[:at], append([]*node{n}, v.agents[at:]...)...)
}

// tree returns one line per agent.
func (v *treeView) tree() []string {
	list := make([]string, 0, len(v.agents))
	for _, n := range v.agents {
		text := fmt.Sprintf("%s%s  %s  %d calls", strings.Repeat("  ", n.depth), v.lines.screen.names.nameOf(string(n.id), ""), n.activity, n.calls)
		if n.denied > 0 {
			text += fmt.Sprintf(", %d denied", n.denied)
		}
		list = append(list, v.lines.color(activityColor(n.activity), textutil.TruncateWidth(text, v.lines.screen.width-1)))
	}
	return list
}

// activityColor returns the color of an agent's line: the SGR parameter, "0" for none.
func activityColor(activity string) string {
	switch activity {
	case "done":
		return green
	case "failed":
		return red
	case "waits", "terminated":
		return dim
	}
	return "0"
}
