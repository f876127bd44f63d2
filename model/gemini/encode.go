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
func (t *encoder) assistant(turn chat.Turn) {
	first := true
	for b := range turn.Blocks(chat.RecordedParts(turn, providerID, t.config.Model)) {
		switch b.Kind {
		case chat.TextPart:
			t.signedText(b.Text, b.Sign)
		case chat.CallPart:
			t.call(b.Call, b.Sign, first)
			first = false
		case chat.RawPart:
			t.begin("model")
			t.doc = append(t.doc, b.Raw...)
		}
	}
}

// begin starts a part in a content of role, which it opens if necessary.
func (t *encoder) begin(role string) {
	switch t.role {
	case role:
		t.doc = append(t.doc, ',')
		return
	case "":
	default:
		t.doc = append(t.doc, `]},`...)
	}
	t.role = role
	t.doc = append(t.doc, `{"role":"`+role+`","parts":[`...)
}

// text adds a text part. The provider rejects an empty one.
func (t *encoder) text(role, text string) {
	if text == "" {
		return
	}
	t.begin(role)
	t.doc = appendText(t.doc, text)
}

// signedText adds a text part of the model. With a signature it may be empty.
func (t *encoder) signedText(text, signature string) {
	if signature == "" {
		t.text("model", text)
		return
	}
	t.begin("model")
	t.doc = sign(appendText(t.doc, text), signature)
}

func (t *encoder) call(c chat.Call, signature string, first bool) {
	t.begin("model")
	t.doc = append(t.doc, `{"functionCall":{`...)
	t.name(c.ID, c.Name)
	t.doc = append(append(t.doc, `,"args":`...), c.Args...)
	t.doc = append(t.doc, `}}`...)
	if signature == "" && first && requiresSignature(t.config.Model) {
		signature = skipSignature
	}
	t.doc = sign(t.doc, signature)
}

func (t *encoder) results(results []chat.Result) {
	for _, r := range results {
		t.begin("user")
		t.doc = append(t.doc, `{"functionResponse":{`...)
		t.name(r.ID, r.Name)
		t.doc = append(append(t.doc, `,"response":`...), response(r)...)
		t.doc = append(t.doc, `}}`...)
	}
	for _, r := range results {
		t.images(r.Images)
	}
}

// name adds the id and the name of a call. Vertex AI rejects ids: it finds the call of a
// result by name and order.
func (t *encoder) name(id, name string) {
	if !t.vertex {
		t.doc = append(chat.AppendString(append(t.doc, `"id":`...), id), ',')
	}
	t.doc = chat.AppendString(append(t.doc, `"name":`...), name)
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

func (t *encoder) images(images []model.Image) {
	for _, i := range images {
		t.begin("user")
		if i.MediaType == "image/gif" { // the only type of package chat that the API does not accept
			t.doc = appendText(t.doc, "(a picture of type image/gif, which this model cannot see)")
			continue
		}
		t.doc = chat.AppendString(append(t.doc, `{"inlineData":{"mimeType":`...), i.MediaType)
		t.doc = base64.StdEncoding.AppendEncode(append(t.doc, `,"data":"`...), i.Data)
		t.doc = append(t.doc, `"}}`...)
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
