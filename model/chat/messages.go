package chat

import (
	"slices"
	"strings"

	"github.com/rolecall/rolecall/model"
)

// BlockFormat is how a provider writes the content blocks of messages. Each function
// appends one block.
type BlockFormat struct {
	AppendText   func(doc []byte, text string) []byte
	AppendImage  func(doc []byte, i model.Image) []byte
	AppendCall   func(doc []byte, c Call) []byte
	AppendResult func(doc []byte, r Result) []byte

	// MarkInside is how many bytes at the end of a block a cache mark comes before. It is 0
	// for a mark that follows the block.
	MarkInside int
}

// BlockMessages is a conversation as alternating messages of a user and an assistant:
//
//	{"role":"user","content":[…]},{"role":"assistant","content":[…]}
//
// Tool results are part of a user message, before the next text of the user.
type BlockMessages struct {
	format BlockFormat
	doc    []byte   // the messages, with commas between them
	role   string   // of the current message; "" before the first
	ends   []int    // where a cache mark of each user message stands, before the note
	noted  bool     // the note is written
	called []string // names of the tools called in the conversation
}

// EncodeMessages returns the messages of a conversation. parts returns the recorded parts of
// an Assistant turn, as RecordedParts does.
func EncodeMessages(format BlockFormat, turns []Turn, parts func(Turn) []AnswerPart) *BlockMessages {
	m := &BlockMessages{format: format, doc: make([]byte, 0, SizeHint(turns))}
	for _, turn := range turns {
		switch turn.Role {
		case User:
			m.addUser(turn)
		case Assistant:
			m.addAssistant(turn, parts(turn))
		case Results:
			for _, r := range turn.Results {
				m.begin("user")
				m.doc = m.format.AppendResult(m.doc, r)
			}
		}
	}
	m.close()
	return m
}

func (m *BlockMessages) addUser(turn Turn) {
	for _, i := range turn.Images {
		m.begin("user")
		m.doc = m.format.AppendImage(m.doc, i)
	}
	if turn.Text != "" || turn.Note == "" {
		m.addText("user", turn.Text)
	}
	m.addNote(turn.Note)
}

// addNote adds the note, the last block. The next request does not have it, so the message
// ends before it for the cache marks.
func (m *BlockMessages) addNote(note string) {
	if isBlank(note) {
		return
	}
	if m.role == "user" {
		m.addEnd()
	}
	m.addText("user", note)
	m.noted = true
}

// addAssistant writes an Assistant turn, with its reasoning if the same model produced it.
func (m *BlockMessages) addAssistant(turn Turn, parts []AnswerPart) {
	for b := range turn.Blocks(parts) {
		switch b.Kind {
		case TextPart:
			m.addText("assistant", b.Text)
		case CallPart:
			m.addCall(b.Call)
		case RawPart:
			m.begin("assistant")
			m.doc = append(m.doc, b.Raw...)
		}
	}
}

// begin starts a block in a message of role, which it opens if necessary.
func (m *BlockMessages) begin(role string) {
	if m.role == role {
		m.doc = append(m.doc, ',')
		return
	}
	if m.role != "" {
		m.close()
		m.doc = append(m.doc, ',')
	}
	m.role = role
	m.doc = append(m.doc, `{"role":"`+role+`","content":[`...)
}

// close ends the current message.
func (m *BlockMessages) close() {
	if m.role == "user" && !m.noted {
		m.addEnd()
	}
	m.doc = append(m.doc, `]}`...)
}

func (m *BlockMessages) addEnd() { m.ends = append(m.ends, len(m.doc)-m.format.MarkInside) }

// addText adds a text block. Providers reject a blank text.
func (m *BlockMessages) addText(role, text string) {
	if isBlank(text) && (role != "user" || m.role == "user") {
		return
	}
	m.begin(role)
	m.doc = m.format.AppendText(m.doc, NonBlank(text))
}

func (m *BlockMessages) addCall(c Call) {
	m.begin("assistant")
	m.doc = m.format.AppendCall(m.doc, c)
	if !slices.Contains(m.called, c.Name) {
		m.called = append(m.called, c.Name)
	}
}

// Marked returns the messages in parts, so that they are not copied, with a cache mark at
// the end of the last two user messages.
func (m *BlockMessages) Marked(mark string) [][]byte {
	var parts [][]byte
	from := 0
	for _, end := range m.ends[max(0, len(m.ends)-2):] {
		parts = append(parts, m.doc[from:end], []byte(mark))
		from = end
	}
	return append(parts, m.doc[from:])
}

// CalledTools returns declarations of the tools called in the conversation, as a JSON array.
// It is for a request that offers no tools: providers reject calls of undeclared tools. It
// returns nil if no tool was called. encode returns a tool in the provider's format.
func (m *BlockMessages) CalledTools(encode func(name, description string, parameters []byte) []byte) []byte {
	if len(m.called) == 0 {
		return nil
	}
	list := []byte{'['}
	for _, name := range m.called {
		list = append(list, encode(name, "Not to be called now.", []byte(`{"type":"object"}`))...)
		list = append(list, ',')
	}
	list[len(list)-1] = ']'
	return list
}

// NonBlank returns text, or a placeholder if it is blank: providers reject a blank text.
func NonBlank(text string) string {
	if isBlank(text) {
		return "(nothing)"
	}
	return text
}

func isBlank(text string) bool { return strings.TrimSpace(text) == "" }
