package cmd

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// treeView keeps the tree of agents at the bottom of a terminal. It shows the ends of the answers that
// their models are generating, and the time, tokens and cost so far. Above the tree it prints
// new agents, denied calls, messages between agents, and notes about their models.
type treeView struct {
	lines *lineView
	now   func() time.Time
	stop  func() // ends the goroutine of start; nil if there is none

	mu       sync.Mutex // guards the fields below
	agents   []*node    // parents before children
	progress progress
	ended    bool // there will be no more events
}

func newTreeView(s *terminal, now func() time.Time) *treeView {
	return &treeView{lines: newColoredLineView(s), now: now}
}

// redrawTime is how often the area is drawn again while no events come. It bounds how often
// text that is generated is drawn.
const redrawTime = 100 * time.Millisecond

// startRedraws draws the area again from time to time, until close is called.
func (v *treeView) startRedraws() {
	stop, stopped := make(chan struct{}), make(chan struct{})
	v.stop = sync.OnceFunc(func() {
		close(stop)
		<-stopped
	})
	go func() {
		defer close(stopped)
		for ticks := time.NewTicker(redrawTime); ; {
			select {
			case <-stop:
				ticks.Stop()
				return
			case <-ticks.C:
				_ = v.draw("") // an event reports the error, too
			}
		}
	}()
}

// close leaves the tree of agents on the terminal.
func (v *treeView) close() {
	if v.stop != nil {
		v.stop()
	}
	v.mu.Lock()
	v.ended = true
	v.mu.Unlock()
	_ = v.draw("") // nothing is lost: it shows less than before
	v.lines.screen.keepArea()
}

// node is an agent in the tree.
type node struct {
	id, parent identity.AgentID
	depth      int // 0 for the top agent of a task
	status     org.AgentStatus
	tool       string            // the tool that it called last
	failure    errcode.Code      // why its last turn failed
	openCalls  []identity.CallID // calls without a result
	calls      int               // so far, with the denied ones
	denied     int
	partial    partialAnswer // of the answer in progress
}

// learn takes an event of the past into account and prints nothing.
func (v *treeView) learn(e journal.Event) {
	v.lines.learn(e)
	v.mu.Lock()
	defer v.mu.Unlock()
	v.progress.addUsage(e)
	v.track(e)
}

// show prints the line of an event, if it is logged, and draws the area again. Generated
// text is drawn with the next redraw, because it comes in many small parts.
func (v *treeView) show(e journal.Event) error {
	line := v.lines.format(e)
	v.mu.Lock()
	v.progress.addEvent(e)
	v.track(e)
	v.mu.Unlock()
	switch d, isDelta := e.Body.(journal.ModelDelta); {
	case isDelta && d.Note == "":
		return nil
	case line == "" || !isLogged(e):
		return v.draw("")
	}
	return v.draw(line + "\n")
}

// draw prints text and draws the area below it.
func (v *treeView) draw(text string) error {
	size, ok := v.lines.screen.currentSize()
	if !ok { // disabled since
		return v.lines.screen.update(text, nil)
	}
	v.mu.Lock()
	area := v.areaLines(size)
	v.mu.Unlock()
	return v.lines.screen.update(text, area)
}

// isLogged reports whether the line of an event is printed above the tree. Other events
// only change the tree.
func isLogged(e journal.Event) bool {
	switch b := e.Body.(type) {
	case journal.AgentSpawned, journal.MessageSent, journal.TurnFailed, journal.ToolError, journal.ModelDelta, journal.ModelAnswered, journal.ContextCompressed, journal.MailDropped,
		journal.BudgetWarning, journal.TaskPaused, journal.TaskRetried, journal.Paused, journal.Resumed:
		return true
	case journal.ToolCall:
		return b.Decision == journal.Denied
	}
	return false
}

// track updates the tree after an event. It must be called with mu held.
func (v *treeView) track(e journal.Event) {
	if sent, ok := e.Body.(journal.MessageSent); ok && sent.Due == "" {
		v.markThinking(identity.AgentID(sent.Message.To))
	}
	if spawned, ok := e.Body.(journal.AgentSpawned); ok {
		v.insert(&node{id: e.Agent, parent: spawned.Parent, status: org.AgentStarting})
	}
	if _, ok := e.Body.(journal.TaskEnded); ok {
		v.finishAgents()
		v.ended = true
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
		n.openCalls = append(n.openCalls, b.Call)
		n.status, n.tool, n.failure = org.AgentCalling, textutil.Sanitize(b.Tool), "" // models can write any text as a tool name
	case journal.ToolResult:
		n.endCall(b.Call)
	case journal.ToolError:
		n.endCall(b.Call)
	case journal.ModelDelta:
		if b.Note == "" {
			n.status, n.failure = org.AgentThinking, ""
			n.partial.add(b)
		}
	case journal.ModelAnswered:
		n.partial = partialAnswer{}
		if b.Answer.Finish.EndsTurn() || b.Answer.Finish == model.FinishWait {
			n.status = org.AgentWaiting
		}
	case journal.TurnFailed:
		n.status, n.failure, n.openCalls, n.partial = org.AgentWaiting, b.Code, nil, partialAnswer{}
	}
}

