package gemini

import (
	"encoding/base64"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// encoder writes a conversation as alternating contents of a user and a model. One
// content has the results of all calls of an answer, followed by their images and
// the next text of the user.
type encoder struct {
	*client
	doc  []byte // the contents, with commas between them
	role string // of the current content; "" before the first
}

// encode returns the contents of a conversation.
func (c *client) encode(turns []chat.Turn) []byte {
	t := &encoder{client: c, doc: make([]byte, 0, chat.SizeHint(turns))}
	for _, turn := range turns {
		switch turn.Role {
		case chat.User:
			t.images(turn.Images)
			t.text("user", turn.Text)
			t.text("user", turn.Note)
		case chat.Assistant:
			t.assistant(turn)
		case chat.Results:
			t.results(turn.Results)
		}
	}
	return append(t.doc, `]}`...)
}

// assistant writes an Assistant turn, with its signatures if the same model produced
// them.
func (e *encoder) assistant(turn chat.Turn) {
	first := true
	for b := range turn.Blocks(chat.RecordedParts(turn, providerID, e.config.Model)) {
		switch b.Kind {
		case chat.TextPart:
			e.signedText(b.Text, b.Sign)
		case chat.CallPart:
			e.call(b.Call, b.Sign, first)
			first = false
		case chat.RawPart:
			e.begin("model")
			e.doc = append(e.doc, b.Raw...)
		}
	}
}

// begin starts a part in a content of role, which it opens if necessary.
func (e *encoder) begin(role string) {
	switch e.role {
	case role:
		e.doc = append(e.doc, ',')
		return
	case "":
	default:
		e.doc = append(e.doc, `]},`...)
	}
	e.role = role
	e.doc = append(e.doc, `{"role":"`+role+`","parts":[`...)
}

// text adds a text part. The provider rejects an empty one.
func (e *encoder) text(role, text string) {
	if text == "" {
		return
	}
	e.begin(role)
	e.doc = appendText(e.doc, text)
}

// signedText adds a text part of the model. With a signature it may be empty.
func (e *encoder) signedText(text, signature string) {
	if signature == "" {
		e.text("model", text)
		return
	}
	e.begin("model")
	e.doc = sign(appendText(e.doc, text), signature)
}

func (e *encoder) call(c chat.Call, signature string, first bool) {
	e.begin("model")
	e.doc = append(e.doc, `{"functionCall":{`...)
	e.name(c.ID, c.Name)
	e.doc = append(append(e.doc, `,"args":`...), c.Args...)
	e.doc = append(e.doc, `}}`...)
	if signature == "" && first && requiresSignature(e.config.Model) {
		signature = skipSignature
	}
	e.doc = sign(e.doc, signature)
}

func (e *encoder) results(results []chat.Result) {
	for _, r := range results {
		e.begin("user")
		e.doc = append(e.doc, `{"functionResponse":{`...)
		e.name(r.ID, r.Name)
		e.doc = append(append(e.doc, `,"response":`...), response(r)...)
		e.doc = append(e.doc, `}}`...)
	}
	for _, r := range results {
		e.images(r.Images)
	}
}

// name adds the id and the name of a call. Vertex AI rejects ids: it finds the call of a
// result by name and order.
func (e *encoder) name(id, name string) {
	if !e.vertex {
		e.doc = append(chat.AppendString(append(e.doc, `"id":`...), id), ',')
	}
	e.doc = chat.AppendString(append(e.doc, `"name":`...), name)
}

// response returns a result as an object, which the provider requires.
func response(r chat.Result) []byte {
	doc := []byte(`{"output":`)
	if r.IsError {
		doc = []byte(`{"error":`)
	}
	if gjson.Valid(r.Text) {
		doc = append(doc, r.Text...)
	} else {
		doc = chat.AppendString(doc, r.Text)
	}
	return append(doc, '}')
}

func (e *encoder) images(images []model.Image) {
	for _, i := range images {
		e.begin("user")
		if i.MediaType == "image/gif" { // the only type of package chat that the API does not accept
			e.doc = appendText(e.doc, "(a picture of type image/gif, which this model cannot see)")
			continue
		}
		e.doc = chat.AppendString(append(e.doc, `{"inlineData":{"mimeType":`...), i.MediaType)
		e.doc = base64.StdEncoding.AppendEncode(append(e.doc, `,"data":"`...), i.Data)
		e.doc = append(e.doc, `"}}`...)
	}
}

func appendText(doc []byte, text string) []byte {
	return append(chat.AppendString(append(doc, `{"text":`...), text), '}')
}

// sign adds a signature to the last part of a document.
func sign(doc []byte, signature string) []byte {
	if signature == "" {
		return doc
	}
	doc = chat.AppendString(append(doc[:len(doc)-1], `,"thoughtSignature":`...), signature)
	return append(doc, '}')
}

// skipSignature is the signature that the API accepts for a call that another
// provider's model made, or whose signature was lost.
// See https://ai.google.dev/gemini-api/docs/thought-signatures.
const skipSignature = "skip_thought_signature_validator"

// requiresSignature reports whether a model rejects an answer whose first call has no
// signature, as models since Gemini 3 do.
func requiresSignature(model string) bool {
	name := strings.TrimPrefix(model, "models/")
	for _, earlier := range [...]string{"gemini-1", "gemini-2", "gemma"} {
		if strings.HasPrefix(name, earlier) {
			return false
		}
	}
	return true
}
