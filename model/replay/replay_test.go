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
	clerk := replay.NewRecorder(&file, nil).Wrap(answering(&model.Answer{Text: "signed, " + string(self.ID), Finish: model.FinishEnd, MessagesRead: 1}))
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
	// {"role":"clerk","step":1,"system":"You are ⟨id 1⟩","opening":"","tools":[],"items":[{"message":{"from":"user","payload":{"text":"sign"}}}],"key":"cc21c7abf997cb8516b2c9c7c6cf452a1ac697a5a79e5b1516ea1aea08f887c6","answer":{"text":"signed, ⟨id 1⟩","finish":"end","read":1}}
	// signed, 0190d3a4-0000-7000-8000-00000000cafe
	// script_diverged: recording traffic.jsonl, role clerk, step 1: the request differs from line 1: items[0].message.payload.text: recorded "sign", now "sing"
}

func TestModel_PlaysRecordingInAnotherRun(t *testing.T) {
	one, two := newRun("one"), newRun("another")
	var file bytes.Buffer
	first, err := runClerk(one, replay.NewRecorder(&file, nil).Wrap(modelFunc(readFiles)))
	if err != nil {
		t.Fatal(err)
	}
	second, err := runClerk(two, loadRecording(t, file.String()))
	if err != nil {
		t.Fatal(err)
	}
	want := strings.ReplaceAll(translate(two, asJSON(first), one), `{ "path": "a.txt", "for": `, `{"path":"a.txt","for":`)
	if diff := cmp.Diff(asJSON(second), want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if strings.Contains(asJSON(second), one.id("parent")) || !strings.Contains(asJSON(second), two.id("parent")) || !strings.Contains(asJSON(second), inventedID) {
		t.Errorf("got ids that are not those of the second run:\n%s", asJSON(second))
	}
	if got, want := second[0].Usage, (model.TokenUsage{Input: 70, Cached: 20, Output: 7}); got != want {
		t.Errorf("got usage %+v, want %+v: tokens without cost", got, want)
	}
	for _, id := range one.ids {
		if strings.Contains(file.String(), id) {
			t.Errorf("the recording contains id %s", id)
		}
	}
}

func TestRecorder_WritesOnlyNewItems(t *testing.T) {
	lines := strings.Split(strings.TrimSpace(recordClerk(t)), "\n")
	if len(lines) != 2 {
		t.Fatalf("got %d lines, want one per answer", len(lines))
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
		t.Errorf("got first line %s", lines[0])
	}
	if second.System != nil || second.Tools != nil || second.After != first.Key || second.Step != 2 || len(second.Items) != 3 || second.Role != "clerk" {
		t.Errorf("got second line %s", lines[1])
	}
}

// Each case changes the second run before its second step.
func TestModel_DescribesDifferences(t *testing.T) {
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
	var own string // the id of the parent in the second run
	tests := []struct {
		name   string
		change func(r *run)
		want   string
	}{
		{"number in a result", func(r *run) { r.items[2] = content(r.items[2], `{"size":13,"of":"`+own+`"}`) },
			`step 2: the request differs from line 2: items[2].result.content.size: recorded 12, now 13`},
		{"id in a result", func(r *run) { r.items[2] = content(r.items[2], `{"size":12,"of":"`+r.id("task")+`"}`) },
			`step 2: the request differs from line 2: items[2].result.content.of: recorded "⟨id 2⟩", now "⟨id 3⟩"`},
		{"new field", func(r *run) { r.items[2] = content(r.items[2], `{"size":12,"of":"`+own+`","a":[1]}`) },
			`step 2: the request differs from line 2: items[2].result.content.a: recorded nothing, now [1]`},
		{"missing field", func(r *run) { r.items[2] = content(r.items[2], `{"size":12}`) },
			`step 2: the request differs from line 2: items[2].result.content.of: recorded "⟨id 2⟩", now nothing`},
		{"null for a number", func(r *run) { r.items[2] = content(r.items[2], `{"size":null,"of":"`+own+`"}`) },
			`step 2: the request differs from line 2: items[2].result.content.size: recorded 12, now null`},
		{"empty array for an object", func(r *run) { r.items[2] = content(r.items[2], `[]`) },
			`step 2: the request differs from line 2: items[2].result.content.of: recorded "⟨id 2⟩", now nothing; items[2].result.content.size: recorded 12, now nothing`},
		{"more differences than are shown", func(r *run) { r.items[2] = content(r.items[2], `{"a":1,"b":2,"c":3,"d":4}`) },
			`step 2: the request differs from line 2: items[2].result.content.a: recorded nothing, now 1; items[2].result.content.b: recorded nothing, now 2; items[2].result.content.c: recorded nothing, now 3`},
		{"order of fields", func(r *run) { r.items[2] = content(r.items[2], `{"of":"`+own+`","size":12}`) },
			`step 2: the request differs from line 2 in the order of an object's fields`},
		{"whole result", func(r *run) { r.items[3] = content(r.items[3], `"⟨c⟩"`) },
			`step 2: the request differs from line 2: items[3].result.content: recorded "⟨⟨b⟩", now "⟨⟨c⟩"`},
		{"result that is an error", func(r *run) { e := *r.items[3].Result; e.IsError = true; r.items[3].Result = &e },
			`step 2: the request differs from line 2: items[3].result.error: recorded nothing, now true`},
		{"long text", func(r *run) {
			r.items[3] = content(r.items[3], `"`+strings.Repeat("é", 200)+`"`)
		}, `step 2: the request differs from line 2: items[3].result.content: recorded "⟨⟨b⟩", now "ééééééééééééééééééééééééééééééééééééééé…`},
		{"field of another type", func(r *run) { r.items[0] = payload(r.items[0], `{"text":["read"]}`) },
			`step 2: the request differs from line 2: items[0].message.payload.at: recorded "⟨time⟩", now nothing; items[0].message.payload.text: recorded "read a.txt", now ["read"]`},
		{"earlier answer", func(r *run) { a := *r.items[1].Answer; a.Text = "no"; r.items[1].Answer = &a },
			`step 2: the request differs from line 2: items[1].answer.text: recorded nothing, now "no"`},
		{"sender of a message", func(r *run) { m := *r.items[0].Message; m.From = "a\nb"; r.items[0].Message = &m },
			`step 2: the request differs from line 2: items[0].message.from: recorded "user", now "a\nb"`},
		{"result in place of another", func(r *run) { r.items = slices.Delete(r.items, 2, 3) },
			`step 2: the request differs from line 2: items[2].result.call: recorded "⟨id 5⟩", now "⟨id 6⟩"; items[2].result.content: recorded {"of":"⟨id 2⟩","size":12}, now "⟨⟨b⟩"`},
		{"missing result", func(r *run) { r.items = r.items[:3] },
			`step 2: the request differs from line 2: items[3]: recorded {"result":{"call":"⟨id 6⟩","content":"⟨⟨b⟩","tool":"read_file"}}, now nothing`},
		{"additional message", func(r *run) { r.addMessage(`"more"`) },
			`step 2: the request differs from line 2: items[4]: recorded nothing, now {"message":{"from":"user","id":"⟨id 7⟩","payload":"more","task":"⟨id 3⟩"…`},
		{"message in place of a result", func(r *run) { r.items = r.items[:3]; r.addMessage(`"more"`) },
			`step 2: the request differs from line 2: items[3].result: recorded {"call":"⟨id 6⟩","content":"⟨⟨b⟩","tool":"read_file"}, now nothing; items[3].message: recorded nothing, now {"from":"user","id":"⟨id 7⟩","payload":"more","task":"⟨id 3⟩","to":"⟨i…`},
		{"additional tool", func(r *run) { r.tools = append(r.tools, "run_command") }, `step 2: the request differs from line 2: tools[2]: recorded nothing, now "run_command"`},
		{"another tool", func(r *run) { r.tools = []string{"read_file", "x"} }, `step 2: the request differs from line 2: tools[1]: recorded "send_message", now "x"`},
		{"order of tools", func(r *run) { slices.Reverse(r.tools) }, `step 2: the request differs from line 2: tools[0]: recorded "read_file", now "send_message"; tools[1]: recorded "send_message", now "read_file"`},
		{"system prompt", func(r *run) { r.system = strings.Replace(r.system, "You know", "You love", 1) },
			`step 2: the request differs from line 2: system: recorded …id 3⟩.\nYou know ⟨id p1⟩.", now …id 3⟩.\nYou love ⟨id p1⟩."`},
		{"longer system prompt", func(r *run) { r.system += "\nBe brief." }, `step 2: the request differs from line 2: system: recorded …now ⟨id p1⟩.", now …now ⟨id p1⟩.\nBe brief."`},
		{"shorter system prompt", func(r *run) { r.system, _, _ = strings.Cut(r.system, "\n") }, `step 2: the request differs from line 2: system: recorded … of ⟨id 3⟩.\nYou know ⟨id p1⟩.", now … of ⟨id 3⟩."`},
		{"workflow state", func(r *run) { r.self.State = "shut" }, `step 2: the request differs from line 2: state: recorded "open", now "shut"`},
		{"summary", func(r *run) { r.summary = &model.ContextSummary{Text: "s", Items: 1} }, `step 2: the request differs from line 2: compact: recorded nothing, now {"items":1,"text":"s"}`},
		{"role", func(r *run) { r.self.Role = "cook" }, `step 2: the recording has no request of this role`},
		{"message in place of an answer", func(r *run) { r.items[1] = r.items[0] }, `step 1: the request differs from line 1: items[1]: recorded nothing, now {"message":{"from":"user","id":"⟨id 4⟩","payload":{"at":"⟨time⟩","text":…`},
		{"empty conversation", func(r *run) { r.items = nil }, `step 1: the request differs from line 1: items[0]: recorded {"message":{"from":"user","id":"⟨id 4⟩","payload":{"at":"⟨time⟩","text":…, now nothing`},
		{"conversation longer than the recording", func(r *run) { r.addAnswer(&model.Answer{Text: "x", Finish: model.FinishContinue}) }, `step 3: the request differs from line 2: items[4]: recorded nothing, now {"answer":{"finish":"continue","text":"x"}}`},
	}
	recording := recordClerk(t)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, r := loadRecording(t, recording), newRun("another")
			if _, err := runClerk(r, m); err != nil {
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

func TestModel_ComparesSummary(t *testing.T) {
	shrink := func(r *run, summary string, items int) {
		r.addMessage(`"first"`)
		r.addAnswer(&model.Answer{Text: "x", Finish: model.FinishEnd})
		r.addMessage(`"second"`)
		r.summary = &model.ContextSummary{Text: summary, Items: items}
	}
	var file bytes.Buffer
	one := newRun("one")
	shrink(one, "knows "+one.friend, 2)
	if _, err := one.ask(replay.NewRecorder(&file, nil).Wrap(answering(&model.Answer{Text: "to " + one.friend, Finish: model.FinishEnd}))); err != nil {
		t.Fatal(err)
	}
	m := loadRecording(t, file.String())
	for _, tt := range []struct {
		name, summary string
		items         int
		want          string
	}{
		{"equal", "knows %", 2, ""},
		{"another text", "loves %", 2, `compact.text: recorded "knows ⟨id p1⟩", now "loves ⟨id p1⟩"`},
		{"fewer items", "knows %", 1, `compact.items: recorded 2, now 1`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			two := newRun("another")
			shrink(two, strings.Replace(tt.summary, "%", two.friend, 1), tt.items)
			a, err := two.ask(m)
			if tt.want != "" {
				wantDiverged(t, err, "recording traffic.jsonl, role clerk, step 2: the request differs from line 1: "+tt.want)
				return
			}
			if err != nil || a.Text != "to "+two.friend {
				t.Errorf("got %+v, %v", a, err)
			}
		})
	}
	two := newRun("another")
	shrink(two, "", 0)
	two.summary = nil
	_, err := two.ask(m)
	wantDiverged(t, err, "recording traffic.jsonl, role clerk, step 2: the request differs from line 1: compact: recorded {\"items\":2,\"text\":\"knows ⟨id p1⟩\"}, now nothing")
}

// Calls of one answer run concurrently, so their results have no fixed order.
func TestModel_IgnoresOrderOfConcurrentResults(t *testing.T) {
	m, r := loadRecording(t, recordClerk(t)), newRun("another")
	r.addMessage(`{"text":"read a.txt","at":"%T"}`)
	if _, err := r.ask(m); err != nil {
		t.Fatal(err)
	}
	r.addResult(1, `"⟨b⟩"`)
	r.addResult(0, `{"size":12,"of":"`+string(r.self.Parent)+`"}`)
	if _, err := r.ask(m); err != nil {
		t.Error(err)
	}
}

func TestModel_AnswersEqualRequestsInOrder(t *testing.T) {
	var file bytes.Buffer
	n := 0
	m := replay.NewRecorder(&file, nil).Wrap(modelFunc(func(model.Request) (*model.Answer, error) {
		n++
		return &model.Answer{Text: fmt.Sprint(n), Finish: model.FinishEnd}, nil
	}))
	asked := func(m model.Model, seeds ...string) (got []string) {
		for _, seed := range seeds {
			r := newRun(seed)
			r.addMessage(`"go"`)
			a, err := r.ask(m)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, a.Text)
		}
		return got
	}
	asked(m, "a", "b", "c", "c")
	if diff := cmp.Diff(asked(loadRecording(t, file.String()), "v", "w", "x", "y", "z"), []string{"1", "2", "3", "4", "4"}); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
}

// After a restart a Recorder starts in the middle of a conversation and writes all of it.
func TestRecorder_StartsInMidConversation(t *testing.T) {
	one := newRun("one")
	if _, err := runClerk(one, modelFunc(readFiles)); err != nil {
		t.Fatal(err)
	}
	one.addMessage(`"go on"`)
	var file bytes.Buffer
	if _, err := one.ask(replay.NewRecorder(&file, nil).Wrap(answering(&model.Answer{Text: "on", Finish: model.FinishEnd}))); err != nil {
		t.Fatal(err)
	}
	two := newRun("another")
	if _, err := runClerk(two, modelFunc(readFiles)); err != nil {
		t.Fatal(err)
	}
	two.addMessage(`"go on"`)
	if a, err := two.ask(loadRecording(t, file.String())); err != nil || a.Text != "on" {
		t.Errorf("got %+v, %v", a, err)
	}
}

// After a failure the recording continues from the line before, and has no answer to the
// request that failed.
func TestRecorder_SkipsFailures(t *testing.T) {
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, nil)
	fail := false
	m := rec.Wrap(modelFunc(func(r model.Request) (*model.Answer, error) {
		if fail {
			return nil, errors.New("unreachable")
		}
		return &model.Answer{Text: "fine", Finish: model.FinishEnd}, nil
	}))
	dialogue := func(r *run, m model.Model) error {
		r.addMessage(`"one"`)
		if _, err := r.ask(m); err != nil {
			return err
		}
		r.addMessage(`"two"`)
		fail = true
		if _, err := r.ask(m); err == nil {
			return errors.New("got no error")
		} else if errcode.CodeOf(err) == errcode.ScriptDiverged {
			wantDiverged(t, err, "recording traffic.jsonl, role clerk, step 2: the request differs from line 2: items[3]: recorded {\"answer\":{\"finish\":\"end\"}}, now nothing")
		}
		fail = false
		r.addAnswer(&model.Answer{Finish: model.FinishEnd})
		r.addMessage(`"three"`)
		_, err := r.ask(m)
		return err
	}
	if err := dialogue(newRun("one"), m); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(file.String(), "\n"); got != 2 {
		t.Errorf("got %d lines, want 2", got)
	}
	if err := dialogue(newRun("another"), loadRecording(t, file.String())); err != nil {
		t.Error(err)
	}
}

// Between two steps a model may be asked for a summary. The recording does not repeat the
// conversation after that.
func TestRecorder_ContinuesAfterInterleavedRequest(t *testing.T) {
	var file bytes.Buffer
	m := replay.NewRecorder(&file, nil).Wrap(answering(&model.Answer{Text: "fine", Finish: model.FinishEnd}))
	r := newRun("one")
	for n := range 6 {
		r.addMessage(fmt.Sprintf(`"word %d"`, n))
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
	loadRecording(t, file.String())
}

// deltaModel is a language model that yields its elements.
type deltaModel []model.AnswerDelta

func (d deltaModel) Window() int { return 1234 }

// wideModel is a language model with a larger context window.
type wideModel struct{ modelFunc }

func (wideModel) Window() int { return 9999 }

func (d deltaModel) Generate(context.Context, model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		for _, delta := range d {
			if !yield(delta, nil) {
				return
			}
		}
	}
}

func TestRecorder_PassesPartialText(t *testing.T) {
	answer := &model.Answer{Text: "hello", Finish: model.FinishEnd}
	want := deltaModel{{Text: "he"}, {Restart: true}, {Text: "hel"}, {Tool: "x", Args: "{"}, {Answer: answer}}
	var file bytes.Buffer
	var got deltaModel
	for delta, err := range replay.NewRecorder(&file, nil).Wrap(want).Generate(t.Context(), newRun("one").request()) {
		if err != nil {
			t.Fatal(err)
		}
		if last := delta.Answer != nil; last != (file.Len() > 0) {
			t.Errorf("at %+v the recording has %d bytes, want the line just before the answer", delta, file.Len())
		}
		got = append(got, delta)
	}
	if diff := cmp.Diff(got, want); diff != "" {
		t.Errorf("got before want:\n%s", diff)
	}
	if got[len(got)-1].Answer != answer {
		t.Error("got another answer than the model returned")
	}
}

func TestRecorder_SkipsAbandonedAnswers(t *testing.T) {
	for n := range 3 {
		var file bytes.Buffer
		m := replay.NewRecorder(&file, nil).Wrap(deltaModel{{Text: "a"}, {Text: "b"}, {Text: "c"}, {Answer: &model.Answer{Finish: model.FinishEnd}}})
		for range m.Generate(t.Context(), newRun("one").request()) {
			if n--; n < 0 {
				break
			}
		}
		if file.Len() > 0 {
			t.Errorf("got recording %s", &file)
		}
	}
}

// failingAfterAnswer yields an answer, then an error.
type failingAfterAnswer struct{}

func (failingAfterAnswer) Generate(context.Context, model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		_ = yield(model.AnswerDelta{Answer: &model.Answer{Finish: model.FinishEnd}}, nil) && yield(model.AnswerDelta{}, io.ErrUnexpectedEOF)
	}
}

func TestRecorder_SkipsIncompleteAnswers(t *testing.T) {
	for name, m := range map[string]model.Model{
		"error after the answer": failingAfterAnswer{}, "no deltas": deltaModel{}, "partial text only": deltaModel{{Text: "a"}},
		"value that is not JSON": answering(&model.Answer{Value: json.RawMessage(`{`), Finish: model.FinishEnd}),
	} {
		t.Run(name, func(t *testing.T) {
			var file bytes.Buffer
			_, _ = ask(replay.NewRecorder(&file, nil).Wrap(m), newRun("one").request())
			if file.Len() > 0 {
				t.Errorf("got recording %s", &file)
			}
		})
	}
}

func TestRecorder_RecordsContextWindow(t *testing.T) {
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, nil)
	plain := rec.Wrap(answering(&model.Answer{Finish: model.FinishEnd}))
	if _, err := ask(plain, newRun("one").request()); err != nil {
		t.Fatal(err)
	}
	if n, ok := model.WindowOf(plain); ok {
		t.Errorf("got window %d of a model without one", n)
	}
	if n, ok := model.WindowOf(loadRecording(t, file.String())); ok {
		t.Errorf("got window %d of a recording without one", n)
	}
	narrow := rec.Wrap(deltaModel{{Answer: &model.Answer{Finish: model.FinishEnd}}})
	if _, err := ask(narrow, newRun("one").request()); err != nil {
		t.Fatal(err)
	}
	if _, err := ask(rec.Wrap(wideModel{answering(&model.Answer{Finish: model.FinishEnd})}), newRun("one").request()); err != nil {
		t.Fatal(err)
	}
	for _, m := range []model.Model{narrow, loadRecording(t, file.String())} { // the smaller of the two
		if n, ok := model.WindowOf(m); !ok || n != 1234 {
			t.Errorf("%T: got %d, %v; want 1234", m, n, ok)
		}
	}
}

// limitedWriter fails after limit writes.
type limitedWriter struct {
	limit  int
	writes int
	bytes.Buffer
}

func (f *limitedWriter) Write(p []byte) (int, error) {
	f.writes++
	if f.writes > f.limit {
		return 0, errors.New("no space left")
	}
	return f.Buffer.Write(p)
}

func TestRecorder_StopsAfterFailedWrite(t *testing.T) {
	disk := &limitedWriter{limit: 1}
	rec := replay.NewRecorder(disk, nil)
	m, r := rec.Wrap(modelFunc(readFiles)), newRun("one")
	if _, err := runClerk(r, m); err != nil {
		t.Fatal(err)
	}
	r.addMessage(`"more"`)
	if _, err := r.ask(m); err != nil {
		t.Fatal(err)
	}
	if rec.Err() == nil || rec.Err().Error() != "no space left" || disk.writes != 2 {
		t.Errorf("got %v after %d writes", rec.Err(), disk.writes)
	}
	loadRecording(t, disk.String()) // the lines written are complete
}

type shortWriter struct{}

func (shortWriter) Write(p []byte) (int, error) { return len(p) - 1, nil }

func TestRecorder_ReportsShortWrite(t *testing.T) {
	rec := replay.NewRecorder(shortWriter{}, nil)
	if _, err := runClerk(newRun("one"), rec.Wrap(modelFunc(readFiles))); err != nil || !errors.Is(rec.Err(), io.ErrShortWrite) {
		t.Errorf("got %v and %v", err, rec.Err())
	}
}

func TestNew_RejectsInvalidRecordings(t *testing.T) {
	good := recordClerk(t)
	one, two, _ := strings.Cut(strings.TrimSuffix(good, "\n"), "\n")
	tests := []struct {
		name, recording, want string
	}{
		{"empty recording", "", "line 1: the recording is empty"},
		{"empty line", one + "\n\n" + two, "line 2: the JSON is cut off"},
		{"line cut off", one + "\n" + two[:len(two)-9], "line 2: the JSON is cut off"},
		{"not JSON", "{]", "line 1: invalid character ']' looking for beginning of object key string"},
		{"two documents in a line", one + " {}", "line 1: unexpected text after the JSON"},
		{"unknown field", strings.Replace(good, `{"role"`, `{"roll":1,"role"`, 1), `line 1: unknown field "roll"`},
		{"unknown field in an item", strings.Replace(good, `{"message":{`, `{"message":{"cc":1,`, 1), `line 1: item 1: unknown field "cc"`},
		{"unknown field in an answer", strings.Replace(good, `"answer":{"calls"`, `"answer":{"x":1,"calls"`, 1), `line 1: answer: unknown field "x"`},
		{"empty item", strings.Replace(good, `{"message":`, `{},{"message":`, 1), "line 1: item 1: want one of message, answer and result"},
		{"missing answer", one[:strings.Index(one, `,"answer"`)] + `,"answer":null}`, "line 1: the answer is missing"},
		{"conversation without its beginning", two, `line 1: no line above has the key "`},
		{"beginning without system prompt", one[:strings.Index(one, `,"system"`)] + one[strings.Index(one, `,"tools"`):], "line 1: a conversation begins without system prompt or tools"},
		{"wrong step", strings.Replace(good, `"step":2`, `"step":3`, 1), "line 2: step 3 follows 1 answers"},
		{"changed item", strings.Replace(good, `"size":12`, `"size":13`, 1), "line 2: the key does not match the content: the recording was changed"},
		{"changed system prompt", strings.Replace(good, `You are`, `You be`, 1), "line 1: the key does not match the content: the recording was changed"},
		{"field twice", strings.Replace(good, `"step":1`, `"step":1,"step":1`, 1), "line 1: the line is not in the form that a recorder writes"},
		{"field in another case", strings.Replace(good, `"answer":{"calls"`, `"Answer":{"calls"`, 1), "line 1: the line is not in the form that a recorder writes"},
		{"item with two meanings", strings.Replace(good, `{"message":{`, `{"message":{},"message":{`, 1), "line 1: item 1: the line is not in the form that a recorder writes"},
		{"text that ends in a placeholder", strings.Replace(good, `"for ⟨id 3⟩"`, `"for ⟨id 3"`, 1), `line 2: answer: "⟨id 3" is not a placeholder of an id`},
		{"unterminated placeholder", strings.Replace(good, `"done by ⟨id 1⟩`, `"done by ⟨id 1`, 1), `line 2: answer: "⟨id 1 at 2026`},
		{"placeholder of a time", strings.Replace(good, `"done by ⟨id 1⟩`, `"done by ⟨time⟩`, 1), `line 2: answer: "⟨time⟩" is not a placeholder of an id`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			m, err := replay.New("traffic.jsonl", []byte(tt.recording))
			if m != nil || errcode.CodeOf(err) != errcode.InvalidConfig || !strings.HasPrefix(errcode.Message(err), "recording traffic.jsonl, "+tt.want) {
				t.Errorf("got  %v\nwant recording traffic.jsonl, %s", err, tt.want)
			}
		})
	}
	if _, err := replay.New("x", []byte(strings.TrimSuffix(good, "\n"))); err != nil {
		t.Errorf("last line without a line feed: %v", err)
	}
}

// A document that a line cannot hold as JSON becomes a string, as it does in the runtime.
func TestRecorder_QuotesDeeplyNestedDocuments(t *testing.T) {
	for _, depth := range []int{9_000, 9_950, 9_999, 10_001} {
		deep := strings.Repeat("[", depth) + strings.Repeat("]", depth)
		var file bytes.Buffer
		one, two := newRun("one"), newRun("another")
		one.addMessage(deep)
		m := replay.NewRecorder(&file, nil).Wrap(answering(&model.Answer{Calls: []model.Call{{Name: "x", Args: json.RawMessage(deep)}}, Finish: model.FinishToolCalls}))
		if _, err := one.ask(m); err != nil {
			t.Fatal(err)
		}
		two.addMessage(deep)
		a, err := two.ask(loadRecording(t, file.String()))
		if err != nil {
			t.Fatal(err)
		}
		if got := string(a.Calls[0].Args); got != deep && got != js(deep) {
			t.Errorf("got %.30s for %d levels", got, depth)
		}
	}
}

func TestRecorder_SkipsEmptyItems(t *testing.T) {
	var file bytes.Buffer
	r := newRun("one")
	r.items = []model.Item{{}}
	if _, err := runClerk(r, replay.NewRecorder(&file, nil).Wrap(modelFunc(readFiles))); err != nil {
		t.Fatal(err)
	}
	if _, err := runClerk(newRun("another"), loadRecording(t, file.String())); err != nil {
		t.Error(err)
	}
}

// A conversation that the Recorder has forgotten is written again in full.
func TestRecorder_ForgetsAgentsOverLimit(t *testing.T) {
	var file bytes.Buffer
	m, first := replay.NewRecorder(&file, nil).Wrap(answering(&model.Answer{Text: "yes", Finish: model.FinishEnd})), newRun("one")
	step := func(m model.Model, r *run) {
		r.addMessage(`"the first"`)
		if _, err := r.ask(m); err != nil {
			t.Fatal(err)
		}
	}
	step(m, first)
	for n := range 10_000 {
		r := first.request()
		r.Self.ID, r.Items = identity.AgentID(fmt.Sprint(n)), nil
		if _, err := ask(m, r); err != nil {
			t.Fatal(err)
		}
	}
	step(m, first)
	if got := strings.Count(file.String(), "the first"); got != 3 {
		t.Errorf("got the message %d times, want 3", got)
	}
	again, other := loadRecording(t, file.String()), newRun("another")
	step(again, other)
	step(again, other)
}

func TestModel_RejectsUnknownPlaceholder(t *testing.T) {
	m, r := loadRecording(t, strings.Replace(recordClerk(t), `"done by ⟨id 1⟩`, `"done by ⟨id 77⟩`, 1)), newRun("another")
	_, err := runClerk(r, m)
	wantDiverged(t, err, `recording traffic.jsonl, role clerk, step 2: the answer contains ⟨id 77⟩, but this conversation has no such id`)
}

