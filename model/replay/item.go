package replay

import (
	"encoding/json"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// No name of a field here or in line is as long as a secret may be short, so
// that hiding secrets never hides a name.

// item is a model.Item as far as it is the same in every run.
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

// answer is a model.Answer: in an item what was said, in a line also what the
// provider said about it.
type answer struct {
	Text   string           `json:"text,omitempty"`
	Value  json.RawMessage  `json:"value,omitempty"`
	Calls  []call           `json:"calls,omitempty"`
	Finish model.Finish     `json:"finish"`
	Read   int              `json:"read,omitempty"`
	Stop   model.StopReason `json:"stop,omitempty"`

	Log   []string `json:"log,omitempty"`
	Usage usage    `json:"usage,omitzero"`
}

type call struct {
	ID   identity.CallID `json:"id,omitempty"`   // in an item
	From string          `json:"from,omitempty"` // the provider's id, in a line
	Name string          `json:"name"`
	Args json.RawMessage `json:"args,omitempty"`
}

// usage is a model.Usage without what it cost.
type usage struct {
	Input  int `json:"input,omitempty"`
	Cached int `json:"cached,omitempty"`
	Output int `json:"output,omitempty"`
}

func newItem(m model.Item) item {
	if e := m.Message; e != nil {
		return item{Message: &message{e.ID, chat.Clean(e.From), chat.Clean(e.To), e.Task, canonicalJSON(e.Payload)}}
	}
	if e := m.Result; e != nil {
		return item{Result: &result{e.Call, chat.Clean(e.Tool), canonicalJSON(e.Content), e.IsError}}
	}
	return item{Answer: said(m.Answer, func(c model.Call) call { return call{ID: c.ID} })}
}

// newAnswer gives all of an answer but its reasoning.
func newAnswer(a *model.Answer) *answer {
	s := said(a, func(c model.Call) call { return call{From: chat.Clean(c.Provider)} })
	for _, line := range a.Log {
		s.Log = append(s.Log, chat.Clean(line))
	}
	s.Usage = usage{a.Usage.Input, a.Usage.Cached, a.Usage.Output}
	return s
}

func said(a *model.Answer, named func(model.Call) call) *answer {
	s := &answer{Text: chat.Clean(a.Text), Value: canonicalJSON(a.Value), Finish: a.Finish, Read: a.MessagesRead, Stop: a.Stop}
	for _, c := range a.Calls {
		own := named(c)
		own.Name, own.Args = chat.Clean(c.Name), canonicalJSON(c.Args)
		s.Calls = append(s.Calls, own)
	}
	return s
}
