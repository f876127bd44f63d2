package replay_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leanovate/gopter"
	"github.com/leanovate/gopter/gen"
	"github.com/leanovate/gopter/prop"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/replay"
)

var seedFlag = flag.Int64("seed", 0, "seed of the properties; 0 takes the clock")

// tape is a list of random choices; an empty one chooses the first.
type tape []uint8

func (t *tape) pick(n int) int {
	if len(*t) == 0 {
		return 0
	}
	choice := int((*t)[0]) % n
	*t = (*t)[1:]
	return choice
}

// text is what a message, a tool or a model may write in a run.
func (t *tape) text(r *run) string {
	var b strings.Builder
	for range t.pick(6) {
		switch t.pick(14) {
		case 0, 1, 2:
			b.WriteString(r.ids[t.pick(len(r.ids))])
		case 3:
			b.WriteString(made)
		case 4:
			b.WriteString(strings.ToUpper(made))
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

// world is a text with, sometimes, a time of the run.
func (t *tape) world(r *run) string {
	if t.pick(3) == 0 {
		return t.text(r) + r.now().Format(time.RFC3339Nano) + t.text(r)
	}
	return t.text(r)
}

// doc is a JSON document with texts in it; the last of its forms is none.
func (t *tape) doc(r *run, text func(*run) string) json.RawMessage {
	a, b := js(text(r)), js(text(r))
	switch t.pick(7) {
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

// speak is what a model says next.
func (t *tape) speak(r *run) *model.Answer {
	a := &model.Answer{Text: t.text(r), Finish: model.FinishEnd, MessagesRead: t.pick(3), Usage: model.Usage{Input: t.pick(9)}}
	if t.pick(3) == 0 {
		a.Text += "2031-01-01T00:00:00.5+01:00"
	}
	if t.pick(4) == 0 {
		if a.Value = t.doc(r, t.text); !json.Valid(a.Value) {
			a.Value = nil
		}
	}
	if t.pick(3) == 0 {
		a.Log = []string{t.text(r)}
	}
	for n := range t.pick(4) {
		a.Finish = model.FinishToolCalls
		a.Calls = append(a.Calls, model.Call{Provider: fmt.Sprint("toolu_", n), Name: []string{"read_file", "tool-x"}[t.pick(2)], Args: t.doc(r, t.text)})
	}
	return a
}

// world moves a run before a step; what it does depends on the tape alone.
func (r *run) world(t *tape) {
	if r.asked > 0 {
		calls := r.answer().Calls
		for n := range calls {
			r.end(n, string(t.doc(r, t.world)))
		}
	}
	for range 1 + t.pick(2) {
		r.tell(string(t.doc(r, t.world)))
	}
	switch t.pick(8) {
	case 1:
		r.system = t.text(r) + r.friend + t.text(r) // the friend: an id that nobody told would be made up
	case 2:
		r.tools = []string{"read_file", "a", "b"}[:t.pick(4)]
	case 3:
		r.self.State = fmt.Sprint("s", t.pick(2))
	case 4:
		r.shrunk = &model.Summary{Text: t.text(r), Items: t.pick(len(r.items) + 1)}
	}
}

// story plays a tape: the world by its first half; who answers is given.
func story(r *run, world tape, m func(r *run) model.Model) (answers []*model.Answer, err error) {
	for range 1 + world.pick(5) {
		r.world(&world)
		a, err := r.ask(m(r))
		if err != nil {
			return answers, err
		}
		answers = append(answers, a)
	}
	return answers, nil
}

// check plays cases of a property, which gives what is wrong.
func check(t *testing.T, property func(world, words tape) error) {
	t.Helper()
	seed := *seedFlag
	if seed == 0 {
		seed = time.Now().UnixNano()
	}
	p := gopter.DefaultTestParametersWithSeed(seed)
	p.MinSuccessfulTests, p.MinSize, p.MaxSize = 500, 20, 200
	result := prop.ForAll(func(world, words []uint8) string {
		if err := property(world, words); err != nil {
			return err.Error()
		}
		return ""
	}, gen.SliceOf(gen.UInt8()), gen.SliceOf(gen.UInt8())).Check(p)
	if !result.Passed() {
		t.Errorf("%s after %d cases: %v\nthe case: %s\nagain: go test ./model/replay -run '^%s$' -seed %d", result.Status, result.Succeeded, result.Labels, result.Args, t.Name(), seed)
	}
}

// recordStory records a story of run one.
func recordStory(world, words tape) (one *run, answers []*model.Answer, m *replay.Model, err error) {
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, func() []string { return []string{"a secret of nobody"} })
	one = newRun("one")
	answers, err = story(one, world, func(r *run) model.Model { return rec.Wrap(always(words.speak(r))) })
	if err = errors.Join(err, rec.Err()); err != nil {
		return nil, nil, nil, err
	}
	m, err = replay.New("traffic.jsonl", file.Bytes())
	return one, answers, m, err
}

// Property: whatever is said in a conversation, its recording gives the same
// answers to the same conversation with other ids and times, in the ids of
// that conversation.
func TestAnyConversationIsPlayedInAnotherRun(t *testing.T) {
	check(t, func(world, words tape) error {
		one, answers, m, err := recordStory(world, words)
		if err != nil {
			return err
		}
		two := newRun("another")
		played, err := story(two, world, func(*run) model.Model { return m })
		if err != nil {
			return err
		}
		if got, want := meaning(played), in(two, meaning(answers), one); got != want {
			return fmt.Errorf("got  %s\nwant %s", got, want)
		}
		return nil
	})
}

// meaning gives answers as the runtime takes them: documents by what they say,
// and those that are none as texts.
func meaning(answers []*model.Answer) string {
	plain := func(doc json.RawMessage) json.RawMessage {
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
		a.Text, a.Value, a.Calls = strings.ToValidUTF8(a.Text, "\uFFFD"), plain(a.Value), append([]model.Call(nil), a.Calls...)
		for n := range a.Calls {
			a.Calls[n].Args = plain(a.Calls[n].Args)
		}
		for n := range a.Log {
			a.Log[n] = strings.ToValidUTF8(a.Log[n], "\uFFFD")
		}
		own = append(own, &a)
	}
	return asJSON(own)
}

// Property: one letter of one item changed is a difference, and it is said.
// (Letters from g on, since an id is the same whatever its digits are.)
func TestAnyChangedLetterIsLoud(t *testing.T) {
	changed := 0
	check(t, func(world, words tape) error {
		_, _, m, err := recordStory(world, words)
		if err != nil {
			return err
		}
		two := newRun("another")
		if _, err := story(two, world, func(*run) model.Model { return m }); err != nil {
			return err
		}
		two.items = two.items[:len(two.items)-1] // the last answer
		if !change(two.items, words) {
			return nil
		}
		changed++
		if _, err = two.ask(m); errcode.Of(err) != errcode.ScriptDiverged {
			return fmt.Errorf("a changed letter is not seen: %v", err)
		}
		if text := errcode.Message(err); strings.Count(text, "differs") != 1 {
			return fmt.Errorf("the difference is not said: %s", text)
		}
		return nil
	})
	if changed < 100 {
		t.Errorf("only %d cases had a letter to change", changed)
	}
}

// change changes a letter of an item, if there is one.
func change(items []model.Item, t tape) bool {
	for range 20 {
		n := t.pick(len(items))
		item := items[n]
		switch {
		case item.Message != nil:
			own := *item.Message
			if own.Payload = letter(own.Payload, &t); own.Payload != nil {
				items[n].Message = &own
				return true
			}
		case item.Result != nil:
			own := *item.Result
			if own.Content = letter(own.Content, &t); own.Content != nil {
				items[n].Result = &own
				return true
			}
		case item.Answer != nil:
			own := *item.Answer
			if text := letter([]byte(own.Text), &t); text != nil {
				own.Text = string(text)
				items[n].Answer = &own
				return true
			}
		}
		t = append(t, byte(n+1), 3)
	}
	return false
}

// letter gives a text with one letter changed, nil if it has none.
func letter(text []byte, t *tape) []byte {
	from := t.pick(len(text) + 1)
	for i := range text {
		if at := (from + i) % len(text); 'g' <= text[at] && text[at] < 'z' {
			text = bytes.Clone(text)
			text[at]++
			return text
		}
	}
	return nil
}