// endCall removes a call that has a result. After the last one the model is asked.
func (n *node) endCall(id identity.CallID) {
	n.openCalls = slices.DeleteFunc(n.openCalls, func(open identity.CallID) bool { return open == id })
	if len(n.openCalls) == 0 {
		n.status = org.AgentThinking
	}
}

// markThinking marks an agent that gets a message as thinking: its model may say nothing for long.
func (v *treeView) markThinking(id identity.AgentID) {
	if n := v.find(id); n != nil && (n.status == org.AgentStarting || n.status == org.AgentWaiting) {
		n.status, n.failure = org.AgentThinking, ""
	}
}

// dropPartials forgets the answers in progress: after a lost connection they come again.
func (v *treeView) dropPartials() {
	v.mu.Lock()
	defer v.mu.Unlock()
	for _, n := range v.agents {
		n.partial = partialAnswer{}
	}
}

// finishAgents marks all agents as finished that are not terminated.
func (v *treeView) finishAgents() {
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

// areaLines returns the lines to draw, at most as many as fit on the terminal below one line of
// text. It must be called with mu held.
func (v *treeView) areaLines(size screenSize) []string {
	room := size.rows - 2 // one more for the cursor
	if room < 1 {
		return []string{}
	}
	if v.ended {
		return v.treeLines(size.columns, room, 0)
	}
	nodes, streaming := min(len(v.agents), room-1), 0
	for _, n := range v.agents {
		if n.partial.text != "" {
			streaming++
		}
	}
	perAnswer := 0
	if streaming > 0 {
		perAnswer = min(maxAnswerRows, max(0, room-1-nodes)/streaming)
	}
	return append(v.treeLines(size.columns, room-1, perAnswer), v.lines.color(dim, fitColumns(v.statusLine(), size.columns-1)))
}

// maxAnswerRows is how many rows of an answer in progress are shown.
const maxAnswerRows = 4

// statusLine returns the line below the tree: time, agents at work, tokens and cost.
func (v *treeView) statusLine() string {
	text := v.progress.line(v.now())
	working := 0
	for _, n := range v.agents {
		if n.isWorking() {
			working++
		}
	}
	return fmt.Sprintf("%s · %d of %s at work", text, working, counted(len(v.agents), "agent", "agents"))
}

// isWorking reports whether the model or a tool of the agent is at work.
func (n *node) isWorking() bool {
	return n.status == org.AgentStarting || n.status == org.AgentThinking || n.status == org.AgentCalling
}

// treeLines returns at most room lines for the agents. Below each agent it returns up to perAnswer
// rows of the answer that its model is generating.
func (v *treeView) treeLines(columns, room, perAnswer int) []string {
	list, hidden := []string{}, len(v.agents)
	for _, n := range v.chooseAgents(room) {
		hidden--
		list = append(list, v.agentLine(n, columns))
		for _, row := range n.partial.rows(max(1, columns-1-n.indent(columns)-4), perAnswer) {
			list = append(list, v.lines.color(dim, fitColumns(strings.Repeat(" ", n.indent(columns))+"  │ "+row, columns-1)))
		}
	}
	if hidden > 0 && room > 0 {
		list = append(list, v.lines.color(dim, fitColumns(fmt.Sprintf("and %s", counted(hidden, "more agent", "more agents")), columns-1)))
	}
	return list
}

// chooseAgents returns the agents that room lines show: all if they fit, else first those at
// work, and one line less.
func (v *treeView) chooseAgents(room int) []*node {
	if len(v.agents) <= room {
		return v.agents
	}
	room = max(0, room-1)
	chosen := map[*node]bool{}
	for _, works := range []bool{true, false} {
		for _, n := range v.agents {
			if len(chosen) < room && n.isWorking() == works {
				chosen[n] = true
			}
		}
	}
	var list []*node
	for _, n := range v.agents {
		if chosen[n] {
			list = append(list, n)
		}
	}
	return list
}

// agentLine returns the line of an agent.
func (v *treeView) agentLine(n *node, columns int) string {
	text := fmt.Sprintf("%s%s  %s  %s", strings.Repeat(" ", n.indent(columns)), v.lines.screen.names.nameOf(string(n.id), ""), n.activity(), counted(n.calls, "call", "calls"))
	if n.denied > 0 {
		text += fmt.Sprintf(", %d denied", n.denied)
	}
	return v.lines.color(n.color(), fitColumns(text, columns-1))
}

// indent returns how far the line of an agent is indented, at most half of the terminal.
func (n *node) indent(columns int) int { return min(2*n.depth, columns/2) }

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
