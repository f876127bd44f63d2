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

	"github.com/rolecall/rolecall/model"
)

// Speaker says whose turn it is.
type Speaker int

// The speakers. Turns begin with a User's, and no two of a User are neighbours.
const (
	User Speaker = iota
	Assistant
	Results // of the calls of the Assistant's turn before
)

// Turn is one turn of a conversation.
type Turn struct {
	Speaker Speaker
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
	ID   string
	Name string          // by Offered
	Args json.RawMessage // a JSON object
	Bad  string          // what the provider sent in its place, when that was no JSON object; "" otherwise
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
	b := builder{request: r, ids: map[string]string{}}
	if c := r.Compact; c != nil {
		items = items[min(c.Items, len(items)):]
		b.say(Turn{Text: "Summary of the conversation until here, which you wrote yourself:\n" + c.Summary})
	}
	b.turns = slices.Grow(b.turns, len(items)+1)
	for _, item := range items {
		switch {
		case item.Message != nil:
			b.say(b.message(item.Message))
		case item.Answer != nil:
			b.answer(item.Answer)
		case item.Result != nil:
			b.result(item.Result)
		}
	}
	if len(b.turns) == 0 || b.turns[0].Speaker != User {
		b.turns = slices.Insert(b.turns, 0, Turn{Text: "Go on."})
	}
	if last := b.turns[len(b.turns)-1]; last.Speaker == Assistant {
		b.say(Turn{Text: "Go on."})
	}
	return b.turns
}

// builder puts turns together.
type builder struct {
	request model.Request
	turns   []Turn
	ids     map[string]string // of calls: ours to the provider's
}

// say adds a user's turn, or adds to the one before.
func (b *builder) say(t Turn) {
	if n := len(b.turns); n > 0 && b.turns[n-1].Speaker == User {
		last := &b.turns[n-1]
		last.Text += "\n\n" + t.Text
		last.Images = append(last.Images, t.Images...)
		return
	}
	b.turns = append(b.turns, t)
}

// answer adds an assistant's turn; an answer that says nothing is none.
func (b *builder) answer(a *model.Answer) {
	t := Turn{Speaker: Assistant, Text: a.Text, Reasoning: a.Reasoning, Provider: a.Provider}
	if a.Value != nil {
		t.Text = string(a.Value)
	}
	for _, c := range a.Calls {
		id := string(c.ID)
		if c.Provider != "" {
			id = c.Provider
		}
		b.ids[string(c.ID)] = id
		t.Calls = append(t.Calls, asCall(id, c))
	}
	if t.Text != "" || len(t.Calls) > 0 {
		b.turns = append(b.turns, t)
	}
}

// asCall gives a call's arguments as an object: a provider refuses its own
// conversation otherwise.
func asCall(id string, c model.Call) Call {
	call := Call{ID: id, Name: Offered(c.Name), Args: c.Args}
	switch doc := gjson.ParseBytes(c.Args); {
	case doc.Type == gjson.String:
		call.Bad = doc.Str
	case !doc.IsObject():
		call.Bad = string(c.Args)
	}
	if call.Bad != "" || len(c.Args) == 0 {
		call.Args = json.RawMessage(`{}`)
	}
	return call
}

// result adds the result of a call to those of its neighbours.
func (b *builder) result(r *model.Result) {
	id, ok := b.ids[string(r.Call)]
	if !ok { // its call is in the summary
		return
	}
	text, images := b.pictured(r)
	result := Result{ID: id, Name: Offered(r.Tool), Text: text, IsError: r.IsError, Images: images}
	if n := len(b.turns); n == 0 || b.turns[n-1].Speaker != Results {
		b.turns = append(b.turns, Turn{Speaker: Results})
	}
	last := &b.turns[len(b.turns)-1]
	last.Results = append(last.Results, result)
}

// message words a message: a user's as it is, any other with who sent it.
func (b *builder) message(m *model.Message) Turn {
	text := string(m.Payload)
	payload := gjson.ParseBytes(m.Payload)
	if inner := payload.Get("text"); inner.Type == gjson.String && fields(payload) == 1 {
		text = inner.Str
	}
	turn := Turn{Text: text, Images: b.images(payload.Get("images"))}
	if m.From != "user" {
		turn.Text = "Message from agent " + line(m.From) + ":\n" + text
	}
	if turn.Text == "" {
		turn.Text = "(an empty message)"
	}
	return turn
}

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

// line keeps a name on one line.
func line(name string) string { return strings.Join(strings.Fields(name), " ") }
