//lint:file-ignore SA1019 the SDK marks sampling and roots as deprecated; clients have them

package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

const nameSchema = `{"type":"object","properties":{"name":{"type":"string","maxLength":20}},"required":["name"]}`

// askTools are tools that ask. deleted counts the effects of the tools that have some.
type askTools struct{ deleted, runs atomic.Int32 }

func (a *askTools) tools(t testing.TB) []tool.Tool {
	first := &tool.Options{Asks: tool.AsksFirst}
	return []tool.Tool{
		must(t)(tool.New("greet", "asks for a name", greet, &tool.Options{Effect: tool.ReadOnly, Asks: tool.AsksFirst})),
		must(t)(tool.New("drop", "asks twice, then acts", a.drop, first)),
		must(t)(tool.New("midway", "acts, then asks", a.midway, &tool.Options{Asks: tool.AsksMidway})),
		must(t)(tool.New("undeclared", "asks without declaring it", greet, nil)),
		must(t)(tool.New("loop", "asks for everything", loop, &tool.Options{Effect: tool.ReadOnly, Asks: tool.AsksFirst})),
		must(t)(tool.New("everything", "asks a person, a model and for roots", everything, first)),
		must(t)(tool.New("visit", "asks to open a page", visit, first)),
	}
}

func greet(ctx context.Context, _ textArgs) (string, error) {
	a, err := tool.Ask(ctx, tool.Question{Name: "who", Message: "What is your\x1b[2J name?", Schema: raw(nameSchema)})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s", a.Action, a.Content), nil
}

func (a *askTools) drop(ctx context.Context, _ noArgs) (string, error) {
	a.runs.Add(1)
	for _, q := range []string{"sure", "really"} {
		if answer, err := tool.Ask(ctx, tool.Question{Name: q, Message: q + "?"}); err != nil || answer.Action != tool.Accept {
			return string(answer.Action), err
		}
	}
	a.deleted.Add(1)
	return "dropped", nil
}

func (a *askTools) midway(ctx context.Context, _ noArgs) (string, error) {
	a.deleted.Add(1)
	answer, err := tool.Ask(ctx, tool.Question{Message: "Go on?"})
	return string(answer.Action), err
}

func loop(ctx context.Context, _ noArgs) (string, error) {
	for i := 1; ; i++ {
		if _, err := tool.Ask(ctx, tool.Question{Message: "Again?"}); err != nil {
			return "", fmt.Errorf("question %d: %w", i, err)
		}
	}
}

func everything(ctx context.Context, _ noArgs) (string, error) {
	all, err := tool.RequestInput(ctx, nil,
		tool.InputRequest{Name: "who", Question: &tool.Question{Message: "Who?", Schema: raw(nameSchema)}},
		tool.InputRequest{Name: "hello", Model: &tool.ModelRequest{Messages: []tool.ModelMessage{{Role: "user", Text: "Say hello."}}, MaxTokens: 50}},
		tool.InputRequest{Name: "dirs"})
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("%s %s %s", all[0].Answer.Content, all[1].Reply.Text, all[2].Roots[0].URI), nil
}

func visit(ctx context.Context, _ noArgs) (string, error) {
	a, err := tool.Ask(ctx, tool.Question{Message: "Sign in.", URL: "https://login.example.com/"})
	return string(a.Action), err
}

// openAskFixture serves the role asker, with the tools of askTools.
func openAskFixture(t testing.TB, config mcpserver.Config) (*fixture, *askTools) {
	t.Helper()
	f, a := fixtureConfig{config: config}.open(t), new(askTools)
	f.register(t, toolgroups.Group{ID: "ask", Tools: a.tools(t)})
	f.role(t, "asker", "ask")
	f.role(t, "other", "ask")
	return f, a
}

// person is a client's user, who answers each question with answer.
func person(answer func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error)) *sdk.ClientOptions {
	return &sdk.ClientOptions{ElicitationHandler: func(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
		return answer(ctx, r.Params)
	}}
}

func accept(content map[string]any) *sdk.ClientOptions {
	return person(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		return &sdk.ElicitResult{Action: "accept", Content: content}, nil
	})
}

