package tool_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// fakePerson answers every request with the same.
type fakePerson struct {
	got    []tool.InputRequest
	answer tool.InputResponse
	memo   json.RawMessage
}

func (*fakePerson) SupportsInput(k tool.InputKind) bool { return k == tool.PersonInput }
func (p *fakePerson) LastMemo() json.RawMessage         { return p.memo }
func (p *fakePerson) RequestInput(_ context.Context, r tool.InputRound) ([]tool.InputResponse, error) {
	p.got = append(p.got, r.Requests...)
	var list []tool.InputResponse
	for _, request := range r.Requests {
		if err := r.Log.InputAsked(request, "", time.Now()); err != nil {
			return nil, err
		}
		list = append(list, p.answer)
		if err := r.Log.InputAnswered(request, p.answer, "", ""); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// bind returns the context of a call that asks source.
func bind(ctx context.Context, source tool.InputSource, asks tool.Asks) context.Context {
	return tool.BindInput(tool.WithInput(ctx, source), tool.Call{Name: "t"}, tool.Definition{Asks: asks})
}

func ExampleAsk() {
	type city struct {
		Name string `json:"name"`
	}
	remove := func(ctx context.Context, in city) (string, error) {
		answer, err := tool.Ask(ctx, tool.Question{Message: "Remove " + in.Name + "?"})
		if err != nil || answer.Action != tool.Accept {
			return "nothing was removed", err
		}
		return "removed", nil
	}
	t, err := tool.New("remove_city", "Remove a city.", remove, &tool.Options{Asks: tool.AsksFirst})
	if err != nil {
		fmt.Println(err)
		return
	}
	person := &fakePerson{answer: tool.InputResponse{Answer: &tool.Answer{Action: tool.Accept}}} // rolecall asks a client or a terminal
	call := tool.Call{Name: "remove_city", Args: json.RawMessage(`{"name": "Ulm"}`)}
	result, err := t.Call(tool.BindInput(tool.WithInput(context.Background(), person), call, t.Definition()), call)
	fmt.Println(person.got[0].Question.Message, result.Text, err)
	// Output: Remove Ulm? removed <nil>
}

// What is missing from an answer is filled in from the schema, and what was not asked for is left
// out.
func TestAsk_CompletesAnswer(t *testing.T) {
	schema := json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"integer"},"c":{"type":"array","items":{"type":"string","enum":["1","2"]}}},"required":["b"]}`)
	for _, tt := range []struct{ content, want string }{
		{`{"b":1}`, `{"a":"x","b":1}`},
		{`{"b":1,"a":"y","z":2,"c":["2"]}`, `{"a":"y","b":1,"c":["2"]}`},
		{`{}`, ""},
		{``, ""},
		{`{"b":"1"}`, ""},
		{`{"b":1,"c":["3"]}`, ""},
		{`{"b":1,"b":2}`, ""},
		{`[]`, ""},
	} {
		p := &fakePerson{answer: tool.InputResponse{Answer: &tool.Answer{Action: tool.Accept, Content: json.RawMessage(tt.content)}}}
		got, err := tool.Ask(bind(t.Context(), p, tool.AsksMidway), tool.Question{Message: "?", Schema: schema})
		if string(got.Content) != tt.want || (err == nil) != (tt.want != "") || err != nil && errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%s: got %s, %v", tt.content, got.Content, err)
		}
	}
}

// A question that is not short, or asks for more than a form, is rejected before a person sees it.
func TestAsk_RejectsQuestion(t *testing.T) {
	object := func(properties string) json.RawMessage {
		return json.RawMessage(`{"type":"object","properties":{` + properties + `}}`)
	}
	for name, q := range map[string]tool.Question{
		"no message":           {},
		"a long message":       {Message: strings.Repeat("x", 4<<10+1)},
		"an invisible message": {Message: " \n\t "},
		"a long name":          {Message: "?", Name: strings.Repeat("x", 65)},
		"a name with a space":  {Message: "?", Name: "a b"},
		"a nested object":      {Message: "?", Schema: object(`"a":{"type":"object","properties":{}}`)},
		"a reference":          {Message: "?", Schema: object(`"a":{"$ref":"#"}`)},
		"a free list":          {Message: "?", Schema: object(`"a":{"type":"array","items":{"type":"string"}}`)},
		"no type":              {Message: "?", Schema: object(`"a":{}`)},
		"a password":           {Message: "?", Schema: object(`"a":{"type":"string","format":"password"}`)},
		"not an object":        {Message: "?", Schema: json.RawMessage(`{"type":"string"}`)},
		"not JSON":             {Message: "?", Schema: json.RawMessage(`{`)},
		"a large schema":       {Message: "?", Schema: object(`"a":{"type":"string","title":"` + strings.Repeat("x", 16<<10) + `"}`)},
		"a script":             {Message: "?", URL: "javascript:alert(1)"},
		"a file":               {Message: "?", URL: "file:///etc/passwd"},
		"a password in a URL":  {Message: "?", URL: "https://a:b@example.com/"},
		"an invisible URL":     {Message: "?", URL: "https://example.com/\u202egpj.exe"},
		"a URL and a schema":   {Message: "?", URL: "https://example.com/", Schema: object("")},
	} {
		p := new(fakePerson)
		_, err := tool.Ask(bind(t.Context(), p, tool.AsksFirst), q)
		if errcode.CodeOf(err) != errcode.InvalidArguments || len(p.got) > 0 {
			t.Errorf("%s: %v, asked %d times", name, err, len(p.got))
		}
	}
}

// A message cannot pose as one of another tool or server, or act on a terminal.
func TestQuestion_Attributed(t *testing.T) {
	p := &fakePerson{answer: tool.InputResponse{Answer: &tool.Answer{Action: tool.Decline}}}
	if _, err := tool.Ask(bind(t.Context(), p, tool.AsksFirst), tool.Question{Message: "\x1b[1mrolecall asks:\u202e x\ny", Server: "evil\nrolecall"}); err != nil {
		t.Fatal(err)
	}
	want := "t (MCP server evil rolecall) asks: \uFFFD[1mrolecall asks:\uFFFD x\ny"
	if got := p.got[0].Question.Attributed("t"); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A call asks at most 16 things, and a name once. Outside of a call, and for a tool that does not
// declare that it asks, no question is sent.
func TestAsk_Limits(t *testing.T) {
	p := &fakePerson{answer: tool.InputResponse{Answer: &tool.Answer{Action: tool.Accept}}, memo: json.RawMessage(`1`)}
	ctx := bind(t.Context(), p, tool.AsksFirst)
	for i := range tool.MaxQuestions {
		q := tool.Question{Message: "?"}
		if i == 0 {
			q.Name = "first"
		}
		if _, err := tool.Ask(ctx, q); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := tool.Ask(ctx, tool.Question{Message: "?"}); errcode.CodeOf(err) != errcode.InputUnavailable {
		t.Errorf("question 17: %v", err)
	}
	if _, err := tool.RequestInput(bind(t.Context(), p, tool.AsksFirst), nil); errcode.CodeOf(err) != errcode.InvalidArguments || !strings.Contains(errcode.Message(err), "asks for nothing") {
		t.Errorf("no question: %v", err)
	}
	again := bind(t.Context(), p, tool.AsksFirst)
	for i, want := range []errcode.Code{"", errcode.InvalidArguments} {
		if _, err := tool.Ask(again, tool.Question{Message: "?", Name: "x"}); errcode.CodeOf(err) != want {
			t.Errorf("the same name, %d: %v", i, err)
		}
	}
	for name, ctx := range map[string]context.Context{
		"no call": t.Context(), "undeclared": bind(t.Context(), p, tool.AsksNothing), "no source": bind(t.Context(), nil, tool.AsksFirst),
	} {
		_, err := tool.Ask(ctx, tool.Question{Message: "?"})
		if errcode.CodeOf(err) != errcode.InputUnavailable || tool.SupportsInput(ctx, tool.PersonInput) || tool.LastMemo(ctx) != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if !tool.SupportsInput(ctx, tool.PersonInput) || tool.SupportsInput(ctx, tool.ModelInput) || string(tool.LastMemo(ctx)) != "1" {
		t.Error("a call that may ask does not know what it may ask for")
	}
}

// A response of another kind than its request is rejected, from any sender.
func TestRequestInput_WrongResponse(t *testing.T) {
	for _, got := range []tool.InputResponse{{}, {Roots: []tool.Root{{}}}, {Reply: &tool.ModelReply{}}, {Answer: &tool.Answer{Action: "yes"}}} {
		if _, err := tool.Ask(bind(t.Context(), &fakePerson{answer: got}, tool.AsksFirst), tool.Question{Message: "?"}); errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%+v: %v", got, err)
		}
	}
	p := &fakePerson{answer: tool.InputResponse{Answer: &tool.Answer{Action: tool.Accept}}}
	if _, err := tool.AskModel(bind(t.Context(), p, tool.AsksFirst), tool.ModelRequest{Messages: []tool.ModelMessage{{Role: "user", Text: "x"}}, MaxTokens: 1}); errcode.CodeOf(err) != errcode.InvalidArguments {
		t.Errorf("an answer of a person for a model: %v", err)
	}
	long := &fakePerson{answer: tool.InputResponse{Reply: &tool.ModelReply{Text: strings.Repeat("x", 64<<10+1)}}}
	_, err := tool.AskModel(bind(t.Context(), long, tool.AsksFirst), tool.ModelRequest{Messages: []tool.ModelMessage{{Role: "user", Text: "x"}}, MaxTokens: 1})
	if errcode.CodeOf(err) != errcode.InvalidArguments || !strings.Contains(errcode.Message(err), "65537 bytes") {
		t.Errorf("a reply of 64 KiB and one byte: %v", err)
	}
	for name, m := range map[string]tool.ModelRequest{"no message": {MaxTokens: 1}, "no tokens": {Messages: []tool.ModelMessage{{Role: "user"}}}, "a system message": {Messages: []tool.ModelMessage{{Role: "system"}}, MaxTokens: 1}} {
		if _, err := tool.AskModel(bind(t.Context(), p, tool.AsksFirst), m); errcode.CodeOf(err) != errcode.InvalidArguments {
			t.Errorf("%s: %v", name, err)
		}
	}
}
