package cmd

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
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
	depth      int // 0 for the top agent of a task
	status     org.AgentStatus
	tool       string            // the tool that it called last
	failure    errcode.Code      // why its last turn failed
	open       []identity.CallID // calls without a result
	calls      int               // so far, with the denied ones
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
	case journal.MessageSent, journal.TurnFailed, journal.ToolError, journal.ModelDelta, journal.ModelAnswered, journal.ContextCompressed, journal.MailDropped,
		journal.TaskPaused, journal.TaskRetried:
		return true
	case journal.ToolCall:
		return b.Decision == journal.Denied
	}
	return false
}

// track updates the tree after an event.
func (v *treeView) track(e journal.Event) {
	if spawned, ok := e.Body.(journal.AgentSpawned); ok {
		v.insert(&node{id: e.Agent, parent: spawned.Parent, status: org.AgentStarting})
	}
	if _, ok := e.Body.(journal.TaskEnded); ok {
		v.finish()
	}
	if n := v.find(e.Agent); n != nil {
		n.track(e.Body)
	}
}

// track updates an agent after one of its events.
func (n *node) track(body journal.EventBody) {
	switch b := body.(type) {
	case journal.AgentTerminated:
		n.status = org.AgentTerminated
	case journal.ToolCall:
		n.calls++
		if b.Decision == journal.Denied {
			n.denied++
			return
		}
		n.open = append(n.open, b.Call)
		n.status, n.tool, n.failure = org.AgentCalling, textutil.Sanitize(b.Tool), "" // models can write any text as a tool name
	case journal.ToolResult:
		n.endCall(b.Call)
	case journal.ToolError:
		n.endCall(b.Call)
	case journal.ModelDelta:
		if b.Note == "" {
			n.status, n.failure = org.AgentThinking, ""
		}
	case journal.ModelAnswered:
		if b.Answer.Finish.EndsTurn() || b.Answer.Finish == model.FinishWait {
			n.status = org.AgentWaiting
		}
	case journal.TurnFailed:
		n.status, n.failure, n.open = org.AgentWaiting, b.Code, nil
	}
}

// endCall removes a call that has a result. After the last one the model is asked.
func (n *node) endCall(id identity.CallID) {
	n.open = slices.DeleteFunc(n.open, func(open identity.CallID) bool { return open == id })
	if len(n.open) == 0 {
		n.status = org.AgentThinking
	}
}

// finish marks all agents as finished that are not terminated.
func (v *treeView) finish() {
	for _, n := range v.agents {
		if n.status != org.AgentTerminated {
			n.status = org.AgentFinished
		}
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
		text := fmt.Sprintf("%s%s  %s  %d calls", strings.Repeat("  ", n.depth), v.lines.screen.names.nameOf(string(n.id), ""), n.activity(), n.calls)
		if n.denied > 0 {
			text += fmt.Sprintf(", %d denied", n.denied)
		}
		list = append(list, v.lines.color(n.color(), textutil.TruncateWidth(text, v.lines.screen.width-1)))
	}
	return list
}

// activity returns the status of an agent with the tool that it calls, or the reason why
// its turn failed.
func (n *node) activity() string {
	switch {
	case n.failure != "":
		return fmt.Sprintf("%s (%s)", n.status, n.failure)
	case n.status == org.AgentCalling:
		return fmt.Sprintf("%s %s", n.status, n.tool)
	}
	return string(n.status)
}

// color returns the color of the line of an agent: the SGR parameter, "0" for none.
func (n *node) color() string {
	switch {
	case n.failure != "":
		return red
	case n.status == org.AgentFinished:
		return green
	case n.status == org.AgentWaiting, n.status == org.AgentTerminated:
		return dim
	}
	return "0"
}
