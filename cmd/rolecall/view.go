package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
)

// view shows a task's events as they come.
type view interface {
	learn(e journal.Event) // an event of the past, not to be shown
	event(e journal.Event) error
}

// newView picks how to show events: as JSON on stdout, as a tree on a
// terminal, as lines elsewhere.
func newView(c *common, o *org.Org) view {
	if c.json {
		return jsonView{json.NewEncoder(c.out)}
	}
	l := &lineView{out: c.err, names: map[string]string{}}
	f, ok := c.err.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return l
	}
	_, plain := c.env("NO_COLOR")
	l.colour = !plain
	return &treeView{lines: l, out: f, width: widthOf(f)}
}

func widthOf(f *os.File) int {
	if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
		return w
	}
	return 80
}

// jsonView prints one event a line.
type jsonView struct{ *json.Encoder }

func (v jsonView) learn(journal.Event)         {}
func (v jsonView) event(e journal.Event) error { return v.Encode(e) }

// lineView prints a line for each event worth one.
type lineView struct {
	out    io.Writer
	colour bool
	names  map[string]string // agents by id, as shown
}

func (v *lineView) event(e journal.Event) error {
	line := v.line(e)
	if line == "" {
		return nil
	}
	_, err := fmt.Fprintln(v.out, line)
	return err
}

func (v *lineView) learn(e journal.Event) { v.name(e) }

// line words an event; "" when it is not worth a line.
func (v *lineView) line(e journal.Event) string {
	who := v.name(e)
	switch b := e.Body.(type) {
	case journal.AgentSpawned:
		return fmt.Sprintf("+ %s  may call %s", who, orNothing(b.Tools))
	case journal.AgentTerminated:
		return fmt.Sprintf("- %s  %s", who, clean(b.Reason))
	case journal.ToolCall:
		if b.Decision == journal.Denied {
			return v.paint(red, fmt.Sprintf("! %s  %s  %s: %s: %s", who, clean(b.Tool), refusal(b.Code), b.Code, clean(b.Reason)))
		}
		return fmt.Sprintf("  %s  %s %s", who, b.Tool, brief(b.Args, 60))
	case journal.ToolError:
		return v.failure(who, b)
	case journal.MessageSent:
		return v.message(who, b)
	case journal.Failed:
		return v.paint(red, fmt.Sprintf("! %s  %s: %s", who, b.Code, clean(b.Message)))
	case journal.StateTransition:
		return fmt.Sprintf("  %s  state %s", who, clean(b.To))
	}
	return ""
}

// refusal says what became of a call that did not run.
func refusal(code errcode.Code) string {
	if code == errcode.ToolInterrupted {
		return "not repeated"
	}
	return journal.Denied
}

// failure words a call that failed; denials were worded with the call.
func (v *lineView) failure(who string, b journal.ToolError) string {
	switch b.Code {
	case errcode.ToolNotAvailable, errcode.UnknownTool, errcode.InvalidArguments, errcode.ToolInterrupted:
		return ""
	}
	return v.paint(red, fmt.Sprintf("! %s  %s  %s", who, clean(b.Tool), brief(b.Result, 100)))
}

func (v *lineView) message(who string, b journal.MessageSent) string {
	from := b.Message.From
	if from == "user" {
		who = "user"
	}
	to := b.Message.To
	if name, ok := v.names[to]; ok {
		to = name
	}
	return fmt.Sprintf("  %s → %s  %s", who, to, brief(b.Message.Payload, 60))
}

// name gives an agent's role, numbered when a role has more than one agent.
func (v *lineView) name(e journal.Event) string {
	id := string(e.Agent)
	if name, ok := v.names[id]; ok {
		return name
	}
	name, taken := clean(e.Role), 1
	for _, other := range v.names {
		if other == name || strings.HasPrefix(other, name+"#") {
			taken++
		}
	}
	if taken > 1 {
		name = fmt.Sprintf("%s#%d", name, taken)
	}
	v.names[id] = name
	return name
}

// The colours used, as terminals take them.
const (
	red   = "31"
	dim   = "2"
	green = "32"
)

func (v *lineView) paint(colour, text string) string {
	if !v.colour {
		return text
	}
	return "\x1b[" + colour + "m" + text + "\x1b[0m"
}

// treeView keeps the tree of agents at the bottom of a terminal and prints
// what was refused, and what agents say to each other, above it.
type treeView struct {
	lines  *lineView
	out    *os.File
	width  int
	agents []*node // parents before children
	drawn  int     // lines of the tree on the screen
}

// node is an agent in the tree.
type node struct {
	id, parent identity.AgentID
	depth      int
	doing      string
	calls      int
	denied     int
}

func (v *treeView) event(e journal.Event) error {
	line := v.lines.line(e)
	v.note(e)
	v.erase()
	switch e.Body.(type) {
	case journal.MessageSent, journal.Failed:
		fmt.Fprintln(v.out, line)
	case journal.ToolCall, journal.ToolError:
		if strings.Contains(line, "! ") {
			fmt.Fprintln(v.out, line)
		}
	}
	return v.draw()
}

func (v *treeView) learn(e journal.Event) {
	v.lines.learn(e)
	v.note(e)
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
			n.doing = b.Tool
			if b.Decision == journal.Denied {
				n.denied++
			}
		}
	case journal.ModelAnswered:
		if len(b.Answer.Calls) == 0 {
			v.doing(e.Agent, map[string]string{"end": "done", "wait": "waits"}[string(b.Answer.Finish)])
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

func (v *treeView) erase() {
	if v.drawn > 0 {
		fmt.Fprintf(v.out, "\x1b[%dA\x1b[J", v.drawn)
	}
}

func (v *treeView) draw() error {
	var b strings.Builder
	for _, n := range v.agents {
		text := fmt.Sprintf("%s%s  %s  %d calls", strings.Repeat("  ", n.depth), v.lines.names[string(n.id)], n.doing, n.calls)
		if n.denied > 0 {
			text += fmt.Sprintf(", %d denied", n.denied)
		}
		b.WriteString(v.lines.paint(stateColour(n.doing), cut(text, v.width-1)) + "\n")
	}
	v.drawn = len(v.agents)
	_, err := io.WriteString(v.out, b.String())
	return err
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

func orNothing(tools []string) string {
	if len(tools) == 0 {
		return "nothing"
	}
	return strings.Join(tools, ", ")
}

// brief gives the beginning of a JSON document on one line.
func brief(raw []byte, width int) string {
	var payload struct{ Text string }
	if json.Unmarshal(raw, &payload) == nil && payload.Text != "" {
		return cut(clean(payload.Text), width)
	}
	return cut(clean(string(raw)), width)
}

// clean takes from a text what could act on a terminal or break a line.
func clean(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
}

// cut shortens a text to a number of characters.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	return string([]rune(text)[:max(0, width-1)]) + "…"
}
