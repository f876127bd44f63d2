package script

import (
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// conversation is a Request as a brain reads it. It grows with the requests
// that continue it.
type conversation struct {
	self model.AgentInfo
	live view // what the live step sees

	items    []model.Item // its own list: callers may write their lists anew
	messages []positioned[model.Message]
	answers  []positioned[model.Answer]
	views    []view // what the step of each answer saw; tools are nil where none were recorded yet

	first int // the first answer after the last End: where the brain's run begins
	begin int // the first message that was unread then
}

// positioned is an entry with its place among the items.
type positioned[T any] struct {
	at    int
	entry *T
}

// view is what a brain sees of the world during one step.
type view struct {
	state string
	tools []string
}

// continues reports whether r is c with something after it.
func (c *conversation) continues(r model.Request) bool {
	self := r.Self
	self.State = c.self.State
	return self == c.self && len(c.items) <= len(r.Items) &&
		slices.EqualFunc(c.items, r.Items[:len(c.items)], sameItem)
}

// extend takes in what r has beyond c, which it has to continue.
func (c *conversation) extend(r model.Request) {
	c.self, c.live = r.Self, view{r.Self.State, r.Tools}
	for _, item := range r.Items[len(c.items):] {
		c.add(item)
	}
}

func (c *conversation) add(item model.Item) {
	at := len(c.items)
	c.items = append(c.items, item)
	switch {
	case item.Message != nil:
		c.messages = append(c.messages, positioned[model.Message]{at, item.Message})
	case item.Answer != nil:
		c.addAnswer(at, item.Answer)
	}
}

func (c *conversation) addAnswer(at int, a *model.Answer) {
	tools := a.Tools
	if before := len(c.views) - 1; tools == nil && before >= 0 {
		tools = c.views[before].tools
	}
	c.answers = append(c.answers, positioned[model.Answer]{at, a})
	c.views = append(c.views, view{a.State, tools})
	if a.Finish == model.FinishEnd {
		c.first, c.begin = len(c.answers), a.MessagesRead
	}
}

// view gives what a step saw or, the live one, sees. Before any answer has
// recorded tools they are those of the live step.
func (c *conversation) view(step int) view {
	if step >= len(c.views) {
		return c.live
	}
	v := c.views[step]
	if v.tools == nil {
		v.tools = c.live.tools
	}
	return v
}

// toolsUnknown reports whether some step of the run is shown the live tools because
// none were recorded.
func (c *conversation) toolsUnknown() bool {
	return c.first < len(c.views) && c.views[c.first].tools == nil
}

// recorded gives an answer that is on the record, nil for the live one.
func (c *conversation) recorded(step int) *positioned[model.Answer] {
	if step < len(c.answers) {
		return &c.answers[step]
	}
	return nil
}

// unread gives the message a receive takes in a step when read messages were
// taken before, nil when it has to wait.
//
// It is the next message that stands before the step's answer. A recorded Wait
// that had read as many messages knew of no other, so one that stands before
// it has come too late for it.
func (c *conversation) unread(step, read int) *model.Message {
	if read >= len(c.messages) {
		return nil
	}
	message, answer := c.messages[read], c.recorded(step)
	if answer == nil {
		return message.entry
	}
	waited := answer.entry.Finish == model.FinishWait && answer.entry.MessagesRead > 0 && answer.entry.MessagesRead <= read
	if waited || message.at > answer.at {
		return nil
	}
	return message.entry
}

// results gives what the calls of a recorded answer came to, in order.
func (c *conversation) results(a *positioned[model.Answer]) ([]json.RawMessage, error) {
	found := make(map[identity.CallID]*model.Result, len(a.entry.Calls))
	for _, item := range c.items[a.at+1:] {
		if item.Result != nil {
			found[item.Result.Call] = item.Result
		}
		if item.Answer != nil {
			break
		}
	}
	list := make([]json.RawMessage, 0, len(a.entry.Calls))
	for _, call := range a.entry.Calls {
		result := found[call.ID]
		if result == nil {
			return nil, errcode.New(errcode.Internal, "asked for a step before call %s of %s has a result", call.ID, call.Name)
		}
		list = append(list, contentOf(result))
	}
	return list, nil
}

// contentOf gives a result as a brain reads it: as it is, but a failure is
// always an object with error.
func contentOf(r *model.Result) json.RawMessage {
	content := readable(r.Content)
	if !r.IsError {
		return content
	}
	var failure struct {
		Error any `json:"error"`
	}
	if json.Unmarshal(content, &failure) == nil && failure.Error != nil {
		return content
	}
	return failureOf(r.Tool, content)
}

// readable gives content as JSON: nothing is null, what is no JSON a string.
func readable(content json.RawMessage) json.RawMessage {
	if len(content) == 0 {
		return json.RawMessage("null")
	}
	if json.Valid(content) {
		return content
	}
	text, _ := json.Marshal(string(content)) // a string always marshals
	return text
}

// failureOf gives a failure that came without a code the shape all have.
func failureOf(tool string, content json.RawMessage) json.RawMessage {
	message := string(content)
	_ = json.Unmarshal(content, &message)   // only a string is taken out of its quotes
	text, _ := json.Marshal(map[string]any{ // strings and checked JSON always marshal
		"error": errcode.ToolExecutionFailed, "toolName": tool, "message": message, "content": content,
	})
	return text
}

// incoming is a message as a brain reads it.
type incoming struct {
	ID        string          `json:"id"`
	From      string          `json:"from"`
	Payload   json.RawMessage `json:"payload"`
	Task      identity.TaskID `json:"taskId"`
	CreatedAt string          `json:"createdAt"`
}
