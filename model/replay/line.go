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

// line is one line of a recording: an answer, and the request it was the answer to.
type line struct {
	Role     string            `json:"role"`
	Step     int               `json:"step"`            // counts the answers of the conversation, from 1
	After    string            `json:"after,omitempty"` // the key of the line whose conversation continues; "" begins one
	State    string            `json:"state,omitempty"`
	System   *string           `json:"system,omitempty"`  // nil: as in the line before
	Opening  *string           `json:"opening,omitempty"` // nil: as in the line before; nil in all lines of the earlier form
	Note     string            `json:"note,omitempty"`
	Tools    []string          `json:"tools,omitzero"` // nil: as in the line before
	Compact  *summary          `json:"compact,omitempty"`
	Items    []json.RawMessage `json:"items,omitempty"` // those added since the line before, each an item
	Window   int               `json:"window,omitempty"`
	Key      string            `json:"key"`
	Answer   json.RawMessage   `json:"answer"`           // an answer
	Reason   json.RawMessage   `json:"reason,omitempty"` // model.Answer.Reasoning
	Provider string            `json:"maker,omitempty"`  // model.Answer.Provider
}

// entry is a line that was read, completed by the lines before it.
type entry struct {
	head
	line   line
	number int    // of the line, from 1
	before *entry // whose conversation continues; nil begins one
	chain  digest // of the conversation
	steps  int    // answers in the conversation
	answer answer
	early  bool // of the earlier form, see head.earlyKey
}

// items returns the whole conversation.
func (e *entry) items() []json.RawMessage {
	if e == nil {
		return nil
	}
	return append(e.before.items(), e.line.Items...)
}

// read reads a recording. An error names the line.
func read(data []byte) (entries []*entry, err error) {
	byKey := map[string]*entry{}
	for n := 1; len(data) > 0; n++ {
		var text []byte
		text, data, _ = bytes.Cut(data, []byte("\n"))
		e := &entry{number: n}
		if err := e.read(text, byKey); err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		byKey[e.line.Key] = e
		entries = append(entries, e)
	}
	if len(entries) == 0 {
		return nil, errors.New("line 1: the recording is empty")
	}
	return entries, nil
}

// read reads a line and checks it against its key.
func (e *entry) read(text []byte, byKey map[string]*entry) error {
	if err := decodeStrict(text, &e.line); err != nil {
		return err
	}
	if err := e.follow(byKey); err != nil {
		return err
	}
	if err := e.readItems(); err != nil {
		return err
	}
	if e.line.Step != e.steps+1 {
		return fmt.Errorf("step %d follows %d answers", e.line.Step, e.steps)
	}
	if e.head.key(e.chain) != e.line.Key {
		return errors.New("the key does not match the content: the recording was changed")
	}
	return e.readAnswer()
}

// follow finds the line before and takes over what this line leaves out.
func (e *entry) follow(byKey map[string]*entry) error {
	l := &e.line
	e.head = head{Role: l.Role, State: l.State, Tools: l.Tools, Note: l.Note, Compact: l.Compact}
	if l.System != nil {
		e.System = *l.System
	}
	if l.Opening != nil {
		e.Opening = *l.Opening
	}
	if l.After == "" {
		if l.System == nil || l.Tools == nil {
			return errors.New("a conversation begins without system prompt or tools")
		}
		e.early = l.Opening == nil
		return nil
	}
	e.before = byKey[l.After]
	if e.before == nil {
		return fmt.Errorf("no line above has the key %q, which this line continues", l.After)
	}
	e.chain, e.steps = e.before.chain, e.before.steps
	if l.System == nil {
		e.System = e.before.System
	}
	if l.Opening == nil {
		e.Opening = e.before.Opening
	}
	if l.Tools == nil {
		e.Tools = e.before.Tools
	}
	e.early = e.before.early && l.Opening == nil
	return nil
}

// readItems checks the items and adds them to the digest.
func (e *entry) readItems() error {
	for n, text := range e.line.Items {
		it, err := readItem(text)
		if err != nil {
			return fmt.Errorf("item %d: %w", n+1, err)
		}
		if it.Answer != nil {
			e.steps++
		}
		e.chain = e.chain.extend(text)
	}
	return nil
}

// readItem decodes an item and checks that exactly one field is set.
func readItem(text []byte) (it item, err error) {
	if err := decodeStrict(text, &it); err != nil {
		return it, err
	}
	set := []bool{it.Message != nil, it.Answer != nil, it.Result != nil}
	if len(slices.DeleteFunc(set, func(is bool) bool { return !is })) != 1 {
		return it, errors.New("want one of message, answer and result")
	}
	return it, nil
}

// readAnswer decodes the answer and checks that it can be played.
func (e *entry) readAnswer() error {
	if len(e.line.Answer) == 0 || string(e.line.Answer) == "null" {
		return errors.New("the answer is missing")
	}
	if err := decodeStrict(e.line.Answer, &e.answer); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	if _, err := e.playback(checkPlaceholder); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	return nil
}

// playback returns the answer with the ids that resolve returns for its placeholders.
func (e *entry) playback(resolve func(placeholder string) (string, error)) (*model.Answer, error) {
	var failed error
	text := func(s string) string {
		s, err := expand(s, resolve)
		failed = errors.Join(failed, err)
		return s
	}
	doc := func(d json.RawMessage) json.RawMessage {
		if d == nil {
			return nil
		}
		return rewrite(d, nil, text)
	}
	s := e.answer
	a := &model.Answer{
		Text: text(s.Text), Value: doc(s.Value), Finish: s.Finish, MessagesRead: s.Read, Stop: s.Stop,
		Reasoning: bytes.Clone(e.line.Reason), Provider: e.line.Provider,
		Usage: model.TokenUsage{Input: s.Usage.Input, Cached: s.Usage.Cached, Output: s.Usage.Output},
	}
	for _, c := range s.Calls {
		a.Calls = append(a.Calls, model.Call{Provider: text(c.From), Name: text(c.Name), Args: doc(c.Args)})
	}
	for _, logged := range s.Log {
		a.Log = append(a.Log, text(logged))
	}
	return a, failed
}

// decodeStrict reads one JSON document into v. It accepts only what a Recorder writes:
// no unknown field, no field twice or in another case.
func decodeStrict(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	switch err := d.Decode(v); {
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("the JSON is cut off")
	case err != nil:
		return errors.New(strings.TrimPrefix(err.Error(), "json: "))
	}
	if _, err := d.Token(); err != io.EOF {
		return errors.New("unexpected text after the JSON")
	}
	if !bytes.Equal(marshal(v), text) {
		return errors.New("the line is not in the form that a recorder writes")
	}
	return nil
}