// ask calls a tool and returns the text of its result, or the code of its error.
func ask(t testing.TB, session *sdk.ClientSession, name string) string {
	t.Helper()
	args := obj{}
	if name == "greet" || name == "undeclared" {
		args["text"] = ""
	}
	r, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		return err.Error()
	}
	if code := gjson.Get(textOf(r), "error").Str; r.IsError && code != "" {
		return code
	}
	return textOf(r)
}

// The client with a session is asked during the call, in every revision that has elicitation, and
// answers in the name of its user. The question names the tool, and has no control characters.
func TestAsk_ClientWithSession(t *testing.T) {
	f, _ := openAskFixture(t, mcpserver.Config{})
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		var message string
		session := f.connect(t, "ann@asker", "/mcp", version, person(func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			message = p.Message
			return &sdk.ElicitResult{Action: "accept", Content: obj{"name": "Ann", "extra": 1}}, nil
		}))
		if got := ask(t, session, "greet"); got != `accept {"name":"Ann"}` {
			t.Errorf("%s: %s", version, got)
		}
		if message != "greet asks: What is your\uFFFD[2J name?" {
			t.Errorf("%s: the client was asked %q", version, message)
		}
	}
}

// What the person answers is what the tool gets: also a refusal. An answer that does not fit is
// none.
func TestAsk_Answers(t *testing.T) {
	f, _ := openAskFixture(t, mcpserver.Config{})
	for _, tt := range []struct{ action, name, want string }{
		{"accept", "Ann", `accept {"name":"Ann"}`},
		{"decline", "", "decline "},
		{"cancel", "", "cancel "},
		{"accept", strings.Repeat("x", 21), "invalid_arguments"},
		{"maybe", "", "invalid_arguments"},
	} {
		session := f.connect(t, "ann@asker", "/mcp", "2025-11-25", person(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			return &sdk.ElicitResult{Action: tt.action, Content: obj{"name": tt.name}}, nil
		}))
		if got := ask(t, session, "greet"); got != tt.want && !(tt.want == "invalid_arguments" && got == "input_unavailable") {
			t.Errorf("%+v: got %s", tt, got)
		}
	}
}

// Only a client that has declared the capability is asked. The others, and tools that do not
// declare that they ask, get the error.
func TestAsk_NobodyToAsk(t *testing.T) {
	f, a := openAskFixture(t, mcpserver.Config{})
	plain := f.connect(t, "ann@asker", "/mcp", "2025-11-25", nil)
	able := f.connect(t, "ann@asker", "/mcp", "2025-11-25", accept(nil))
	for name, session := range map[string]*sdk.ClientSession{"greet": plain, "midway": plain, "drop": plain, "undeclared": able, "visit": able, "everything": able} {
		if got := ask(t, session, name); got != "input_unavailable" {
			t.Errorf("%s: %s", name, got)
		}
	}
	if got := f.post(t, "ann@asker", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"greet","arguments":{"text":""}}}`, nil); !strings.Contains(got.body, "input_unavailable") {
		t.Errorf("without a session: %s", got.body)
	}
	if a.deleted.Load() != 1 { // by midway, before it asked
		t.Errorf("%d effects", a.deleted.Load())
	}
}

// A question that is not answered is declined when its time is over. Its call goes on, and nothing
// of it is left.
func TestAsk_Unanswered(t *testing.T) {
	f, _ := openAskFixture(t, mcpserver.Config{QuestionTimeout: 20 * time.Millisecond})
	session := f.connect(t, "ann@asker", "/mcp", "2025-11-25", person(func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		<-ctx.Done() // the server withdraws its question
		return nil, ctx.Err()
	}))
	if got := ask(t, session, "greet"); got != "decline " {
		t.Error(got)
	}
}

// A tool that asks in a loop is stopped after 16 questions.
func TestAsk_Loop(t *testing.T) {
	f, _ := openAskFixture(t, mcpserver.Config{})
	var asked atomic.Int32
	session := f.connect(t, "ann@asker", "/mcp", "2025-11-25", person(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		asked.Add(1)
		return &sdk.ElicitResult{Action: "accept"}, nil
	}))
	if got := ask(t, session, "loop"); !strings.Contains(got, "tool_execution_failed") && got != "input_unavailable" || asked.Load() != tool.MaxQuestions {
		t.Errorf("%d questions, then %s", asked.Load(), got)
	}
}

// A tool may ask a person, the client's model and for its roots at once.
func TestAsk_EverythingInSession(t *testing.T) {
	f, _ := openAskFixture(t, mcpserver.Config{})
	o := accept(obj{"name": "Ann"})
	o.CreateMessageHandler = func(_ context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) {
		if r.Params.MaxTokens != 50 || len(r.Params.Messages) != 1 {
			return nil, errors.New("another request")
		}
		return &sdk.CreateMessageResult{Role: "assistant", Model: "m", Content: &sdk.TextContent{Text: "Hello."}}, nil
	}
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, o)
	client.AddRoots(&sdk.Root{URI: "file:///work"})
	session, err := client.Connect(t.Context(), &sdk.StreamableClientTransport{Endpoint: f.url + "/mcp", HTTPClient: &http.Client{Transport: senderTransport{sender: "ann@asker"}}}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	if got := ask(t, session, "everything"); got != `{"name":"Ann"} Hello. file:///work` {
		t.Error(got)
	}
}

