package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/proptest"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/replay"
)

var flags = proptest.NewFlags(500)

// generator makes the parts of a random conversation.
type generator struct{ *proptest.Choices }

// text returns what a message, a tool or a model may write in a run.
func (g generator) text(r *run) string {
	var b strings.Builder
	for range g.Pick(6) {
		switch g.Pick(14) {
		case 0, 1, 2:
			b.WriteString(r.ids[g.Pick(len(r.ids))])
		case 3:
			b.WriteString(inventedID)
		case 4:
			b.WriteString(strings.ToUpper(inventedID))
		case 5:
			b.WriteString("⟨id 2⟩")
		case 6:
			b.WriteString("⟨⟩⟨time⟩")
		case 7:
			b.WriteString("é\u2028<&>\x00")
		case 8:
			b.WriteString("\"\\\n")
		case 9:
			b.WriteString("\xff\xfe-")
		case 10:
			b.WriteString("12345678-")
		case 11:
			b.WriteString("0")
		case 12:
			b.WriteString(" plain words ")
		case 13:
			b.WriteString(string(r.self.Task) + "-" + string(r.self.ID))
		}
	}
	return b.String()
}

// textWithTime returns a text that sometimes contains a time of the run.
func (g generator) textWithTime(r *run) string {
	if g.Pick(3) == 0 {
		return g.text(r) + r.now().Format(time.RFC3339Nano) + g.text(r)
	}
	return g.text(r)
}

// document returns a JSON document that contains texts, or one that is not valid.
func (g generator) document(r *run, text func(*run) string) json.RawMessage {
	a, b := js(text(r)), js(text(r))
	switch g.Pick(7) {
	case 0:
		return json.RawMessage(a)
	case 1:
		return json.RawMessage(` { "z" : ` + a + ` , "a" : [ 1.50, -0e+7 , true,null ] } `)
	case 2:
		return json.RawMessage(`{` + a + `:{` + b + `:{}},"more":[` + b + `,12345678901234567890]}`)
	case 3:
		return json.RawMessage(js(`{"in":` + a + `}`))
	case 4:
		return json.RawMessage("null")
	case 5:
		return json.RawMessage(strings.ReplaceAll(a, "p", `\u0070`))
	}
	return json.RawMessage(`{broken ` + a)
}

func (g generator) answer(r *run) *model.Answer {
	a := &model.Answer{Text: g.text(r), Finish: model.FinishEnd, MessagesRead: g.Pick(3), Usage: model.TokenUsage{Input: g.Pick(9)}}
	if g.Pick(3) == 0 {
		a.Text += "2031-01-01T00:00:00.5+01:00"
	}
	if g.Pick(4) == 0 {
		if a.Value = g.document(r, g.text); !json.Valid(a.Value) {
			a.Value = nil
		}
	}
	if g.Pick(3) == 0 {
		a.Log = []string{g.text(r)}
	}
	for n := range g.Pick(4) {
		a.Finish = model.FinishToolCalls
		a.Calls = append(a.Calls, model.Call{Provider: fmt.Sprint("toolu_", n), Name: proptest.PickFrom(g.Choices, "read_file", "tool-x"), Args: g.document(r, g.text)})
	}
	return a
}

// advance adds results and messages to the conversation and may change what the model is
// sent with it.
func (g generator) advance(r *run) {
	if r.answers > 0 {
		for n := range r.lastAnswer().Calls {
			r.addResult(n, string(g.document(r, g.textWithTime)))
		}
	}
	for range 1 + g.Pick(2) {
		r.addMessage(string(g.document(r, g.textWithTime)))
	}
	switch g.Pick(8) {
	case 1:
		r.system = g.text(r) + r.friend + g.text(r) // an answer may name the friend: without this it would be an invented id
	case 2:
		r.tools = []string{"read_file", "a", "b"}[:g.Pick(4)]
	case 3:
		r.self.State = fmt.Sprint("s", g.Pick(2))
	case 4:
		r.summary = &model.ContextSummary{Text: g.text(r), Items: g.Pick(len(r.items) + 1)}
	}
}

