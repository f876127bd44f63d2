package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/replay"
)

func Example() {
	self := model.AgentInfo{ID: identity.AgentID(identity.NewID()), Role: "clerk"}
	asked := func(text string) model.Request {
		return model.Request{Self: self, System: "You are " + string(self.ID), Items: []model.Item{{Message: &model.Message{From: "user", Payload: json.RawMessage(text)}}}}
	}
	var file bytes.Buffer
	clerk := replay.NewRecorder(&file, nil).Wrap(always(&model.Answer{Text: "signed, " + string(self.ID), Finish: model.FinishEnd, MessagesRead: 1}))
	_, _ = ask(clerk, asked(`{"text":"sign"}`))
	fmt.Print(file.String())

	m, err := replay.New("traffic.jsonl", file.Bytes())
	if err != nil {
		fmt.Println(err)
	}
	self.ID = "0190d3a4-0000-7000-8000-00000000cafe" // another run
	answer, _ := ask(m, asked(`{"text":"sign"}`))
	fmt.Println(answer.Text)
	_, err = ask(m, asked(`{"text":"sing"}`))
	fmt.Println(err)
	// Output:
	// {"role":"clerk","step":1,"system":"You are ⟨id 1⟩","tools":[],"items":[{"message":{"from":"user","payload":{"text":"sign"}}}],"key":"cc21c7abf997cb8516b2c9c7c6cf452a1ac697a5a79e5b1516ea1aea08f887c6","answer":{"text":"signed, ⟨id 1⟩","finish":"end","read":1}}
	// signed, 0190d3a4-0000-7000-8000-00000000cafe
	// script_diverged: recording traffic.jsonl, role clerk, step 1: message from user differs at "text": recorded "sign", now "sing"
}

func TestARecordingIsPlayedInAnotherRun(t *testing.T) {
	one, two := newRun("one"), newRun("another")
	var file bytes.Buffer
	first, err := play(one, replay.NewRecorder(&file, nil).Wrap(says(reads)))
	if err != nil {
		t.Fatal(err)
	}
	second, err := play(two, load(t, file.String()))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(in(two, asJSON(first), one), `{ "path": "a.txt", "for": `, `{"path":"a.txt","for":`)
	if diff := cmp.Diff(asJSON(second), want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if strings.Contains(asJSON(second), one.id("parent")) || !strings.Contains(asJSON(second), two.id("parent")) || !strings.Contains(asJSON(second), made) {
		t.Errorf("ids are not those of the second run:\n%s", asJSON(second))
	}
	if got, want := second[0].Usage, (model.Usage{Input: 70, Cached: 20, Output: 7}); got != want {
		t.Errorf("got usage %+v, want %+v: tokens that cost nothing", got, want)
	}
	for _, id := range one.ids {
		if strings.Contains(file.String(), id) {
			t.Errorf("id %s stands in the recording", id)
		}
	}
}

func TestALineHoldsWhatIsNew(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(recorded(t)), "\n")
	if len(lines) != 2 {
		t.Fatalf("got %d lines, want one for each answer", len(lines))
	}
	var first, second struct {
		Role, Key, After string
		Step             int
		System           *string
		Tools            []string
		Items            []map[string]any
	}
	for text, v := range map[string]any{lines[0]: &first, lines[1]: &second} {
		if err := json.Unmarshal([]byte(text), v); err != nil {
			t.Fatal(err)
		}
	}
	if first.System == nil || *first.System != "You are ⟨id 1⟩ of ⟨id 3⟩.\nYou know ⟨id p1⟩." || len(first.Tools) != 2 || first.After != "" || first.Step != 1 || len(first.Items) != 1 {
		t.Errorf("the first line is %s", lines[0])
	}
	if second.System != nil || second.Tools != nil || second.After != first.Key || second.Step != 2 || len(second.Items) != 3 || second.Role != "clerk" {
		t.Errorf("the second line is %s", lines[1])
	}
}

