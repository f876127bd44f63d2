package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/replay"
)

// run is one agent in one run: the same script in two runs has other ids and
// other times.
type run struct {
	seed   string
	self   model.AgentInfo
	friend string
	system string
	tools  []string
	items  []model.Item
	shrunk *model.Summary
	asked  int // answers so far
	ids    []string
}

func newRun(seed string) *run {
	r := &run{seed: seed, system: "You are %AGENT of %TASK.\nYou know %FRIEND.", tools: []string{"read_file", "send_message"}}
	r.self = model.AgentInfo{ID: identity.AgentID(r.id("agent")), Role: "clerk", Parent: identity.AgentID(r.id("parent")), Task: identity.TaskID(r.id("task")), State: "open"}
	r.friend = r.id("friend")
	r.system = strings.NewReplacer("%AGENT", string(r.self.ID), "%TASK", string(r.self.Task), "%FRIEND", r.friend).Replace(r.system)
	return r
}

// id gives the id that a thing has in this run.
func (r *run) id(name string) string {
	id := identity.Derive(r.seed, name)
	r.ids = append(r.ids, id)
	return id
}

// now gives a time of this run.
func (r *run) now() time.Time {
	return time.Date(2026, 1, 2, 3, 4, len(r.seed)*7, 1000*len(r.items)*len(r.seed), time.UTC)
}

func (r *run) request() model.Request {
	return model.Request{Self: r.self, System: r.system, Items: r.items, Tools: r.tools, Compact: r.shrunk}
}

// tell puts a message into the conversation; %T in it is a time.
func (r *run) tell(payload string) {
	payload = strings.ReplaceAll(payload, "%T", r.now().Format(time.RFC3339Nano))
	r.items = append(r.items, model.Item{Message: &model.Message{
		ID: r.id(fmt.Sprint("message", len(r.items))), From: "user", To: string(r.self.ID), Task: r.self.Task, Payload: json.RawMessage(payload), CreatedAt: r.now(),
	}})
}

// take puts an answer into the conversation, with ids for its calls.
func (r *run) take(a *model.Answer) {
	own := *a
	own.Calls = nil
	for i, c := range a.Calls {
		c.ID = identity.CallID(r.id(fmt.Sprint("call", r.asked, i)))
		own.Calls = append(own.Calls, c)
	}
	r.asked++
	r.items = append(r.items, model.Item{Answer: &own})
}

// end puts the result of a call of the last answer into the conversation.
func (r *run) end(call int, content string) {
	c := r.answer().Calls[call]
	r.items = append(r.items, model.Item{Result: &model.Result{Call: c.ID, Tool: c.Name, Content: json.RawMessage(content)}})
}

// answer gives the last answer.
func (r *run) answer() (last *model.Answer) {
	for _, item := range r.items {
		if item.Answer != nil {
			last = item.Answer
		}
	}
	return last
}

// ask asks a model, and takes its answer into the conversation.
func (r *run) ask(m model.Model) (*model.Answer, error) {
	a, err := ask(m, r.request())
	if err == nil {
		r.take(a)
	}
	return a, err
}

// ask asks a model as the runtime does.
func ask(m model.Model, r model.Request) (answer *model.Answer, err error) {
	for delta, err := range m.Generate(context.Background(), r) {
		if err != nil {
			return nil, err
		}
		if delta.Answer != nil {
			answer = delta.Answer
		}
	}
	if answer == nil {
		return nil, errors.New("no answer")
	}
	return answer, nil
}

// says is a model that answers what a function does.
type says func(model.Request) (*model.Answer, error)

func (s says) Generate(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		a, err := s(r)
		if err != nil {
			yield(model.Delta{}, err)
			return
		}
		yield(model.Delta{Answer: a}, nil)
	}
}

// always is a model with one answer.
func always(a *model.Answer) says {
	return func(model.Request) (*model.Answer, error) { return a, nil }
}

