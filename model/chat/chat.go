// Package chat owns what all chat protocols have in common: a conversation as
// turns of a user, an assistant and results, and the names tools have there.
//
// Providers encode Turns, never model.Items: what a provider is sent is
// decided here, once. Payloads, results and names come from outside and are
// passed on as data.
package chat

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// Role says whose turn it is.
type Role int

// The speakers. Turns begin with a User's, and no two of a User are neighbours.
const (
	User Role = iota
	Assistant
	Results // of the calls of the Assistant's turn before
)

// Turn is one turn of a conversation.
type Turn struct {
	Role    Role
	Text    string        // of User and Assistant
	Images  []model.Image // of User
	Calls   []Call        // of Assistant
	Results []Result      // of Results, in the order of the calls

	// Reasoning is what the provider of this name gave with an Assistant's turn.
	Reasoning json.RawMessage
	Provider  string
}

// Call is a call as a provider reads it.
type Call struct {
	ID      string
	Name    string          // by Offered
	Args    json.RawMessage // a JSON object
	RawArgs string          // what the provider sent in its place, when that was no JSON object; "" otherwise
}

// Result is the result of a Call.
type Result struct {
	ID      string
	Name    string // by Offered
	Text    string // JSON
	IsError bool
	Images  []model.Image
}

// Turns gives the conversation of a request: a summary in the place of what
// was compressed, then what the agent was sent, said and did.
func Turns(r model.Request) []Turn {
	items := r.Items
	b := newBuilder(r)
	if c := r.Compact; c != nil {
		items = items[min(c.Items, len(items)):]
		b.say(Turn{Text: withHeader("yourself", "summary", quoted(c.Text))})
	}
	b.album = newAlbum(r, items)
	b.turns = slices.Grow(b.turns, len(items)+1)
	for _, item := range items {
		switch {
		case item.Message != nil:
			b.say(b.message(item.Message))
		case item.Answer != nil:
			b.answer(item.Answer)
		}
	}
	if len(b.turns) == 0 || b.turns[0].Role != User {
		b.turns = slices.Insert(b.turns, 0, Turn{Text: "Go on."})
	}
	if last := b.turns[len(b.turns)-1]; last.Role == Assistant {
		b.say(Turn{Text: "Go on."})
	}
	return b.turns
}

// builder puts turns together.
type builder struct {
	turns   []Turn
	album   *imageSet
	results map[identity.CallID]*model.Result
	ids     map[string]bool // of calls, as the provider reads them

	// Room for what the turns hold, made once for all.
	calls    []Call
	outcomes []Result
}

func newBuilder(r model.Request) builder {
	n := 0
	for _, item := range r.Items {
		if item.Answer != nil {
			n += len(item.Answer.Calls)
		}
	}
	return builder{results: results(r.Items), ids: make(map[string]bool, n), calls: make([]Call, 0, n), outcomes: make([]Result, 0, n)}
}

// results finds the results of a conversation by their calls.
func results(items []model.Item) map[identity.CallID]*model.Result {
	found := make(map[identity.CallID]*model.Result, len(items)/2)
	for _, item := range items {
		if item.Result != nil {
			found[item.Result.Call] = item.Result
		}
	}
	return found
}

// say adds a user's turn, or adds to the one before.
func (b *builder) say(t Turn) {
	if n := len(b.turns); n > 0 && b.turns[n-1].Role == User {
		last := &b.turns[n-1]
		last.Text += "\n\n" + t.Text
		last.Images = append(last.Images, t.Images...)
		return
	}
	b.turns = append(b.turns, t)
}

// answer adds an assistant's turn and that of the results of its calls: each
// call is followed by its result, or its provider refuses the conversation. An
// answer that says nothing is none; a result whose call is in the summary goes
// with it.
func (b *builder) answer(a *model.Answer) {
	t := Turn{Role: Assistant, Text: a.Text, Reasoning: a.Reasoning, Provider: a.Provider}
	if a.Value != nil {
		t.Text = string(a.Value)
	}
	outcome := Turn{Role: Results}
	first := len(b.calls)
	for _, c := range a.Calls {
		id := b.id(c)
		b.calls = append(b.calls, callOf(id, c))
		b.outcomes = append(b.outcomes, b.result(id, c))
	}
	t.Calls, outcome.Results = slices.Clip(b.calls[first:]), slices.Clip(b.outcomes[first:])
	if t.Text != "" || len(t.Calls) > 0 {
		b.turns = append(b.turns, t)
	}
	if len(t.Calls) > 0 {
		b.turns = append(b.turns, outcome)
	}
}

// id gives a call the id its provider gave it, unless that stands for another
// call already: some count anew with every answer.
func (b *builder) id(c model.Call) string {
	id := c.Provider
	if id == "" || b.ids[id] {
		id = string(c.ID)
	}
	for b.ids[id] {
		id += "_"
	}
	b.ids[id] = true
	return id
}

// callOf gives a call's arguments as an object: a provider refuses its own
// conversation otherwise.
func callOf(id string, c model.Call) Call {
	call := Call{ID: id, Name: ProviderName(c.Name), Args: c.Args}
	doc := gjson.ParseBytes(c.Args)
	if doc.IsObject() && gjson.ValidBytes(c.Args) {
		return call
	}
	call.Args, call.RawArgs = json.RawMessage(`{}`), string(c.Args)
	if doc.Type == gjson.String {
		call.RawArgs = doc.Str
	}
	return call
}

// result gives the result of a call; one that never ended says so.
func (b *builder) result(id string, c model.Call) Result {
	result := Result{ID: id, Name: ProviderName(c.Name), Text: `{"error":"no outcome of this call is known"}`, IsError: true}
	if r, ok := b.results[c.ID]; ok {
		result.Text, result.Images, result.IsError = b.album.text(r), b.album.byItem[r], r.IsError
	}
	return result
}

// message words a message. A user's text stands as it is; what any other sends
// is a JSON object on a line that says who: nobody's text can pass for it.
func (b *builder) message(m *model.Message) Turn {
	images := b.album.byItem[m]
	payload := gjson.ParseBytes(m.Payload)
	text, plain := payload.Get("text"), false
	if m.From == "user" {
		plain = text.Type == gjson.String && fields(payload) == 1
	}
	switch {
	case plain && text.Str == "":
		return Turn{Text: "(an empty message)", Images: images}
	case plain:
		return Turn{Text: escapeHeader(text.Str), Images: images}
	}
	return Turn{Text: withHeader(m.From, "payload", m.Payload), Images: images}
}

// header begins a line that says who sent what.
const header = `{"from":`

func withHeader(from, field string, what []byte) string {
	return header + string(quoted(from)) + `,"` + field + `":` + singleLine(what) + `}`
}

// singleLine gives a JSON document on a line: between its tokens there may be ends
// of lines, within its strings there is none.
func singleLine(doc []byte) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(string(doc))
}

// escapeHeader keeps the lines of a text from looking like headers.
func escapeHeader(text string) string {
	if !strings.Contains(text, header) {
		return text
	}
	return strings.ReplaceAll(text, header, `{"from" :`)
}

func quoted(text string) []byte { return AppendString(nil, text) }

// fields counts the fields of an object beside its images.
func fields(object gjson.Result) (n int) {
	object.ForEach(func(key, _ gjson.Result) bool {
		if key.Str != "images" {
			n++
		}
		return true
	})
	return n
}