// What differs is said, and where. Each case changes the second run before its
// second step.
func TestTheFirstDifferenceIsSaid(t *testing.T) {
	payload := func(item model.Item, doc string) model.Item {
		m := *item.Message
		m.Payload = json.RawMessage(doc)
		return model.Item{Message: &m}
	}
	content := func(item model.Item, doc string) model.Item {
		r := *item.Result
		r.Content = json.RawMessage(doc)
		return model.Item{Result: &r}
	}
	var own string // the id of the second run's parent
	tests := []struct {
		name   string
		change func(r *run)
		want   string
	}{
		{"a number in a result", func(r *run) { r.items[2] = content(r.items[2], `{"size":13,"of":"`+own+`"}`) },
			`step 2: result of read_file differs at "size": recorded 12, now 13`},
		{"an id in a result", func(r *run) { r.items[2] = content(r.items[2], `{"size":12,"of":"`+r.id("task")+`"}`) },
			`step 2: result of read_file differs at "of": recorded "⟨id 2⟩", now "⟨id 3⟩"`},
		{"a field that is new", func(r *run) { r.items[2] = content(r.items[2], `{"size":12,"of":"`+own+`","a":[1]}`) },
			`step 2: result of read_file differs at "a": recorded nothing, now [1]`},
		{"a field that is gone", func(r *run) { r.items[2] = content(r.items[2], `{"size":12}`) },
			`step 2: result of read_file differs at "of": recorded "⟨id 2⟩", now nothing`},
		{"the order of fields", func(r *run) { r.items[2] = content(r.items[2], `{"of":"`+own+`","size":12}`) },
			`step 2: result of read_file differs in the order of its fields`},
		{"a whole result", func(r *run) { r.items[3] = content(r.items[3], `"⟨c⟩"`) },
			`step 2: result of read_file differs: recorded "⟨⟨b⟩", now "⟨⟨c⟩"`},
		{"a result that is an error", func(r *run) { e := *r.items[3].Result; e.IsError = true; r.items[3].Result = &e },
			`step 2: result of read_file differs at "error": recorded nothing, now true`},
		{"a long text, from where it differs", func(r *run) {
			r.items[3] = content(r.items[3], `"`+strings.Repeat("é", 200)+`"`)
		}, `step 2: result of read_file differs: recorded "⟨⟨b⟩", now "ééééééééééééééééééééééééééééééééééééééé…`},
		{"a field of another kind", func(r *run) { r.items[0] = payload(r.items[0], `{"text":["read"]}`) },
			`step 2: message from user differs at "at": recorded "⟨time⟩", now nothing`},
		{"what was said before", func(r *run) { a := *r.items[1].Answer; a.Text = "no"; r.items[1].Answer = &a },
			`step 2: answer differs at "text": recorded nothing, now "no"`},
		{"who wrote", func(r *run) { m := *r.items[0].Message; m.From = "a\nb"; r.items[0].Message = &m },
			`step 2: message from user differs at "from": recorded "user", now "a\nb"`},
		{"a result in the place of another", func(r *run) { r.items = slices.Delete(r.items, 2, 3) },
			`step 2: result of read_file differs at "call": recorded "⟨id 5⟩", now "⟨id 6⟩"`},
		{"a result that is not there", func(r *run) { r.items = r.items[:3] },
			`step 2: recorded next is a result of read_file, now the model is asked already`},
		{"a message more", func(r *run) { r.tell(`"more"`) },
			`step 2: now there is also a message from user`},
		{"a message in the place of a result", func(r *run) { r.items = r.items[:3]; r.tell(`"more"`) },
			`step 2: recorded next is a result of read_file, now a message from user`},
		{"a tool more", func(r *run) { r.tools = append(r.tools, "run_command") }, `step 2: tools differ: now also run_command`},
		{"a tool less and one more", func(r *run) { r.tools = []string{"read_file", "x"} }, `step 2: tools differ: now also x, no longer send_message`},
		{"the order of tools", func(r *run) { slices.Reverse(r.tools) }, `step 2: tools differ: they stand in another order`},
		{"the system prompt", func(r *run) { r.system = strings.Replace(r.system, "You know", "You love", 1) },
			`step 2: system prompt differs in line 2: recorded "You know ⟨id p1⟩.", now "You love ⟨id p1⟩."`},
		{"a line more in the system prompt", func(r *run) { r.system += "\nBe brief." }, `step 2: system prompt differs: it goes on after line 2`},
		{"a line less in the system prompt", func(r *run) { r.system, _, _ = strings.Cut(r.system, "\n") }, `step 2: system prompt differs: it ends after line 1`},
		{"the workflow state", func(r *run) { r.self.State = "shut" }, `step 2: workflow state differs: recorded "open", now "shut"`},
		{"a summary", func(r *run) { r.shrunk = &model.Summary{Text: "s", Items: 1} }, `step 2: the first 1 items are now sent as a summary`},
		{"the role", func(r *run) { r.self.Role = "cook" }, `step 2: the recording has nobody of this role`},
		{"a message in the place of an answer", func(r *run) { r.items[1] = r.items[0] }, `step 1: now there is also a message from user`},
		{"the beginning alone", func(r *run) { r.items = nil }, `step 1: recorded next is a message from user, now the model is asked already`},
		{"the end", func(r *run) { r.take(&model.Answer{Text: "x", Finish: model.FinishContinue}) }, `step 3: the conversation goes on where the recording ends`},
	}
	recording := recorded(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, r := load(t, recording), newRun("another")
			if _, err := play(r, m); err != nil {
				t.Fatal(err)
			}
			r.items, own = r.items[:4], string(r.self.Parent)
			tt.change(r)
			role := r.self.Role
			_, err := ask(m, r.request())
			wantDiverged(t, err, "recording traffic.jsonl, role "+role+", "+tt.want)
			if e, _ := errors.AsType[*errcode.Error](err); fmt.Sprint("step ", e.Details["step"]) != tt.want[:len("step 1")] {
				t.Errorf("got detail step %v", e.Details["step"])
			}
		})
	}
}

