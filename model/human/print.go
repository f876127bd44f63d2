package human

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/model"
)

// maxTools is how many tools a question lists.
const maxTools = 40

// show prints who asks, what is new, and what may be called.
func (q *dialog) show() {
	self := q.request.Self
	q.line("")
	q.line("== %s asks", q.asker())
	q.fact("agent", string(self.ID))
	q.fact("task", string(self.Task))
	q.fact("state", self.State)
	q.showNew()
	q.listTools()
	q.line("text ends the turn, a number calls a tool, /help tells more")
}

// asker is what the agent that asks is called.
func (q *dialog) asker() string {
	self := q.request.Self
	return brief(cmp.Or(q.names(self.ID, self.Role), self.Role))
}

// sender is what the one is called who wrote a message.
func (q *dialog) sender(id string) string {
	return cmp.Or(q.names(identity.AgentID(id), ""), id)
}

func (q *dialog) fact(name, value string) {
	if value != "" {
		q.line("   %-5s %s", name, value)
	}
}

// showNew prints what the agent has not answered yet: what came after its last
// answer, and messages that this had not read.
func (q *dialog) showNew() {
	items := newItems(q.request.Items)
	if len(items) == 0 {
		q.line("nothing is new since the last answer")
	}
	for _, item := range items {
		q.item(item, q.showBrief)
	}
}

func newItems(items []model.Item) (list []model.Item) {
	after, read, n := 0, 0, 0
	for i, item := range items {
		if item.Answer != nil {
			after, read = i+1, item.Answer.MessagesRead
		}
	}
	for i, item := range items {
		if item.Message != nil {
			n++
		}
		if i >= after || item.Message != nil && n > read {
			list = append(list, item)
		}
	}
	return list
}

func (q *dialog) showAll() {
	for _, item := range q.request.Items {
		q.item(item, q.showFull)
	}
}

func (q *dialog) showBrief(text string) { q.head(text, "; /all shows everything") }
func (q *dialog) showFull(text string)  { q.block(text, whole) }

// item prints an entry of the conversation, its texts with show.
func (q *dialog) item(item model.Item, show func(string)) {
	switch {
	case item.Message != nil:
		q.line("message from %s", q.sender(item.Message.From))
		show(readable(item.Message.Payload))
	case item.Result != nil:
		q.line("result of %s: %s", brief(item.Result.Tool), outcome(item.Result))
		show(readable(item.Result.Content))
	case item.Answer != nil:
		q.answered(item.Answer, show)
	}
}

func outcome(r *model.Result) string {
	if r.IsError {
		return "failure"
	}
	return "ok"
}

func (q *dialog) answered(a *model.Answer, show func(string)) {
	q.line("answer (%s)", a.Finish)
	if a.Text != "" {
		show(a.Text)
	}
	if a.Value != nil {
		show(pretty(a.Value))
	}
	for _, c := range a.Calls {
		q.line("call %s", c.Name)
		show(pretty(c.Args))
	}
}

// listTools prints the tools with a row for each.
func (q *dialog) listTools() {
	if len(q.tools) == 0 {
		q.line("no tools")
		return
	}
	q.line("tools")
	for i, o := range q.tools {
		if i == maxTools {
			q.line("  … %d more; /tools lists all", len(q.tools)-i)
			return
		}
		q.line("%3d %s  %s", i+1, o.name, o.description)
	}
}

// describe prints a tool's whole description, and its schema when asked to.
func (q *dialog) describe(n int, o toolChoice, schema bool) {
	q.line("%3d %s", n, o.name)
	if o.description != "" {
		q.block(o.description, whole)
	}
	if schema && o.schema.Exists() {
		q.line("schema")
		q.block(pretty([]byte(o.schema.Raw)), whole)
	}
}

// readable gives what somebody wrote as a person reads it: plain text without
// the JSON around it.
func readable(doc []byte) string {
	var text string
	if json.Unmarshal(doc, &text) == nil && bytes.HasPrefix(bytes.TrimSpace(doc), []byte(`"`)) {
		return text
	}
	var only map[string]json.RawMessage
	if json.Unmarshal(doc, &only) == nil && len(only) == 1 && json.Unmarshal(only["text"], &text) == nil {
		return text
	}
	return pretty(doc)
}

// pretty indents a document. One that is large, odd or deep stays as it is:
// indented, it could be a hundred times longer.
func pretty(doc []byte) string {
	const most = 256 << 10
	var out bytes.Buffer
	if len(doc) > most || strictjson.Check(doc, nil) != nil || json.Indent(&out, doc, "", "  ") != nil {
		return string(doc)
	}
	return out.String()
}

// toolChoice is a tool as the person chooses it.
type toolChoice struct {
	name, description string
	schema            gjson.Result // its parameters; zero when not known
}

// offers lists the tools of a request. One that the serialised list does not
// describe, or not well, has its name only.
func offers(r model.Request) []toolChoice {
	described := map[string]gjson.Result{}
	if json.Valid(r.ToolJSON) { // gjson has no bound on depth, this has
		gjson.ParseBytes(r.ToolJSON).ForEach(func(_, entry gjson.Result) bool {
			function := entry.Get("function")
			described[function.Get("name").String()] = function
			return true
		})
	}
	list := make([]toolChoice, 0, len(r.Tools))
	for _, name := range r.Tools {
		function := described[name]
		list = append(list, toolChoice{name, strings.TrimSpace(function.Get("description").String()), function.Get("parameters")})
	}
	return list
}
