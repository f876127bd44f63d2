package cmd

import (
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
)

// treeView keeps the tree of agents at the bottom of a terminal and prints
// above it what was refused, what agents say to each other, and what became of
// their models.
type treeView struct {
	lines  *lineView
	agents []*node // parents before children
}

// node is an agent in the tree.
type node struct {
	id, parent identity.AgentID
	depth      int
	doing      string
	calls      int
	denied     int
}

func (v *treeView) observe(e journal.Event) {
	v.lines.observe(e)
	v.note(e)
}

func (v *treeView) event(e journal.Event) error {
	line := v.lines.line(e)
	v.note(e)
	if line == "" || !isLogged(e) {
		return v.lines.screen.update("", v.tree())
	}
	return v.lines.screen.update(line+"\n", v.tree())
}

// isLogged says whether an event's line stands above the tree: what happens and
// is done with, and what the tree does not show.
func isLogged(e journal.Event) bool {
	switch b := e.Body.(type) {
	case journal.MessageSent, journal.Failed, journal.ToolError, journal.ModelDelta, journal.ModelAnswered, journal.ContextCompressed:
		return true
	case journal.ToolCall:
		return b.Decision == journal.Denied
	}
	return false
}

// note keeps what the tree shows of an event.
func (v *treeView) note(e journal.Event) {
	switch b := e.Body.(type) {
	case journal.AgentSpawned:
		v.insert(&node{id: e.Agent, parent: b.Parent, doing: "starts"})
	case journal.AgentTerminated:
		v.doing(e.Agent, "terminated")
	case journal.ToolCall:
		if n := v.find(e.Agent); n != nil {
			n.calls++
			n.doing = clean(b.Tool) // a model may name anything
			if b.Decision == journal.Denied {
				n.denied++
			}
		}
	case journal.ModelDelta:
		if b.Note == "" {
			v.doing(e.Agent, "answers")
		}
	case journal.ModelAnswered:
		switch b.Answer.Finish {
		case model.FinishEnd:
			v.doing(e.Agent, "done")
		case model.FinishWait:
			v.doing(e.Agent, "waits")
		}
	case journal.Failed:
		v.doing(e.Agent, "failed")
	}
}

func (v *treeView) doing(id identity.AgentID, what string) {
	if n := v.find(id); n != nil {
		n.doing = what
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

// insert puts an agent behind its parent's last descendant.
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

// tree words the agents, a line each.
func (v *treeView) tree() []string {
	list := make([]string, 0, len(v.agents))
	for _, n := range v.agents {
		text := fmt.Sprintf("%s%s  %s  %d calls", strings.Repeat("  ", n.depth), v.lines.screen.names.of(string(n.id), ""), n.doing, n.calls)
		if n.denied > 0 {
			text += fmt.Sprintf(", %d denied", n.denied)
		}
		list = append(list, v.lines.color(stateColour(n.doing), cut(text, v.lines.screen.width-1)))
	}
	return list
}

func stateColour(doing string) string {
	switch doing {
	case "done":
		return green
	case "failed":
		return red
	case "waits", "terminated":
		return dim
	}
	return "0"
}