func TestASummaryIsPartOfTheRequest(t *testing.T) {
	shrink := func(r *run, summary string, items int) {
		r.tell(`"first"`)
		r.take(&model.Answer{Text: "x", Finish: model.FinishEnd})
		r.tell(`"second"`)
		r.shrunk = &model.Summary{Text: summary, Items: items}
	}
	var file bytes.Buffer
	one := newRun("one")
	shrink(one, "knows "+one.friend, 2)
	if _, err := one.ask(replay.NewRecorder(&file, nil).Wrap(always(&model.Answer{Text: "to " + one.friend, Finish: model.FinishEnd}))); err != nil {
		t.Fatal(err)
	}
	m := load(t, file.String())
	for _, tt := range []struct {
		name, summary string
		items         int
		want          string
	}{
		{"the same", "knows %", 2, ""},
		{"another text", "loves %", 2, `summary differs in line 1: recorded "knows ⟨id p1⟩", now "loves ⟨id p1⟩"`},
		{"of fewer items", "knows %", 1, `the summary stands for other items: recorded the first 2, now the first 1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			two := newRun("another")
			shrink(two, strings.Replace(tt.summary, "%", two.friend, 1), tt.items)
			a, err := two.ask(m)
			if tt.want != "" {
				wantDiverged(t, err, "recording traffic.jsonl, role clerk, step 2: "+tt.want)
				return
			}
			if err != nil || a.Text != "to "+two.friend {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
	two := newRun("another")
	shrink(two, "", 0)
	two.shrunk = nil
	_, err := two.ask(m)
	wantDiverged(t, err, "recording traffic.jsonl, role clerk, step 2: the first 2 items are no longer sent as a summary")
}

// Calls of one answer run beside each other: which ends first is chance.
func TestResultsMayEndInAnyOrder(t *testing.T) {
	m, r := load(t, recorded(t)), newRun("another")
	r.tell(`{"text":"read a.txt","at":"%T"}`)
	if _, err := r.ask(m); err != nil {
		t.Fatal(err)
	}
	r.end(1, `"⟨b⟩"`)
	r.end(0, `{"size":12,"of":"`+string(r.self.Parent)+`"}`)
	if _, err := r.ask(m); err != nil {
		t.Error(err)
	}
}

func TestTheSameConversationTakesAnswersInOrder(t *testing.T) {
	var file bytes.Buffer
	n := 0
	m := replay.NewRecorder(&file, nil).Wrap(says(func(model.Request) (*model.Answer, error) {
		n++
		return &model.Answer{Text: fmt.Sprint(n), Finish: model.FinishEnd}, nil
	}))
	asked := func(m model.Model, seeds ...string) (got []string) {
		for _, seed := range seeds {
			r := newRun(seed)
			r.tell(`"go"`)
			a, err := r.ask(m)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, a.Text)
		}
		return got
	}
	asked(m, "a", "b", "c", "c")
	if diff := cmp.Diff(asked(load(t, file.String()), "v", "w", "x", "y", "z"), []string{"1", "2", "3", "4", "4"}); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}

// A Recorder that begins in the middle of a conversation, as after a restart,
// writes all of it.
func TestARecordingMayBeginInTheMiddle(t *testing.T) {
	one := newRun("one")
	if _, err := play(one, says(reads)); err != nil {
		t.Fatal(err)
	}
	one.tell(`"go on"`)
	var file bytes.Buffer
	if _, err := one.ask(replay.NewRecorder(&file, nil).Wrap(always(&model.Answer{Text: "on", Finish: model.FinishEnd}))); err != nil {
		t.Fatal(err)
	}
	two := newRun("another")
	if _, err := play(two, says(reads)); err != nil {
		t.Fatal(err)
	}
	two.tell(`"go on"`)
	if a, err := two.ask(load(t, file.String())); err != nil || a.Text != "on" {
		t.Errorf("got %+v, %v", a, err)
	}
}

// After a failure the conversation goes on from the line before; what failed
// is not answered.
func TestAFailureIsNotRecorded(t *testing.T) {
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, nil)
	fail := false
	m := rec.Wrap(says(func(r model.Request) (*model.Answer, error) {
		if fail {
			return nil, errors.New("away")
		}
		return &model.Answer{Text: "fine", Finish: model.FinishEnd}, nil
	}))
	dialogue := func(r *run, m model.Model) error {
		r.tell(`"one"`)
		if _, err := r.ask(m); err != nil {
			return err
		}
		r.tell(`"two"`)
		fail = true
		if _, err := r.ask(m); err == nil {
			return errors.New("it did not fail")
		} else if errcode.Of(err) == errcode.ScriptDiverged {
			wantDiverged(t, err, "recording traffic.jsonl, role clerk, step 2: the recording has no answer to this: the model failed there, or was asked something else")
		}
		fail = false
		r.take(&model.Answer{Finish: model.FinishEnd})
		r.tell(`"three"`)
		_, err := r.ask(m)
		return err
	}
	if err := dialogue(newRun("one"), m); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(file.String(), "\n"); got != 2 {
		t.Errorf("got %d lines, want 2", got)
	}
	if err := dialogue(newRun("another"), load(t, file.String())); err != nil {
		t.Error(err)
	}
}

// An agent may be asked about its conversation in between, for a summary: what
// is said already is not said again.
func TestAQuestionInBetweenRepeatsNothing(t *testing.T) {
	var file bytes.Buffer
	m := replay.NewRecorder(&file, nil).Wrap(always(&model.Answer{Text: "fine", Finish: model.FinishEnd}))
	r := newRun("one")
	for n := range 6 {
		r.tell(fmt.Sprintf(`"word %d"`, n))
		if _, err := r.ask(m); err != nil {
			t.Fatal(err)
		}
		aside := r.request()
		aside.Items, aside.System = []model.Item{{Message: &model.Message{From: "user", Payload: json.RawMessage(fmt.Sprint(n))}}}, "Sum up."
		if _, err := ask(m, aside); err != nil {
			t.Fatal(err)
		}
	}
	if got := strings.Count(file.String(), "word 0"); got != 1 {
		t.Errorf("the first message is recorded %d times:\n%s", got, file.String())
	}
	load(t, file.String())
}

// deltas is a language model that yields what it is made of.
type deltas []model.Delta

func (d deltas) Window() int { return 1234 }

// wide is a model with a larger window.
type wide struct{ says }

func (wide) Window() int { return 9999 }

func (d deltas) Generate(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		for _, delta := range d {
			if !yield(delta, nil) {
				return
			}
		}
	}
}

func TestPartialTextIsPassedOn(t *testing.T) {
	answer := &model.Answer{Text: "hello", Finish: model.FinishEnd}
	want := deltas{{Text: "he"}, {Restart: true}, {Text: "hel"}, {Tool: "x", Args: "{"}, {Answer: answer}}
	var file bytes.Buffer
	var got deltas
	for delta, err := range replay.NewRecorder(&file, nil).Wrap(want).Generate(t.Context(), newRun("one").request()) {
		if err != nil {
			t.Fatal(err)
		}
		if last := delta.Answer != nil; last != (file.Len() > 0) {
			t.Errorf("at %+v the recording has %d bytes; the line is written when the answer is there", delta, file.Len())
		}
		got = append(got, delta)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if got[len(got)-1].Answer != answer {
		t.Error("the answer is another one")
	}
}

func TestWhoStopsListeningIsNotRecorded(t *testing.T) {
	for n := range 3 {
		var file bytes.Buffer
		m := replay.NewRecorder(&file, nil).Wrap(deltas{{Text: "a"}, {Text: "b"}, {Text: "c"}, {Answer: &model.Answer{Finish: model.FinishEnd}}})
		for range m.Generate(t.Context(), newRun("one").request()) {
			if n--; n < 0 {
				break
			}
		}
		if file.Len() > 0 {
			t.Errorf("recorded is %s", &file)
		}
	}
}

// A model that fails after its answer has failed.
type late struct{}

func (late) Generate(context.Context, model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		_ = yield(model.Delta{Answer: &model.Answer{Finish: model.FinishEnd}}, nil) && yield(model.Delta{}, io.ErrUnexpectedEOF)
	}
}

func TestWhatIsNoAnswerIsNotRecorded(t *testing.T) {
	for name, m := range map[string]model.Model{
		"an error after the answer": late{}, "nothing": deltas{}, "text alone": deltas{{Text: "a"}},
		"a value that is no JSON": always(&model.Answer{Value: json.RawMessage(`{`), Finish: model.FinishEnd}),
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			_, _ = ask(replay.NewRecorder(&file, nil).Wrap(m), newRun("one").request())
			if file.Len() > 0 {
				t.Errorf("recorded is %s", &file)
			}
		})
	}
}

func TestTheWindowIsRecorded(t *testing.T) {
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, nil)
	plain := rec.Wrap(always(&model.Answer{Finish: model.FinishEnd}))
	if _, err := ask(plain, newRun("one").request()); err != nil {
		t.Fatal(err)
	}
	if n, ok := model.Window(plain); ok {
		t.Errorf("a model without a window has one of %d", n)
	}
	if n, ok := model.Window(load(t, file.String())); ok {
		t.Errorf("the recording of a model without a window has one of %d", n)
	}
	words := rec.Wrap(deltas{{Answer: &model.Answer{Finish: model.FinishEnd}}})
	if _, err := ask(words, newRun("one").request()); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(rec.Wrap(wide{always(&model.Answer{Finish: model.FinishEnd})}), newRun("one").request()); err != nil {
		t.Fatal(err)
	}
	for _, m := range []model.Model{words, load(t, file.String())} { // of several, the smallest
		if n, ok := model.Window(m); !ok || n != 1234 {
			t.Errorf("%T: got %d, %v; want 1234", m, n, ok)
		}
	}
}

// full is a disk with room for a number of lines.
type full struct {
	room   int
	writes int
	bytes.Buffer
}

func (f *full) Write(p []byte) (int, error) {
	f.writes++
	if f.writes > f.room {
		return 0, errors.New("no space left")
	}
	return f.Buffer.Write(p)
}

func TestAFailedWriteEndsTheRecordingOnly(t *testing.T) {
	disk := &full{room: 1}
	rec := replay.NewRecorder(disk, nil)
	m, r := rec.Wrap(says(reads)), newRun("one")
	if _, err := play(r, m); err != nil {
		t.Fatal(err)
	}
	r.tell(`"more"`)
	if _, err := r.ask(m); err != nil {
		t.Fatal(err)
	}
	if rec.Err() == nil || rec.Err().Error() != "no space left" || disk.writes != 2 {
		t.Errorf("got %v after %d writes", rec.Err(), disk.writes)
	}
	load(t, disk.String()) // what is there is whole
}

type short struct{}

func (short) Write(p []byte) (int, error) { return len(p) - 1, nil }

func TestAShortWriteIsAnError(t *testing.T) {
	rec := replay.NewRecorder(short{}, nil)
	if _, err := play(newRun("one"), rec.Wrap(says(reads))); err != nil || !errors.Is(rec.Err(), io.ErrShortWrite) {
		t.Errorf("got %v and %v", err, rec.Err())
	}
}

func TestNewRefuses(t *testing.T) {
	good := recorded(t)
	one, two, _ := strings.Cut(strings.TrimSuffix(good, "\n"), "\n")
	tests := []struct {
		name, recording, want string
	}{
		{"nothing", "", "line 1: the recording is empty"},
		{"an empty line", one + "\n\n" + two, "line 2: the JSON does not end"},
		{"a line that is cut", one + "\n" + two[:len(two)-9], "line 2: the JSON does not end"},
		{"what is no JSON", "{]", "line 1: invalid character ']' looking for beginning of object key string"},
		{"two documents in a line", one + " {}", "line 1: there is something after the JSON"},
		{"a field nobody writes", strings.Replace(good, `{"role"`, `{"roll":1,"role"`, 1), `line 1: unknown field "roll"`},
		{"a field nobody writes, in an item", strings.Replace(good, `{"message":{`, `{"message":{"cc":1,`, 1), `line 1: item 1: unknown field "cc"`},
		{"a field nobody writes, in an answer", strings.Replace(good, `"answer":{"calls"`, `"answer":{"x":1,"calls"`, 1), `line 1: answer: unknown field "x"`},
		{"an item that is nothing", strings.Replace(good, `{"message":`, `{},{"message":`, 1), "line 1: item 1: it is not one of message, answer and result"},
		{"a line without an answer", one[:strings.Index(one, `,"answer"`)] + `,"answer":null}`, "line 1: there is no answer in it"},
		{"a conversation without its beginning", two, `line 1: it goes on from a line with the key "`},
		{"a beginning without the system prompt", one[:strings.Index(one, `,"system"`)] + one[strings.Index(one, `,"tools"`):], "line 1: it begins a conversation and lacks the system prompt or the tools"},
		{"a step that is not the next", strings.Replace(good, `"step":2`, `"step":3`, 1), "line 2: step 3 comes after 1 answers"},
		{"an item that was changed", strings.Replace(good, `"size":12`, `"size":13`, 1), "line 2: its key is not that of what it holds: the recording was changed"},
		{"a system prompt that was changed", strings.Replace(good, `You are`, `You be`, 1), "line 1: its key is not that of what it holds: the recording was changed"},
		{"a field twice", strings.Replace(good, `"step":1`, `"step":1,"step":1`, 1), "line 1: it is not written as a recorder writes it"},
		{"a field with other letters", strings.Replace(good, `"answer":{"calls"`, `"Answer":{"calls"`, 1), "line 1: it is not written as a recorder writes it"},
		{"an item with two meanings", strings.Replace(good, `{"message":{`, `{"message":{},"message":{`, 1), "line 1: item 1: it is not written as a recorder writes it"},
		{"a text that ends in a mark", strings.Replace(good, `"for ⟨id 3⟩"`, `"for ⟨id 3"`, 1), `line 2: answer: ⟨ begins a mark that does not end`},
		{"a mark that does not end", strings.Replace(good, `"done by ⟨id 1⟩`, `"done by ⟨id 1`, 1), `line 2: answer: "⟨id 1 at 2026`},
		{"a mark of nothing", strings.Replace(good, `"done by ⟨id 1⟩`, `"done by ⟨time⟩`, 1), `line 2: answer: "⟨time⟩" is no mark of an id`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := replay.New("traffic.jsonl", []byte(tt.recording))
			if m != nil || errcode.Of(err) != errcode.InvalidConfig || !strings.HasPrefix(errcode.Message(err), "recording traffic.jsonl, "+tt.want) {
				t.Errorf("got  %v\nwant recording traffic.jsonl, %s", err, tt.want)
			}
		})
	}
	if _, err := replay.New("x", []byte(strings.TrimSuffix(good, "\n"))); err != nil {
		t.Errorf("the last line without its end: %v", err)
	}
}

// What a line could not hold as JSON it holds as text, which is what a runtime
// makes of it too.
func TestWhatIsTooDeepIsText(t *testing.T) {
	for _, depth := range []int{9_000, 9_950, 9_999, 10_001} {
		deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		var file bytes.Buffer
		one, two := newRun("one"), newRun("another")
		one.tell(deep)
		m := replay.NewRecorder(&file, nil).Wrap(always(&model.Answer{Calls: []model.Call{{Name: "x", Args: json.RawMessage(deep)}}, Finish: model.FinishToolCalls}))
		if _, err := one.ask(m); err != nil {
			t.Fatal(err)
		}
		two.tell(deep)
		a, err := two.ask(load(t, file.String()))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(a.Calls[0].Args); got != deep && got != js(deep) {
			t.Errorf("%d levels are played as %.30s", depth, got)
		}
	}
}

func TestAnItemThatSaysNothingIsLeftOut(t *testing.T) {
	var file bytes.Buffer
	r := newRun("one")
	r.items = []model.Item{{}}
	if _, err := play(r, replay.NewRecorder(&file, nil).Wrap(says(reads))); err != nil {
		t.Fatal(err)
	}
	if _, err := play(newRun("another"), load(t, file.String())); err != nil {
		t.Error(err)
	}
}

// What is forgotten of very many agents is written again.
func TestVeryManyAgentsMayBeRecorded(t *testing.T) {
	var file bytes.Buffer
	m, first := replay.NewRecorder(&file, nil).Wrap(always(&model.Answer{Text: "yes", Finish: model.FinishEnd})), newRun("one")
	goOn := func(m model.Model, r *run) {
		r.tell(`"the first"`)
		if _, err := r.ask(m); err != nil {
			t.Fatal(err)
		}
	}
	goOn(m, first)
	for n := range 10_000 {
		r := first.request()
		r.Self.ID, r.Items = identity.AgentID(fmt.Sprint(n)), nil
		if _, err := ask(m, r); err != nil {
			t.Fatal(err)
		}
	}
	goOn(m, first)
	if got := strings.Count(file.String(), "the first"); got != 3 {
		t.Errorf("the first message and the last are written %d times, want 3", got)
	}
	again, other := load(t, file.String()), newRun("another")
	goOn(again, other)
	goOn(again, other)
}

// An answer with an id of nobody is not played with a hole in it.
func TestAnIDOfNobodyIsRefused(t *testing.T) {
	m, r := load(t, strings.Replace(recorded(t), `"done by ⟨id 1⟩`, `"done by ⟨id 77⟩`, 1)), newRun("another")
	_, err := play(r, m)
	wantDiverged(t, err, `recording traffic.jsonl, role clerk, step 2: the answer names "id 77", which this conversation does not have`)
}

func TestAnEndedContextIsNotAnswered(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range load(t, recorded(t)).Generate(ctx, newRun("one").request()) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// lines counts writes, and wants each to be one line.
type lines struct {
	t *testing.T
	bytes.Buffer
	n int
}

func (l *lines) Write(p []byte) (int, error) {
	l.n++
	if bytes.IndexByte(p, '\n') != len(p)-1 {
		l.t.Errorf("one write is not one line: %s", p)
	}
	return l.Buffer.Write(p)
}

func TestManyAgentsShareARecording(t *testing.T) {
	const agents = 40
	file := &lines{t: t}
	rec := replay.NewRecorder(file, func() []string { return []string{"a-long-secret"} })
	together := func(m model.Model, seed string) {
		var wait sync.WaitGroup
		for n := range agents {
			wait.Go(func() {
				if _, err := play(newRun(fmt.Sprint(seed, n)), m); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	together(rec.Wrap(says(reads)), "one")
	if rec.Err() != nil || file.n != 2*agents {
		t.Fatalf("got %d lines, %v", file.n, rec.Err())
	}
	together(load(t, file.String()), "another")
}