// runStory runs the conversation that events determines, with the model that m returns for
// each step.
func runStory(r *run, events proptest.Choices, m func(r *run) model.Model) (answers []*model.Answer, err error) {
	g := generator{&events}
	for range 1 + g.Pick(5) {
		g.advance(r)
		a, err := r.ask(m(r))
		if err != nil {
			return answers, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// checkProperty checks a property of random conversations: events chooses what the world
// does in one, speech what the model says.
func checkProperty(t *testing.T, property func(events, speech proptest.Choices) error) {
	t.Helper()
	flags.CheckProperty(t, proptest.CaseSize{MaxChoices: 400, MinChoices: 40}, func(c *proptest.Choices) error {
		n := len(*c) / 2
		return property((*c)[:n:n], (*c)[n:])
	})
}

// recordStory returns run one, its answers, and a Model of its recording.
func recordStory(events, speech proptest.Choices) (one *run, answers []*model.Answer, m *replay.Model, err error) {
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, func() []string { return []string{"an unrelated secret"} })
	one = newRun("one")
	g := generator{&speech}
	answers, err = runStory(one, events, func(r *run) model.Model { return rec.Wrap(answering(g.answer(r))) })
	if err = errors.Join(err, rec.Err()); err != nil {
		return nil, nil, nil, err
	}
	m, err = replay.New("traffic.jsonl", file.Bytes())
	return one, answers, m, err
}

// Property: a recording of any conversation has the same answers to that conversation
// with other ids and times, and the answers contain those ids.
func TestModel_PlaysAnyConversationInAnotherRun(t *testing.T) {
	checkProperty(t, func(events, speech proptest.Choices) error {
		one, answers, m, err := recordStory(events, speech)
		if err != nil {
			return err
		}
		two := newRun("another")
		played, err := runStory(two, events, func(*run) model.Model { return m })
		if err != nil {
			return err
		}
		if got, want := normalized(played), translate(two, normalized(answers), one); got != want {
			return fmt.Errorf("got  %s\nwant %s", got, want)
		}
		return nil
	})
}

// normalized returns answers as the runtime reads them: documents by their value, and
// invalid ones as strings.
func normalized(answers []*model.Answer) string {
	value := func(doc json.RawMessage) json.RawMessage {
		if len(doc) > 0 && !json.Valid(doc) {
			return json.RawMessage(js(string(doc)))
		}
		var v any
		d := json.NewDecoder(bytes.NewReader(doc))
		d.UseNumber()
		if len(doc) == 0 || d.Decode(&v) != nil {
			return nil
		}
		return json.RawMessage(js(v))
	}
	var own []*model.Answer
	for _, a := range answers {
		a := *a
		a.Text, a.Value, a.Calls = strings.ToValidUTF8(a.Text, "\uFFFD"), value(a.Value), append([]model.Call(nil), a.Calls...)
		for n := range a.Calls {
			a.Calls[n].Args = value(a.Calls[n].Args)
		}
		for n := range a.Log {
			a.Log[n] = strings.ToValidUTF8(a.Log[n], "\uFFFD")
		}
		own = append(own, &a)
	}
	return asJSON(own)
}

// Property: one changed letter in an item is a difference, and the error describes it. Only
// letters from g on are changed, as the digits of an id do not matter.
func TestModel_DetectsAnyChangedLetter(t *testing.T) {
	changed := 0
	checkProperty(t, func(events, speech proptest.Choices) error {
		_, _, m, err := recordStory(events, speech)
		if err != nil {
			return err
		}
		two := newRun("another")
		if _, err := runStory(two, events, func(*run) model.Model { return m }); err != nil {
			return err
		}
		two.items = two.items[:len(two.items)-1] // the last answer
		if !changeLetter(two.items, generator{&speech}) {
			return nil
		}
		changed++
		if _, err = two.ask(m); errcode.CodeOf(err) != errcode.ScriptDiverged {
			return fmt.Errorf("the changed letter was not detected: %v", err)
		}
		if text := errcode.Message(err); strings.Count(text, "differs") != 1 || !strings.Contains(text, ": recorded ") {
			return fmt.Errorf("the error does not describe the difference: %s", text)
		}
		return nil
	})
	if changed < flags.Cases/5 {
		t.Errorf("got %d cases with a letter to change, want %d or more", changed, flags.Cases/5)
	}
}

// changeLetter changes a letter of an item, if there is one.
func changeLetter(items []model.Item, g generator) bool {
	for range 20 {
		n := g.Pick(len(items))
		item := items[n]
		switch {
		case item.Message != nil:
			own := *item.Message
			if own.Payload = g.changeLetter(own.Payload); own.Payload != nil {
				items[n].Message = &own
				return true
			}
		case item.Result != nil:
			own := *item.Result
			if own.Content = g.changeLetter(own.Content); own.Content != nil {
				items[n].Result = &own
				return true
			}
		case item.Answer != nil:
			own := *item.Answer
			if text := g.changeLetter([]byte(own.Text)); text != nil {
				own.Text = string(text)
				items[n].Answer = &own
				return true
			}
		}
		*g.Choices = append(*g.Choices, byte(n+1), 3)
	}
	return false
}

// changeLetter returns a text with one letter changed, nil if it has none.
func (g generator) changeLetter(text []byte) []byte {
	from := g.Pick(len(text) + 1)
	for i := range text {
		if at := (from + i) % len(text); 'g' <= text[at] && text[at] < 'z' {
			text = bytes.Clone(text)
			text[at]++
			return text
		}
	}
	return nil
}
