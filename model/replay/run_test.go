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

// run is one agent in one run of a scenario. Two runs differ in their ids and times.
type run struct {
	seed    string
	self    model.AgentInfo
	friend  string
	system  string
	tools   []string
	items   []model.Item
	summary *model.ContextSummary
	answers int // how many there are
	ids     []string
}

func newRun(seed string) *run {
	r := &run{seed: seed, system: "You are %AGENT of %TASK.\nYou know %FRIEND.", tools: []string{"read_file", "send_message"}}
	r.self = model.AgentInfo{ID: identity.AgentID(r.id("agent")), Role: "clerk", Parent: identity.AgentID(r.id("parent")), Task: identity.TaskID(r.id("task")), State: "open"}
	r.friend = r.id("friend")
	r.system = strings.NewReplacer("%AGENT", string(r.self.ID), "%TASK", string(r.self.Task), "%FRIEND", r.friend).Replace(r.system)
	return r
}

// id returns the id that a name has in this run.
func (r *run) id(name string) string {
	id := identity.DeriveID(r.seed, name)
	r.ids = append(r.ids, id)
	return id
}

// now returns a time that depends on the run and the length of its conversation.
func (r *run) now() time.Time {
	return time.Date(2026, 1, 2, 3, 4, len(r.seed)*7, 1000*len(r.items)*len(r.seed), time.UTC)
}

func (r *run) request() model.Request {
	return model.Request{Self: r.self, System: r.system, Items: r.items, Tools: r.tools, Compact: r.summary}
}

// addMessage adds a message to the conversation; %T in it becomes a time.
func (r *run) addMessage(payload string) {
	payload = strings.ReplaceAll(payload, "%T", r.now().Format(time.RFC3339Nano))
	r.items = append(r.items, model.Item{Message: &model.Message{
		ID: r.id(fmt.Sprint("message", len(r.items))), From: "user", To: string(r.self.ID), Task: r.self.Task, Payload: json.RawMessage(payload), CreatedAt: r.now(),
	}})
}

// addAnswer adds an answer to the conversation, with ids for its calls.
func (r *run) addAnswer(a *model.Answer) {
	own := *a
	own.Calls = nil
	for i, c := range a.Calls {
		c.ID = identity.CallID(r.id(fmt.Sprint("call", r.answers, i)))
		own.Calls = append(own.Calls, c)
	}
	r.answers++
	r.items = append(r.items, model.Item{Answer: &own})
}

// addResult adds the result of a call of the last answer to the conversation.
func (r *run) addResult(call int, content string) {
	c := r.lastAnswer().Calls[call]
	r.items = append(r.items, model.Item{Result: &model.CallResult{Call: c.ID, Tool: c.Name, Content: json.RawMessage(content)}})
}

// lastAnswer returns the last answer, nil if there is none.
func (r *run) lastAnswer() (last *model.Answer) {
	for _, item := range r.items {
		if item.Answer != nil {
			last = item.Answer
		}
	}
	return last
}

// ask asks a model and adds its answer to the conversation.
func (r *run) ask(m model.Model) (*model.Answer, error) {
	a, err := ask(m, r.request())
	if err == nil {
		r.addAnswer(a)
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

// modelFunc is a model that calls a function for each answer.
type modelFunc func(model.Request) (*model.Answer, error)

func (s modelFunc) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		a, err := s(r)
		if err != nil {
			yield(model.AnswerDelta{}, err)
			return
		}
		yield(model.AnswerDelta{Answer: a}, nil)
	}
}

// answering returns a model that always returns the same answer.
func answering(a *model.Answer) modelFunc {
	return func(model.Request) (*model.Answer, error) { return a, nil }
}

// readFiles asks for two files, then ends with a text that contains ids and a time.
func readFiles(r model.Request) (*model.Answer, error) {
	last := r.Items[len(r.Items)-1]
	if last.Result == nil {
		return &model.Answer{Finish: model.FinishToolCalls, MessagesRead: 1, Calls: []model.Call{
			{Provider: "toolu_1", Name: "read_file", Args: json.RawMessage(`{ "path": "a.txt", "for": "` + string(r.Self.Parent) + `" }`)},
			{Provider: "toolu_2", Name: "read_file", Args: json.RawMessage(`{"path":"b.txt"}`)},
		}, Usage: model.TokenUsage{Input: 70, Cached: 20, Output: 7, Cost: 12345}, Reasoning: json.RawMessage(`{"signature":"⟨x-y"}`), Provider: "anthropic"}, nil
	}
	return &model.Answer{Text: "done by " + string(r.Self.ID) + " at 2026-05-05T05:05:05Z ⟨id 1⟩ " + inventedID, Finish: model.FinishEnd, MessagesRead: 1, Log: []string{"for " + string(r.Self.Task)}}, nil
}

// inventedID is an id that a model makes up and no conversation contains.
const inventedID = "99999999-9999-4999-8999-999999999999"

// errNoCalls is returned by runClerk if the model does not make the calls of readFiles.
var errNoCalls = errors.New("two calls are missing")

// runClerk runs the conversation that readFiles answers.
func runClerk(r *run, m model.Model) (answers []*model.Answer, err error) {
	r.addMessage(`{"text":"read a.txt","at":"%T"}`)
	calls, err := r.ask(m)
	if err != nil {
		return nil, err
	}
	if len(calls.Calls) != 2 {
		return []*model.Answer{calls}, errNoCalls
	}
	r.addResult(0, `{"size":12,"of":"`+string(r.self.Parent)+`"}`)
	r.addResult(1, `"⟨b⟩"`)
	end, err := r.ask(m)
	if err != nil {
		return []*model.Answer{calls}, err
	}
	return []*model.Answer{calls, end}, nil
}

// recordClerk returns a recording of runClerk.
func recordClerk(t testing.TB) string {
	t.Helper()
	var file bytes.Buffer
	rec := replay.NewRecorder(&file, nil)
	if _, err := runClerk(newRun("one"), rec.Wrap(modelFunc(readFiles))); err != nil || rec.Err() != nil {
		t.Fatal(err, rec.Err())
	}
	return file.String()
}

func loadRecording(t testing.TB, recording string) *replay.Model {
	t.Helper()
	m, err := replay.New("traffic.jsonl", []byte(recording))
	if err != nil {
		t.Fatalf("%v\n%s", err, recording)
	}
	return m
}

// wantDiverged checks for the code script_diverged and a message.
func wantDiverged(t *testing.T, err error, want string) {
	t.Helper()
	if errcode.CodeOf(err) != errcode.ScriptDiverged || errcode.Message(err) != want {
		t.Errorf("got  %v\nwant script_diverged: %s", err, want)
	}
}

// translate returns a text with the ids of one run replaced by those of another.
func translate(other *run, text string, of *run) string {
	for i, id := range of.ids {
		text = strings.ReplaceAll(text, id, other.ids[i])
	}
	return text
}

// asJSON returns answers as lines of JSON, without their cost.
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

// answerWith returns an answer with a text of the run in every field.
func answerWith(r *run, text func(*run) string) *model.Answer {
	doc := json.RawMessage(js(map[string]string{"a": text(r)}))
	return &model.Answer{Text: text(r), Value: doc, Log: []string{text(r)}, Calls: []model.Call{{Name: text(r), Args: doc}}, Finish: model.FinishEnd}
}

// cleaned returns an answer with valid UTF-8 and without HTML escapes in its JSON.
func cleaned(a *model.Answer) *model.Answer {
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
