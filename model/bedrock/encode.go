package bedrock

import (
	"encoding/base64"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/chat"
)

// encoder writes a conversation as alternating messages of a user and an assistant.
// Tool results are part of a user message, before the next text of the user.
type encoder struct {
	model  string   // the model that is asked
	doc    []byte   // the messages, with commas between them
	role   string   // of the current message; "" before the first
	ends   []int    // where the content of each user message ends, without the note
	noted  bool     // the note is written
	called []string // names of the tools called in the conversation
}

// encode returns an encoder with all turns written.
func encode(model string, turns []chat.Turn) *encoder {
	t := &encoder{model: model, doc: make([]byte, 0, chat.SizeHint(turns))}
	for _, turn := range turns {
		switch turn.Role {
		case chat.User:
			t.user(turn)
		case chat.Assistant:
			t.assistant(turn)
		case chat.Results:
			for _, r := range turn.Results {
				t.result(r)
			}
		}
	}
	t.close()
	return t
}

func (t *encoder) user(turn chat.Turn) {
	for _, i := range turn.Images {
		t.begin("user")
		t.doc = appendImage(t.doc, i)
	}
	if turn.Text != "" || turn.Note == "" {
		t.text("user", turn.Text)
	}
	t.addNote(turn.Note)
}

// addNote adds the note, the last block. The next request does not have it, so the message
// ends before it for the cache points.
func (t *encoder) addNote(note string) {
	if isBlank(note) {
		return
	}
	if t.role == "user" {
		t.ends = append(t.ends, len(t.doc))
	}
	t.text("user", note)
	t.noted = true
}

// assistant writes an Assistant turn, with its reasoning if the same model produced it.
func (t *encoder) assistant(turn chat.Turn) {
	text, calls := turn.Text, turn.Calls
	for _, p := range chat.RecordedParts(turn, providerID, t.model) {
		switch p.Kind {
		case chat.TextPart:
			t.text("assistant", text[:p.Size])
			text = text[p.Size:]
		case chat.CallPart:
			t.call(calls[0])
			calls = calls[1:]
		case chat.RawPart:
			t.begin("assistant")
			t.doc = append(t.doc, p.Raw...)
		}
	}
	t.text("assistant", text)
	for _, c := range calls {
		t.call(c)
	}
}

// begin starts a block in a message of role, which it opens if necessary.
func (t *encoder) begin(role string) {
	if t.role == role {
		t.doc = append(t.doc, ',')
		return
	}
	if t.role != "" {
		t.close()
		t.doc = append(t.doc, ',')
	}
	t.role = role
	t.doc = append(t.doc, `{"role":"`+role+`","content":[`...)
}

// close ends the current message.
func (t *encoder) close() {
	if t.role == "user" && !t.noted {
		t.ends = append(t.ends, len(t.doc))
	}
	t.doc = append(t.doc, `]}`...)
}

// text adds a text block. Bedrock rejects a blank text.
func (t *encoder) text(role, text string) {
	if isBlank(text) {
		if role != "user" || t.role == "user" {
			return
		}
		text = "(nothing)"
	}
	t.begin(role)
	t.doc = appendText(t.doc, text)
}

func (t *encoder) call(c chat.Call) {
	t.begin("assistant")
	t.doc = chat.AppendString(append(t.doc, `{"toolUse":{"toolUseId":`...), chat.PortableID(c.ID))
	t.doc = chat.AppendString(append(t.doc, `,"name":`...), c.Name)
	t.doc = append(append(t.doc, `,"input":`...), c.Args...)
	t.doc = append(t.doc, `}}`...)
	if !slices.Contains(t.called, c.Name) {
		t.called = append(t.called, c.Name)
	}
}

func (t *encoder) result(r chat.Result) {
	t.begin("user")
	t.doc = chat.AppendString(append(t.doc, `{"toolResult":{"toolUseId":`...), chat.PortableID(r.ID))
	if r.IsError {
		t.doc = append(t.doc, `,"status":"error"`...)
	}
	t.doc = append(t.doc, `,"content":[`...)
	text := r.Text
	if isBlank(text) {
		text = "(nothing)"
	}
	t.doc = appendText(t.doc, text)
	for _, i := range r.Images {
		t.doc = appendImage(append(t.doc, ','), i)
	}
	t.doc = append(t.doc, `]}}`...)
}

// withMarks returns the messages in parts, with a mark at the end of the last two user
// messages.
func (t *encoder) withMarks(mark string) [][]byte {
	var parts [][]byte
	from := 0
	for _, end := range t.ends[max(0, len(t.ends)-2):] {
		parts = append(parts, t.doc[from:end], []byte(mark))
		from = end
	}
	return append(parts, t.doc[from:])
}

func appendText(doc []byte, text string) []byte {
	return append(chat.AppendString(append(doc, `{"text":`...), text), '}')
}

func appendImage(doc []byte, i model.Image) []byte {
	doc = chat.AppendString(append(doc, `{"image":{"format":`...), strings.TrimPrefix(i.MediaType, "image/"))
	doc = base64.StdEncoding.AppendEncode(append(doc, `,"source":{"bytes":"`...), i.Data)
	return append(doc, `"}}}`...)
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }
