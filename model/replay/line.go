package replay

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/model"
)

// line is one line of a recording: an answer, and what it was an answer to.
type line struct {
	Role     string            `json:"role"`
	Step     int               `json:"step"`            // answers before in the conversation, and 1
	After    string            `json:"after,omitempty"` // the key of the line whose conversation goes on; "" begins one
	State    string            `json:"state,omitempty"`
	System   *string           `json:"system,omitempty"` // nil is as in the line before
	Tools    []string          `json:"tools,omitzero"`   // nil is as in the line before
	Compact  *summary          `json:"compact,omitempty"`
	Items    []json.RawMessage `json:"items,omitempty"` // those that the conversation had since
	Window   int               `json:"window,omitempty"`
	Key      string            `json:"key"`
	Answer   json.RawMessage   `json:"answer"`           // of answer
	Reason   json.RawMessage   `json:"reason,omitempty"` // model.Answer.Reasoning
	Provider string            `json:"maker,omitempty"`  // model.Answer.Provider
}

// entry is a line that was read, with what it has from the lines before.
type entry struct {
	head
	line   line
	before *entry // whose conversation goes on; nil begins one
	first  int    // items of the conversation before line.Items
	chain  []digest
	steps  int // answers in the conversation
	answer answer
}

// last is the digest of the conversation.
func (e *entry) last() digest {
	if e == nil {
		return digest{}
	}
	return e.chain[len(e.chain)-1]
}

// count counts the items of the conversation.
func (e *entry) count() int { return e.first + len(e.line.Items) }

// item gives an item of the conversation.
func (e *entry) item(n int) json.RawMessage {
	for n < e.first {
		e = e.before
	}
	return e.line.Items[n-e.first]
}

// read reads a recording into the lines it has of each key. An error names the
// line.
func read(data []byte) (entries []*entry, err error) {
	known := map[string]*entry{}
	for n := 1; len(data) > 0; n++ {
		var text []byte
		text, data, _ = bytes.Cut(data, []byte("\n"))
		e, err := newEntry(text, known)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		known[e.line.Key] = e
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, errors.New("line 1: the recording is empty")
	}
	return entries, nil
}

// newEntry reads a line and holds it against its key.
func newEntry(text []byte, known map[string]*entry) (*entry, error) {
	e := &entry{}
	if err := strictly(text, &e.line); err != nil {
		return nil, err
	}
	if err := e.follow(known); err != nil {
		return nil, err
	}
	if err := e.readItems(); err != nil {
		return nil, err
	}
	if e.line.Step != e.steps+1 {
		return nil, fmt.Errorf("step %d comes after %d answers", e.line.Step, e.steps)
	}
	if e.head.key(e.last()) != e.line.Key {
		return nil, errors.New("its key is not that of what it holds: the recording was changed")
	}
	return e, e.readAnswer()
}

// follow finds the line before and completes the head by it.
func (e *entry) follow(known map[string]*entry) error {
	l := &e.line
	e.head = head{Role: l.Role, State: l.State, Tools: l.Tools, Compact: l.Compact}
	if l.After != "" {
		if e.before = known[l.After]; e.before == nil {
			return fmt.Errorf("it goes on from a line with the key %q, and there is none before it", l.After)
		}
		e.first, e.steps = e.before.count(), e.before.steps
	}
	switch {
	case e.before == nil && (l.System == nil || l.Tools == nil):
		return errors.New("it begins a conversation and lacks the system prompt or the tools")
	case l.System == nil:
		e.System = e.before.System
	default:
		e.System = *l.System
	}
	if l.Tools == nil {
		e.Tools = e.before.Tools
	}
	return nil
}

// readItems reads the items.
func (e *entry) readItems() error {
	e.chain = append(e.chain, e.before.last())
	for n, text := range e.line.Items {
		it, err := readItem(text)
		if err != nil {
			return fmt.Errorf("item %d: %w", n+1, err)
		}
		if it.Answer != nil {
			e.steps++
		}
		e.chain = append(e.chain, e.last().and(text))
	}
	return nil
}

func readItem(text []byte) (it item, err error) {
	if err := strictly(text, &it); err != nil {
		return it, err
	}
	set := []bool{it.Message != nil, it.Answer != nil, it.Result != nil}
	if len(slices.DeleteFunc(set, func(is bool) bool { return !is })) != 1 {
		return it, errors.New("it is not one of message, answer and result")
	}
	return it, nil
}

func (e *entry) readAnswer() error {
	if len(e.line.Answer) == 0 || string(e.line.Answer) == "null" {
		return errors.New("there is no answer in it")
	}
	if err := strictly(e.line.Answer, &e.answer); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if _, err := e.playback(checkPlaceholder); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// playback gives the answer with its marks turned back.
func (e *entry) playback(name func(mark string) (string, error)) (*model.Answer, error) {
	var failed error
	text := func(s string) string {
		s, err := expandPlaceholders(s, name)
		failed = errors.Join(failed, err)
		return s
	}
	doc := func(d json.RawMessage) json.RawMessage { return rewrite(d, nil, text) }
	s := e.answer
	a := &model.Answer{Text: text(s.Text), Finish: s.Finish, MessagesRead: s.Read, Stop: s.Stop, Reasoning: bytes.Clone(e.line.Reason), Provider: e.line.Provider}
	a.Usage = model.Usage{Input: s.Usage.Input, Cached: s.Usage.Cached, Output: s.Usage.Output}
	if s.Value != nil {
		a.Value = doc(s.Value)
	}
	for _, c := range s.Calls {
		own := model.Call{Provider: text(c.From), Name: text(c.Name)}
		if c.Args != nil {
			own.Args = doc(c.Args)
		}
		a.Calls = append(a.Calls, own)
	}
	for _, logged := range s.Log {
		a.Log = append(a.Log, text(logged))
	}
	return a, failed
}

// strictly reads one JSON document that holds nothing but what v knows, written
// as a Recorder writes it: no field twice, or with other letters.
func strictly(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return lineError(err)
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("there is something after the JSON")
	}
	if !bytes.Equal(compact(v), text) {
		return errors.New("it is not written as a recorder writes it")
	}
	return nil
}

// lineError says in words what encoding/json says.
func lineError(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("the JSON does not end")
	}
	return errors.New(strings.TrimPrefix(err.Error(), "json: "))
}
