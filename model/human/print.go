package human

import (
	"bytes"
	"cmp"
	"encoding/json"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/model"
)

// showRequest prints which agent asks, what is new, and which tools it has.
func (d *dialog) showRequest() {
	self := d.request.Self
	d.line("")
	d.line("== %s asks", d.agentName())
	d.printFact("agent", string(self.ID))
	d.printFact("task", string(self.Task))
	d.printFact("state", self.State)
	items := newItems(d.request.Items)
	if len(items) == 0 {
		d.line("nothing new since the last answer")
	}
	d.showItems(items, func(text string) { d.printHead(text, "; /all shows everything") })
	d.listTools()
	d.line("text ends the turn, a number calls a tool, /help shows more")
}

// agentName returns the display name of the agent that asks.
func (d *dialog) agentName() string {
	self := d.request.Self
	return shorten(cmp.Or(d.names(self.ID, self.Role), self.Role))
}

// senderName returns the display name of the sender of a message.
func (d *dialog) senderName(id string) string {
	return cmp.Or(d.names(identity.AgentID(id), ""), id)
}

func (d *dialog) printFact(name, value string) {
	if value != "" {
		d.line("   %-5s %s", name, value)
	}
}

// newItems returns what the agent has not answered yet: the items after its last
// answer, and earlier messages that this answer had not read.
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

// showItems prints entries of the conversation, and their texts with show.
func (d *dialog) showItems(items []model.Item, show func(text string)) {
	for _, item := range items {
		switch {
		case item.Message != nil:
			d.line("message from %s", d.senderName(item.Message.From))
			show(readable(item.Message.Payload))
		case item.Result != nil:
			d.line("result of %s: %s", shorten(item.Result.Tool), outcome(item.Result))
			show(readable(item.Result.Content))
		case item.Answer != nil:
			d.showAnswer(item.Answer, show)
		}
	}
}

func outcome(r *model.CallResult) string {
	if r.IsError {
		return "error"
	}
	return "ok"
}

func (d *dialog) showAnswer(a *model.Answer, show func(text string)) {
	d.line("answer (%s)", a.Finish)
	if a.Text != "" {
		show(a.Text)
	}
	if a.Value != nil {
		show(pretty(a.Value))
	}
	for _, c := range a.Calls {
		d.line("call %s", c.Name)
		show(pretty(c.Args))
	}
}

// listTools prints one line for each tool.
func (d *dialog) listTools() {
	if len(d.tools) == 0 {
		d.line("no tools")
		return
	}
	d.line("tools")
	for i, t := range d.tools {
		d.line("%3d %s  %s", i+1, t.name, t.description)
	}
}

// showTool prints what the person needs to know to write the arguments of t.
func (d *dialog) showTool(t toolChoice) {
	d.line("call %s", t.name)
	if t.description != "" {
		d.printAll(t.description)
	}
	if hint := t.hint(); hint != "" {
		d.line("arguments")
		d.printAll(hint)
	}
}

// readable returns the text of a document that is only text, as a JSON string or
// {"text": …}, and any other document indented.
func readable(doc []byte) string {
	var text string
	if json.Unmarshal(doc, &text) == nil && bytes.HasPrefix(bytes.TrimSpace(doc), []byte(`"`)) {
		return text
	}
	var fields map[string]json.RawMessage
	if json.Unmarshal(doc, &fields) == nil && len(fields) == 1 && json.Unmarshal(fields["text"], &text) == nil {
		return text
	}
	return pretty(doc)
}

// pretty returns a document indented. One that is large, deep or malformed is
// returned as it is: indented, it could be a hundred times longer.
func pretty(doc []byte) string {
	const maxSize = 256 << 10
	var out bytes.Buffer
	if len(doc) > maxSize || strictjson.CheckKeys(doc, nil) != nil || json.Indent(&out, doc, "", "  ") != nil {
		return string(doc)
	}
	return out.String()
}
