// Package chat converts between model.Request and the form that all chat protocols
// share. This form has turns of a user, an assistant and tool results. It has tool
// names that every provider accepts.
//
//	turns := chat.BuildTurns(request)   // encode these
//	tools := cache.EncodeTools(request.ToolJSON)
//	answer := builder.BuildAnswer("openai", tools, request.Items)
//
// Clients of providers encode the result of BuildTurns, never model.Request.Items, so that the conversation is
// defined in one place. Payloads, results and names come from outside and are
// passed on as data.
package chat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
)

// TurnRole is the speaker of a Turn.
type TurnRole int

// The roles. A conversation begins with a User turn, and no two User turns are
// adjacent.
const (
	User TurnRole = iota
	Assistant
	Results // of the calls in the Assistant turn before
)

// Turn is one turn of a conversation.
type Turn struct {
	Role    TurnRole
	Text    string        // of User and Assistant
	Note    string        // of the last turn, if that is a User turn: model.Request.Note, which comes after its text
	Images  []model.Image // of User
	Calls   []Call        // of Assistant
	Results []Result      // of Results, in the order of the calls

	// Reasoning is the reasoning data that Provider sent with an Assistant turn.
	Reasoning json.RawMessage
	Provider  string
}

// Call is a tool call as a provider sees it.
type Call struct {
	ID   string
	Name string          // as ProviderName returns it
	Args json.RawMessage // a JSON object; {} if the model wrote something else
}

// Result is the result of a Call, as a provider sees it.
type Result struct {
	ID      string
	Name    string // as ProviderName returns it
	Text    string // JSON
	IsError bool
	Images  []model.Image
}

// UserText returns the text of a User turn with its note.
func (t *Turn) UserText() string {
	if t.Text == "" || t.Note == "" {
		return t.Text + t.Note
	}
	return t.Text + "\n\n" + t.Note
}

// BuildTurns returns the conversation of a request. It starts with the opening and the
// summary, if there are any. Then come the messages, answers and results, and then the note.
// The first turn is a User turn and the last is not an Assistant turn. A turn with a result
// for every call follows each turn with calls.
//
// Without its note, a request is the beginning of the next request of the conversation.
// Appended items change no earlier turn, except that the last User turn may become longer.
func BuildTurns(r model.Request) []Turn {
	items := r.Items
	b := newBuilder(r)
	if r.Opening != "" {
		b.addUser(Turn{Text: escapeHeader(r.Opening)})
	}
	if c := r.Compact; c != nil {
		items = items[min(c.Items, len(items)):]
		b.addUser(Turn{Text: withHeader("yourself", "", "summary", quoteJSON(c.Text))})
	}
	b.images = newImageSet(r, items)
	b.turns = slices.Grow(b.turns, len(items)+1)
	for i, item := range items {
		switch {
		case item.Message != nil:
			b.addUser(b.messageTurn(item.Message))
		case item.Answer == nil:
		case item.Answer.Finish.IsUnusable():
			b.addUnusable(item.Answer, nextAnswer(items[i+1:]))
		default:
			b.addAnswer(item.Answer)
		}
	}
	if len(b.turns) == 0 || b.turns[0].Role != User {
		b.turns = slices.Insert(b.turns, 0, Turn{Text: "Go on."})
	}
	b.addNote(escapeHeader(r.Note))
	return b.turns
}

// addNote adds a note, which may be "", to the end. The last turn is then not an Assistant
// turn.
func (b *builder) addNote(note string) {
	last := &b.turns[len(b.turns)-1]
	switch {
	case last.Role == User:
		last.Note = note
	case note != "":
		b.turns = append(b.turns, Turn{Note: note})
	case last.Role == Assistant:
		b.turns = append(b.turns, Turn{Text: "Go on."})
	}
}

// builder builds turns from items.
type builder struct {
	turns   []Turn
	images  *imageSet
	results map[identity.CallID]*model.CallResult
	ids     map[string]bool // ids of calls that the provider sees

	// Memory for all calls and results, allocated once.
	callBuf   []Call
	resultBuf []Result
}

func newBuilder(r model.Request) builder {
	n := 0
	for _, item := range r.Items {
		if item.Answer != nil {
			n += len(item.Answer.Calls)
		}
	}
	return builder{results: resultsByCall(r.Items), ids: make(map[string]bool, n), callBuf: make([]Call, 0, n), resultBuf: make([]Result, 0, n)}
}

// resultsByCall returns the results of a conversation by call.
func resultsByCall(items []model.Item) map[identity.CallID]*model.CallResult {
	found := make(map[identity.CallID]*model.CallResult, len(items)/2)
	for _, item := range items {
		if item.Result != nil {
			found[item.Result.Call] = item.Result
		}
	}
	return found
}

// addUser adds a User turn, or adds to the last turn if that is one.
func (b *builder) addUser(t Turn) {
	if n := len(b.turns); n > 0 && b.turns[n-1].Role == User {
		last := &b.turns[n-1]
		last.Text += "\n\n" + t.Text
		last.Images = append(last.Images, t.Images...)
		return
	}
	b.turns = append(b.turns, t)
}

// addAnswer adds an Assistant turn and, if it has calls, their Results turn:
// providers reject a call without a result. An empty answer adds no turn. A result
// whose call was replaced by the summary is left out.
func (b *builder) addAnswer(a *model.Answer) {
	t := Turn{Role: Assistant, Text: a.Text, Reasoning: a.Reasoning, Provider: a.Provider}
	if a.Value != nil {
		t.Text = string(a.Value)
	}
	outcome := Turn{Role: Results}
	first := len(b.callBuf)
	for _, c := range a.Calls {
		id := b.callID(c)
		b.callBuf = append(b.callBuf, newCall(id, b.calledTool(c), c))
		b.resultBuf = append(b.resultBuf, b.resultOf(id, c))
	}
	t.Calls, outcome.Results = slices.Clip(b.callBuf[first:]), slices.Clip(b.resultBuf[first:])
	if t.Text != "" || len(t.Calls) > 0 {
		b.turns = append(b.turns, t)
	}
	if len(t.Calls) > 0 {
		b.turns = append(b.turns, outcome)
	}
}

// callID returns the provider's id of the call. If an earlier call has this id, it returns the
// call's own id. Some providers restart their numbers with each answer.
func (b *builder) callID(c model.Call) string {
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

// calledTool returns the tool that a call ran, which may have another name than the model
// wrote: its dialect added a prefix.
func (b *builder) calledTool(c model.Call) string {
	if r, ok := b.results[c.ID]; ok && r.Tool != "" {
		return r.Tool
	}
	return c.Name
}

// newCall returns c with arguments that are an object. Servers reject other arguments even if
// they sent them themselves. The error in the result says what was wrong with them.
func newCall(id, name string, c model.Call) Call {
	call := Call{ID: id, Name: ProviderName(name), Args: c.Args}
	if !gjson.ParseBytes(c.Args).IsObject() || !gjson.ValidBytes(c.Args) {
		call.Args = json.RawMessage(`{}`)
	}
	return call
}

// resultOf returns the result of a call, or an error result if the call has none.
func (b *builder) resultOf(id string, c model.Call) Result {
	result := Result{ID: id, Name: ProviderName(b.calledTool(c)), Text: `{"error":"no outcome of this call is known"}`, IsError: true}
	if r, ok := b.results[c.ID]; ok {
		result.Text, result.Images, result.IsError = b.images.resultText(r), b.images.byItem[r], r.IsError
	}
	return result
}

// messageTurn returns the turn of a message. The text of a user is passed on as it
// is. Any other message is one line of JSON that names the sender; escapeHeader
// prevents text from forging such a line.
func (b *builder) messageTurn(m *model.Message) Turn {
	images := b.images.byItem[m]
	payload := gjson.ParseBytes(m.Payload)
	text, plain := payload.Get("text"), false // plain: the payload is only a text
	if m.From == "user" {
		plain = text.Type == gjson.String && countFields(payload) == 1
	}
	switch {
	case plain && text.Str == "":
		return Turn{Text: "(an empty message)", Images: images}
	case plain:
		return Turn{Text: escapeHeader(text.Str), Images: images}
	}
	return Turn{Text: withHeader(cmp.Or(m.FromName, m.From), m.FromRole, "payload", m.Payload), Images: images}
}

// header begins a line that names the sender of a message.
const header = `{"from":`

// withHeader returns a line of JSON with the sender, the name of its role unless that is "",
// and one field, a JSON document.
func withHeader(from, role, field string, doc []byte) string {
	sender := string(quoteJSON(from))
	if role != "" {
		sender += `,"role":` + string(quoteJSON(role))
	}
	return header + sender + `,"` + field + `":` + singleLine(doc) + `}`
}

// singleLine returns a JSON document on one line. Line breaks can only occur between
// its tokens: strings escape them.
func singleLine(doc []byte) string {
	return strings.NewReplacer("\n", " ", "\r", " ").Replace(string(doc))
}

// escapeHeader changes text so that none of its lines begins with header.
func escapeHeader(text string) string {
	if !strings.Contains(text, header) {
		return text
	}
	return strings.ReplaceAll(text, header, `{"from" :`)
}

func quoteJSON(text string) []byte { return AppendString(nil, text) }

// countFields returns the number of fields of an object, without "images".
func countFields(object gjson.Result) (n int) {
	object.ForEach(func(key, _ gjson.Result) bool {
		if key.Str != "images" {
			n++
		}
		return true
	})
	return n
}
