package script

import (
	"encoding/json"
	"slices"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// conversation is a Request as a script reads it. It grows with the requests that continue
// it.
type conversation struct {
	self model.AgentInfo
	live view // what the live step sees, which is not recorded yet

	items    []model.Item // a copy: callers may change their slice
	messages []positioned[model.Message]
	answers  []positioned[model.Answer]
	views    []view // what the step of each answer saw; tools are nil before the first that are recorded

	first int // index of the first answer after the last end of a turn, where the current turn begins
	begin int // index of the first message that was unread then
}

// positioned is an entry with its index among the items.
type positioned[T any] struct {
	at    int
	entry *T
}

// view is the part of a Request that may differ from step to step.
type view struct {
	state string
	tools []string
}

// isContinuedBy reports whether r is c with something after it.
func (c *conversation) isContinuedBy(r model.Request) bool {
	self := r.Self
	self.State = c.self.State
	return self == c.self && len(c.items) <= len(r.Items) &&
		slices.EqualFunc(c.items, r.Items[:len(c.items)], equalItems)
}

// extend adds the items that r has in addition. r must continue c.
func (c *conversation) extend(r model.Request) {
	c.self, c.live = r.Self, view{r.Self.State, r.Tools}
	for _, item := range r.Items[len(c.items):] {
		c.add(item)
	}
}

// add appends an item and indexes it.
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

// addAnswer indexes an answer and what its step saw. The end of a turn begins a new one.
func (c *conversation) addAnswer(at int, a *model.Answer) {
	tools := a.Tools
	if before := len(c.views) - 1; tools == nil && before >= 0 {
		tools = c.views[before].tools
	}
	c.answers = append(c.answers, positioned[model.Answer]{at, a})
	c.views = append(c.views, view{a.State, tools})
	if a.Finish.EndsTurn() {
		c.first, c.begin = len(c.answers), a.MessagesRead
	}
}

// view returns what a step sees. Steps before the first recorded tools see the tools of the live
// step.
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

// toolsUnknown reports whether a step of the current turn sees the live tools because none
// were recorded.
func (c *conversation) toolsUnknown() bool {
	return c.first < len(c.views) && c.views[c.first].tools == nil
}

// recordedAnswer returns the recorded answer of a step, nil for the live step.
func (c *conversation) recordedAnswer(step int) *positioned[model.Answer] {
	if step < len(c.answers) {
		return &c.answers[step]
	}
	return nil
}

// unreadMessage returns the message that a receive gets in a step after read messages were
// received. It returns nil if the receive has to wait.
//
// A recorded step gets only a message that is recorded before its answer. If that answer is
// a Wait after as many messages, the step did not know of the message. The message arrived
// while the model was being asked.
func (c *conversation) unreadMessage(step, read int) *model.Message {
	if read >= len(c.messages) {
		return nil
	}
	message, answer := c.messages[read], c.recordedAnswer(step)
	if answer == nil {
		return message.entry
	}
	waited := answer.entry.Finish == model.FinishWait && answer.entry.MessagesRead > 0 && answer.entry.MessagesRead <= read
	if waited || message.at > answer.at {
		return nil
	}
	return message.entry
}

// results returns the results of the calls of a recorded answer, in the order of the calls.
func (c *conversation) results(a *positioned[model.Answer]) ([]json.RawMessage, error) {
	found := make(map[identity.CallID]*model.CallResult, len(a.entry.Calls))
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
			return nil, errcode.New(errcode.Internal, "call %s of %s has no result yet", call.ID, call.Name)
		}
		list = append(list, contentOf(result))
	}
	return list, nil
}

// contentOf returns a result as a script reads it. A failure is always an object with the
// field error.
func contentOf(r *model.CallResult) json.RawMessage {
	content := validJSON(r.Content)
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

// validJSON returns content as JSON: null if it is empty, a string if it is not JSON.
func validJSON(content json.RawMessage) json.RawMessage {
	if len(content) == 0 {
		return json.RawMessage("null")
	}
	if json.Valid(content) {
		return content
	}
	text, _ := json.Marshal(string(content)) // a string always marshals
	return text
}

// failureOf returns a failure that has no error code in the form of the others.
func failureOf(tool string, content json.RawMessage) json.RawMessage {
	message := string(content)
	_ = json.Unmarshal(content, &message)   // unquotes a string; other values stay JSON
	text, _ := json.Marshal(map[string]any{ // strings and checked JSON always marshal
		"error": errcode.ToolExecutionFailed, "toolName": tool, "message": message, "content": content,
	})
	return text
}

// incoming is a message as a script reads it.
type incoming struct {
	ID        string          `json:"id"`
	From      string          `json:"from"`
	Payload   json.RawMessage `json:"payload"`
	Task      identity.TaskID `json:"taskId"`
	CreatedAt string          `json:"createdAt"`
}