// reads is a clerk that reads a file and tells its size to whom it knows.
func reads(r model.Request) (*model.Answer, error) {
	last := r.Items[len(r.Items)-1]
	if last.Result == nil {
		return &model.Answer{Finish: model.FinishToolCalls, MessagesRead: 1, Calls: []model.Call{
			{Provider: "toolu_1", Name: "read_file", Args: json.RawMessage(`{ "path": "a.txt", "for": "` + string(r.Self.Parent) + `" }`)},
			{Provider: "toolu_2", Name: "read_file", Args: json.RawMessage(`{"path":"b.txt"}`)},
		}, Usage: model.Usage{Input: 70, Cached: 20, Output: 7, Cost: 12345}, Reasoning: json.RawMessage(`{"signature":"⟨x-y"}`), Provider: "anthropic"}, nil
	}
	return &model.Answer{Text: "done by " + string(r.Self.ID) + " at 2026-05-05T05:05:05Z ⟨id 1⟩ " + made, Finish: model.FinishEnd, MessagesRead: 1, Log: []string{"for " + string(r.Self.Task)}}, nil
}

// made is an id that a model makes up.
const made = "99999999-9999-4999-8999-999999999999"

// errQuiet is of a model that does not call what a clerk calls.
var errQuiet = errors.New("two calls are missing")

// play lets a clerk work.
func play(r *run, m model.Model) (answers []*model.Answer, err error) {
	r.tell(`{"text":"read a.txt","at":"%T"}`)
	calls, err := r.ask(m)
	if err != nil {
		return nil, err
	}
	if len(calls.Calls) != 2 {
		return []*model.Answer{calls}, errQuiet
	}
	r.end(0, `{"size":12,"of":"`+string(r.self.Parent)+`"}`)
	r.end(1, `"⟨b⟩"`)
	end, err := r.ask(m)
	if err != nil {
		return []*model.Answer{calls}, err
	}
	return []*model.Answer{calls, end}, nil
}

// recorded gives the recording of a clerk's work.
func recorded(t testing.TB) string {
	t.Helper()
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, nil)
	if _, err := play(newRun("one"), rec.Wrap(says(reads))); err != nil || rec.Err() != nil {
		t.Fatal(err, rec.Err())
	}
	return file.String()
}

func load(t testing.TB, recording string) *replay.Model {
	t.Helper()
	m, err := replay.New("traffic.jsonl", []byte(recording))
	if err != nil {
		t.Fatalf("%v\n%s", err, recording)
	}
	return m
}

// wantDiverged wants the code of a difference, and the words.
func wantDiverged(t *testing.T, err error, want string) {
	t.Helper()
	if errcode.Of(err) != errcode.ScriptDiverged || errcode.Message(err) != want {
		t.Errorf("got  %v\nwant script_diverged: %s", err, want)
	}
}

// in gives a text of one run as it is in another.
func in(other *run, text string, of *run) string {
	for i, id := range of.ids {
		text = strings.ReplaceAll(text, id, other.ids[i])
	}
	return text
}

// asJSON gives what is the same of two answers, modulo ids.
func asJSON(answers []*model.Answer) string {
	var b strings.Builder
	for n, a := range answers {
		own := *a
		own.Usage.Cost = 0
		text, err := json.Marshal(own)
		if err != nil {
			panic(strconv.Itoa(n) + ": " + err.Error())
		}
		b.Write(append(text, '\n'))
	}
	return b.String()
}

// speech is an answer with words in every place.
func speech(r *run, words func(*run) string) *model.Answer {
	doc := json.RawMessage(js(map[string]string{"a": words(r)}))
	return &model.Answer{Text: words(r), Value: doc, Log: []string{words(r)}, Calls: []model.Call{{Name: words(r), Args: doc}}, Finish: model.FinishEnd}
}

// valid gives an answer as a journal gives it back, without escapes for HTML.
func valid(a *model.Answer) *model.Answer {
	for _, text := range []*string{&a.Text, &a.Log[0], &a.Calls[0].Name} {
		*text = strings.ToValidUTF8(*text, "\uFFFD")
	}
	for _, doc := range []*json.RawMessage{&a.Value, &a.Calls[0].Args} {
		var v any
		if err := json.Unmarshal(*doc, &v); err != nil {
			panic(err)
		}
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(false)
		if err := e.Encode(v); err != nil {
			panic(err)
		}
		*doc = bytes.TrimSpace(b.Bytes())
	}
	return a
}
