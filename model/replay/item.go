package replay

import (
	"encoding/json"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// The field names here and in line have fewer than eight bytes. A secret has at least eight bytes.
// So hiding secrets never hides a name.

// item is the part of a model.Item that is the same in every run. One field is set.
type item struct {
	Message *message `json:"message,omitempty"`
	Answer  *answer  `json:"answer,omitempty"`
	Result  *result  `json:"result,omitempty"`
}

type message struct {
	ID      string          `json:"id,omitempty"`
	From    string          `json:"from"`
	To      string          `json:"to,omitempty"`
	Task    identity.TaskID `json:"task,omitempty"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

type result struct {
	Call    identity.CallID `json:"call"`
	Tool    string          `json:"tool"`
	Content json.RawMessage `json:"content,omitempty"`
	Error   bool            `json:"error,omitempty"`
}

// answer is a model.Answer. Log and Usage are set in the answer of a line only, not in an
// answer that is an item of the conversation.
type answer struct {
	Text   string             `json:"text,omitempty"`
	Value  json.RawMessage    `json:"value,omitempty"`
	Calls  []call             `json:"calls,omitempty"`
	Finish model.FinishReason `json:"finish"`
	Read   int                `json:"read,omitempty"`
	Stop   model.StopReason   `json:"stop,omitempty"`
	Repair model.AnswerRepair `json:"repair,omitempty"`

	Log   []string `json:"log,omitempty"`
	Usage usage    `json:"usage,omitzero"`
}

// call is a model.Call. In an item it has its own id. In the answer of a line it has no own id yet,
// and has the provider's id.
type call struct {
	ID   identity.CallID `json:"id,omitempty"`
	From string          `json:"from,omitempty"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// usage is a model.TokenUsage without the cost: playing an answer costs nothing.
type usage struct {
	Input  int `json:"input,omitempty"`
	Cached int `json:"cached,omitempty"`
	Output int `json:"output,omitempty"`
}

// newItem returns an item without what differs from run to run, except for ids and times: they
// are replaced later, in all texts.
func newItem(m model.Item) item {
	if e := m.Message; e != nil {
		return item{Message: &message{e.ID, chat.CleanText(e.From), chat.CleanText(e.To), e.Task, embeddable(e.Payload)}}
	}
	if e := m.Result; e != nil {
		content := e.Content
		if hired, ok := chat.HiredBy(e); ok {
			content = hired.Rest
		}
		return item{Result: &result{e.Call, chat.CleanText(e.Tool), embeddable(content), e.IsError}}
	}
	a := newAnswer(m.Answer)
	a.Log, a.Usage = nil, usage{}
	for n := range a.Calls {
		a.Calls[n].ID, a.Calls[n].From = m.Answer.Calls[n].ID, ""
	}
	return item{Answer: a}
}

// newAnswer returns all of an answer but its reasoning.
func newAnswer(a *model.Answer) *answer {
	s := &answer{
		Text: chat.CleanText(a.Text), Value: embeddable(a.Value), Finish: a.Finish, Read: a.MessagesRead, Stop: a.Stop, Repair: a.Repair,
		Usage: usage{a.Usage.Input, a.Usage.Cached, a.Usage.Output},
	}
	for _, c := range a.Calls {
		s.Calls = append(s.Calls, call{From: chat.CleanText(c.Provider), Name: chat.CleanText(c.Name), Args: embeddable(c.Args)})
	}
	for _, logged := range a.Log {
		s.Log = append(s.Log, chat.CleanText(logged))
	}
	return s
}