// Questions and answers are on record, with who answered.
func TestAsk_Record(t *testing.T) {
	f, _ := openAskFixture(t, mcpserver.Config{})
	session := f.connect(t, "ann@asker", "/mcp", "2025-11-25", accept(obj{"name": "Ann"}))
	ask(t, session, "greet")
	var asked journal.QuestionAsked
	var answered journal.QuestionAnswered
	for e, err := range f.rt.JournalStore().FollowEvents(t.Context(), 0, journal.StoredOnly) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := e.Body.(type) {
		case journal.QuestionAsked:
			asked = b
		case journal.QuestionAnswered:
			answered = b
		}
	}
	if asked.Tool != "greet" || asked.Question != "who" || asked.Kind != tool.PersonInput || asked.Caller == "" || asked.Until.IsZero() {
		t.Errorf("%+v", asked)
	}
	if answered.Call != asked.Call || answered.Action != tool.Accept || string(answered.Content) != `{"name":"Ann"}` || answered.By != asked.Caller {
		t.Errorf("%+v", answered)
	}
}

// round is one call in the version without sessions.
func (f *fixture) round(t testing.TB, sender, name, more, capabilities string) (answer, gjson.Result) {
	t.Helper()
	args := `{}`
	if name == "greet" {
		args = `{"text":""}`
	}
	meta := strings.Replace(statelessMeta, `"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":`+capabilities, 1)
	got := f.post(t, sender, "/mcp", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"`+name+`","arguments":`+args+more+`,`+meta+`}}`, statelessHeader("tools/call", name))
	return got, answerJSON(got)
}

const elicits = `{"elicitation":{}}`

// responses returns the parameters of a repeated call: an answer to one question, and the state.
func responses(name, response, state string) string {
	return `,"inputResponses":{"` + name + `":` + response + `},"requestState":"` + state + `"`
}

// A client without a session gets the questions as the result, and repeats the call with the
// answers. The function runs again with all answers so far, and acts once.
func TestAsk_Rounds(t *testing.T) {
	f, a := openAskFixture(t, mcpserver.Config{})
	_, first := f.round(t, "ann@asker", "drop", "", elicits)
	if first.Get("result.resultType").Str != "input_required" || first.Get("result.inputRequests.sure.params.message").Str != "drop asks: sure?" || first.Get("result.inputRequests.really").Exists() {
		t.Fatalf("first round: %s", first.Raw)
	}
	_, second := f.round(t, "ann@asker", "drop", responses("sure", `{"action":"accept"}`, first.Get("result.requestState").Str), elicits)
	if second.Get("result.inputRequests.really.method").Str != "elicitation/create" || second.Get("result.inputRequests.sure").Exists() {
		t.Fatalf("second round: %s", second.Raw)
	}
	_, third := f.round(t, "ann@asker", "drop", responses("really", `{"action":"accept"}`, second.Get("result.requestState").Str), elicits)
	if third.Get("result.content.0.text").Str != "dropped" || a.deleted.Load() != 1 || a.runs.Load() != 3 {
		t.Errorf("third round: %s; %d effects in %d runs", third.Raw, a.deleted.Load(), a.runs.Load())
	}
}

// The state of a call that changes something is used once. The state of another caller, role, tool
// or of other arguments does not open, and neither does a changed one.
func TestAsk_StateIsBound(t *testing.T) {
	f, a := openAskFixture(t, mcpserver.Config{})
	_, first := f.round(t, "ann@asker", "drop", "", elicits)
	state := first.Get("result.requestState").Str
	_, foreign := f.round(t, "ann@asker", "everything", "", `{"elicitation":{},"sampling":{},"roots":{}}`)
	for name, try := range map[string]struct{ sender, tool, state string }{
		"another caller": {"eve@asker", "drop", state},
		"another role":   {"ann@other", "drop", state},
		"another tool":   {"ann@asker", "drop", foreign.Get("result.requestState").Str},
		"changed":        {"ann@asker", "drop", state[:len(state)-2] + "AA"},
		"longer":         {"ann@asker", "drop", state + "-TAMPERED"},
		"empty data":     {"ann@asker", "drop", "AA"},
	} {
		got, doc := f.round(t, try.sender, try.tool, responses("sure", `{"action":"accept"}`, try.state), elicits)
		if got.status != http.StatusBadRequest || doc.Get("error.code").Int() != -32602 || !strings.Contains(got.body, "requestState") {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
	}
	if _, ok := f.round(t, "ann@asker", "drop", responses("sure", `{"action":"accept"}`, state), elicits); ok.Get("result.inputRequests.really").Exists() == false {
		t.Errorf("its own call: %s", ok.Raw)
	}
	if got, again := f.round(t, "ann@asker", "drop", responses("sure", `{"action":"accept"}`, state), elicits); again.Get("error.code").Int() != -32602 {
		t.Errorf("the second use: %s", got.body)
	}
	if a.deleted.Load() != 0 {
		t.Errorf("%d effects", a.deleted.Load())
	}
}

// The state is too old after the time of the question.
func TestAsk_StateExpires(t *testing.T) {
	f, _ := openAskFixture(t, mcpserver.Config{QuestionTimeout: time.Nanosecond})
	_, first := f.round(t, "ann@asker", "greet", "", elicits)
	if _, late := f.round(t, "ann@asker", "greet", responses("who", `{"action":"accept","content":{"name":"Ann"}}`, first.Get("result.requestState").Str), elicits); late.Get("error.code").Int() != -32602 {
		t.Error(late.Raw)
	}
}

// Answers that were not asked for have no effect. A tool that changes nothing takes an answer in
// advance.
func TestAsk_UnaskedAnswers(t *testing.T) {
	f, a := openAskFixture(t, mcpserver.Config{})
	const yes = `{"action":"accept"}`
	both := `,"inputResponses":{"sure":` + yes + `,"really":` + yes + `}`
	if _, got := f.round(t, "ann@asker", "drop", both, elicits); got.Get("result.inputRequests.sure").Exists() == false {
		t.Errorf("in advance: %s", got.Raw)
	}
	_, first := f.round(t, "ann@asker", "drop", "", elicits)
	if _, got := f.round(t, "ann@asker", "drop", both+`,"requestState":"`+first.Get("result.requestState").Str+`"`, elicits); got.Get("result.inputRequests.really").Exists() == false {
		t.Errorf("with another answer: %s", got.Raw)
	}
	if _, got := f.round(t, "ann@asker", "greet", `,"inputResponses":{"who":{"action":"accept","content":{"name":"Ann"}},"x":{"action":"accept"}}`, elicits); got.Get("result.content.0.text").Str != `accept {"name":"Ann"}` {
		t.Errorf("of a tool that changes nothing: %s", got.Raw)
	}
	if a.deleted.Load() != 0 {
		t.Errorf("%d effects", a.deleted.Load())
	}
}

// A response of the wrong form, or that does not fit the schema, is an error of the protocol.
func TestAsk_WrongResponses(t *testing.T) {
	f, _ := openAskFixture(t, mcpserver.Config{})
	for _, response := range []string{`{"action":"accept","content":{"name":1}}`, `{"action":"maybe"}`, `{"roots":[]}`, `{"action":"accept","content":[]}`} {
		_, first := f.round(t, "ann@asker", "greet", "", elicits)
		got, doc := f.round(t, "ann@asker", "greet", responses("who", response, first.Get("result.requestState").Str), elicits)
		if got.status != http.StatusBadRequest || doc.Get("error.code").Int() != -32602 {
			t.Errorf("%s: %d %s", response, got.status, got.body)
		}
	}
}

// A call that needs what the client has not declared is rejected with the error of the protocol. A
// tool that may have acted when it asks is told that it cannot ask.
func TestAsk_MissingCapability(t *testing.T) {
	f, _ := openAskFixture(t, mcpserver.Config{})
	for name, need := range map[string]string{"greet": `{"elicitation":{"form":{}}}`, "visit": `{"elicitation":{"url":{}}}`, "everything": `{"elicitation":{"form":{}},"roots":{},"sampling":{}}`} {
		got, doc := f.round(t, "ann@asker", name, "", `{}`)
		if got.status != http.StatusBadRequest || doc.Get("error.code").Int() != -32021 {
			t.Errorf("%s: %d %s", name, got.status, got.body)
		}
		for path := range strings.SplitSeq("elicitation.form elicitation.url roots sampling", " ") {
			if want := gjson.Get(need, path).Exists(); doc.Get("error.data.requiredCapabilities."+path).Exists() != want && !(path == "roots" && !want) {
				t.Errorf("%s: %s, want %s", name, got.body, need)
			}
		}
	}
	if _, got := f.round(t, "ann@asker", "midway", "", elicits); !strings.Contains(got.Raw, string(errcode.InputUnavailable)) {
		t.Error(got.Raw)
	}
}

// To a caller without the tool, a call with a state looks like one of a tool that does not exist.
func TestAsk_ForeignToolStaysUnknown(t *testing.T) {
	f, _ := openAskFixture(t, mcpserver.Config{})
	more := responses("sure", `{"action":"accept"}`, "AAAA")
	foreign, _ := f.round(t, "ann@tester", "drop", more, elicits)
	none, _ := f.round(t, "ann@tester", "nope", more, elicits)
	if foreign.status != none.status || strings.ReplaceAll(foreign.body, "drop", "nope") != none.body {
		t.Errorf("got %d %s, want %d %s", foreign.status, foreign.body, none.status, none.body)
	}
}

// The user of a client without a session is asked for the arguments that a prompt lacks.
func TestAsk_PromptArguments(t *testing.T) {
	f := openFixture(t)
	f.registerPrompts(t)
	get := func(more, capabilities string) gjson.Result {
		meta := strings.Replace(statelessMeta, `"io.modelcontextprotocol/clientCapabilities":{}`, `"io.modelcontextprotocol/clientCapabilities":`+capabilities, 1)
		return answerJSON(f.post(t, "ann@reader", "/mcp", `{"jsonrpc":"2.0","id":1,"method":"prompts/get","params":{"name":"trip"`+more+`,`+meta+`}}`, statelessHeader("prompts/get", "trip")))
	}
	first := get("", elicits)
	if request := first.Get("result.inputRequests.arguments.params"); first.Get("result.resultType").Str != "input_required" || request.Get("requestedSchema.required").Raw != `["city"]` || !strings.HasPrefix(request.Get("message").Str, "prompt trip asks: ") {
		t.Fatalf("first round: %s", first.Raw)
	}
	if second := get(`,"inputResponses":{"arguments":{"action":"accept","content":{"city":"Ulm"}}}`, elicits); !strings.HasPrefix(second.Get("result.messages.1.content.text").Str, "To Ulm") {
		t.Errorf("second round: %s", second.Raw)
	}
	for name, got := range map[string]gjson.Result{
		"refused":         get(`,"inputResponses":{"arguments":{"action":"decline"}}`, elicits),
		"not allowed":     get(`,"inputResponses":{"arguments":{"action":"accept","content":{"city":"Rome"}}}`, elicits),
		"of another form": get(`,"inputResponses":{"arguments":{"action":"accept","content":{"city":1}}}`, elicits),
		"not declared":    get("", `{}`),
	} {
		if got.Get("error.code").Int() != -32602 {
			t.Errorf("%s: %s", name, got.Raw)
		}
	}
}