func TestModel_ReturnsContextError(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range loadRecording(t, recordClerk(t)).Generate(ctx, newRun("one").request()) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	}
}

// lineWriter counts writes and checks that each is one line.
type lineWriter struct {
	t *testing.T
	bytes.Buffer
	n int
}

func (l *lineWriter) Write(p []byte) (int, error) {
	l.n++
	if bytes.IndexByte(p, '\n') != len(p)-1 {
		l.t.Errorf("one write is not one line: %s", p)
	}
	return l.Buffer.Write(p)
}

func TestRecorder_IsSafeForConcurrentUse(t *testing.T) {
	const agents = 40
	file := &lineWriter{t: t}
	rec := replay.NewRecorder(file, func() []string { return []string{"a-long-secret"} })
	together := func(m model.Model, seed string) {
		var wait sync.WaitGroup
		for n := range agents {
			wait.Go(func() {
				if _, err := runClerk(newRun(fmt.Sprint(seed, n)), m); err != nil {
					t.Error(err)
				}
			})
		}
		wait.Wait()
	}
	together(rec.Wrap(modelFunc(readFiles)), "one")
	if rec.Err() != nil || file.n != 2*agents {
		t.Fatalf("got %d lines, %v", file.n, rec.Err())
	}
	together(loadRecording(t, file.String()), "another")
}

// A recording of the earlier form has all texts of the runtime in the system prompt. It is
// played whatever these texts are now. What it compares besides is compared.
func TestModel_PlaysEarlierForm(t *testing.T) {
	const recording = `{"role":"clerk","step":1,"system":"You are ⟨id 1⟩","tools":[],"items":[{"message":{"from":"user","payload":{"text":"sign"}}}],"key":"cc21c7abf997cb8516b2c9c7c6cf452a1ac697a5a79e5b1516ea1aea08f887c6","answer":{"text":"signed, ⟨id 1⟩","finish":"end","read":1}}
`
	request := model.Request{
		Self: model.AgentInfo{ID: "0190d3a4-0000-7000-8000-00000000cafe", Role: "clerk"}, System: "You work.", Opening: "You are one of them.", Note: "Hurry.",
		Tools: []string{"look"}, NoCalls: true,
		Items: []model.Item{{Message: &model.Message{From: "user", Payload: json.RawMessage(`{"text":"sign"}`)}}},
	}
	if answer, err := ask(loadRecording(t, recording), request); err != nil || answer.Text != "signed, 0190d3a4-0000-7000-8000-00000000cafe" {
		t.Errorf("got %v, %v", answer, err)
	}
	request.NoCalls = false
	if _, err := ask(loadRecording(t, recording), request); errcode.CodeOf(err) != errcode.ScriptDiverged || !strings.Contains(err.Error(), "line 1: tools[0]: recorded nothing, now \"look\"") {
		t.Errorf("another list of tools: %v", err)
	}
}

// The opening, the note and whether calls are allowed are part of a request.
func TestModel_ComparesOpeningAndNote(t *testing.T) {
	request := model.Request{
		Self: model.AgentInfo{ID: "a", Role: "clerk"}, System: "You work.", Opening: "You are the first.", Note: "Hurry.", Tools: []string{"look"},
		Items: []model.Item{{Message: &model.Message{From: "user", Payload: json.RawMessage(`{"text":"sign"}`)}}},
	}
	var file bytes.Buffer
	if _, err := ask(replay.NewRecorder(&file, nil).Wrap(answering(&model.Answer{Text: "signed", Finish: model.FinishEnd})), request); err != nil {
		t.Fatal(err)
	}
	for want, change := range map[string]func(*model.Request){
		"":                                 func(*model.Request) {},
		`opening: recorded "You are the f`: func(r *model.Request) { r.Opening = "You are the fourth." },
		`note: recorded "Hurry."`:          func(r *model.Request) { r.Note = "" },
		`tools[0]: recorded "look"`:        func(r *model.Request) { r.NoCalls = true },
	} {
		now := request
		change(&now)
		if _, err := ask(loadRecording(t, file.String()), now); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
