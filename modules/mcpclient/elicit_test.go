//lint:file-ignore SA1019 the SDK marks sampling, roots and logging as deprecated; clients and servers have them

package mcpclient_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/modules/mcpclient"
	"github.com/rolecall/rolecall/tool"
)

// person is a tool.InputSource that answers all questions in the same way. It keeps what it was
// asked.
type person struct {
	answer tool.Answer
	rounds bool // ends each call with its questions, and answers when it runs again

	mu    sync.Mutex
	asked []string
	memo  json.RawMessage
	given bool
	begun chan struct{} // receives a value when it is asked; nil if no test waits for that
	wait  chan struct{} // holds back the answer; nil answers at once
}

func (p *person) SupportsInput(k tool.InputKind) bool { return k == tool.PersonInput }

func (p *person) LastMemo() json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.memo
}

func (p *person) RequestInput(ctx context.Context, r tool.InputRound) ([]tool.InputResponse, error) {
	p.mu.Lock()
	for _, q := range r.Requests {
		p.asked = append(p.asked, q.Question.Attributed(r.Call.Name)+" "+q.Question.URL)
	}
	if p.rounds && !p.given {
		p.memo, p.given = r.Memo, true
		p.mu.Unlock()
		return nil, errInput
	}
	p.given = false
	p.mu.Unlock()
	if p.begun != nil {
		p.begun <- struct{}{}
		select {
		case <-p.wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	list := make([]tool.InputResponse, len(r.Requests))
	for i := range list {
		list[i].Answer = &p.answer
	}
	return list, nil
}

// errInput ends a call with its questions.
var errInput = errcode.New(errcode.InputRequired, "call again")

func (p *person) questions() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(p.asked, "; ")
}

// askingServer serves tools that ask. Before 2026-07-28 they ask during the call.
func askingServer(t *testing.T, versions ...string) (config mcpclient.Config, server *sdk.Server) {
	config, server, _ = holdingServer(t, versions...)
	return config, server
}

// holdingServer is askingServer with the channel of the tool hold: it sends a value when it is called,
// and returns when it receives one.
func holdingServer(t *testing.T, versions ...string) (config mcpclient.Config, server *sdk.Server, held chan struct{}) {
	t.Helper()
	server = sdk.NewServer(&sdk.Implementation{Name: "asking", Version: "1"}, &sdk.ServerOptions{SupportedProtocolVersions: versions})
	schema := json.RawMessage(`{"type":"object","properties":{"city":{"type":"string","default":"Ulm"}}}`)
	calls := 0
	held = make(chan struct{})
	add := func(name string, fn func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		server.AddTool(&sdk.Tool{Name: name, Description: "d", InputSchema: anyObject}, fn)
	}
	elicit := func(ctx context.Context, r *sdk.CallToolRequest, p *sdk.ElicitParams) (*sdk.CallToolResult, error) {
		got, err := r.Session.Elicit(ctx, p)
		if err != nil {
			return textResult("error: " + err.Error()), nil
		}
		return textResult(fmt.Sprintf("%s %v", got.Action, got.Content)), nil
	}
	add("city", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return elicit(ctx, r, &sdk.ElicitParams{Message: "rolecall asks: which\u202e city?", RequestedSchema: schema})
	})
	add("page", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return elicit(ctx, r, &sdk.ElicitParams{Message: "Open it.", URL: "https://example.com/", ElicitationID: "1"})
	})
	add("script", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return elicit(ctx, r, &sdk.ElicitParams{Message: "Open it.", URL: "javascript:alert(1)", ElicitationID: "1"})
	})
	add("hidden", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return elicit(ctx, r, &sdk.ElicitParams{Message: "Fill in.", RequestedSchema: json.RawMessage(`{"type":"object","properties":{"a":{"type":"string","title":"Na\u202eme"}}}`)})
	})
	add("loop", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		for i := 0; ; i++ {
			got, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Again?", RequestedSchema: schema})
			if err != nil || got.Action != "accept" || i == 50 {
				return textResult(fmt.Sprintf("%d answers", i)), nil
			}
		}
	})
	add("hold", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		held <- struct{}{}
		<-held
		return textResult("held"), nil
	})
	add("later", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		calls++
		switch {
		case r.Params.RequestState == "":
			return &sdk.CallToolResult{RequestState: "one", InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{Message: "First?", RequestedSchema: schema}}}, nil
		case r.Params.RequestState == "one":
			return &sdk.CallToolResult{RequestState: "two", InputRequests: sdk.InputRequestMap{"q": &sdk.ElicitParams{Message: "Second?", RequestedSchema: schema}}}, nil
		}
		return textResult(fmt.Sprintf("%v after %d calls", r.Params.InputResponses["q"].(*sdk.ElicitResult).Content, calls)), nil
	})
	add("think", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"m": &sdk.CreateMessageParams{MaxTokens: 1}}}, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: len(versions) == 0}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	return mcpclient.Config{Name: "far", URL: web.URL}, server, held
}

// callAs calls a tool of the server far with a person behind the call.
func (fx *fixture) callAs(ctx context.Context, p tool.InputSource, name string) string {
	fx.Helper()
	call := tool.Call{Name: "far__" + name, Args: json.RawMessage(`{}`)}
	return fx.callWith(tool.BindInput(tool.WithInput(ctx, p), call, fx.handle(call.Name).Definition), call.Name, `{}`)
}

// A server with a session may ask the person behind a call. The question names the server, and its
// answer has the defaults.
func TestElicit_InSession(t *testing.T) {
	fx := newFixture(t)
	c, _ := askingServer(t, "2025-11-25")
	fx.load(c)
	p := &person{answer: tool.Answer{Action: tool.Accept, Content: json.RawMessage(`{"x":1}`)}}
	fx.want(fx.callAs(t.Context(), p, "city"), "accept map[city:Ulm]")
	fx.want(fx.callAs(t.Context(), p, "page"), "accept map[]")
	fx.want(p.questions(), "far__city (MCP server far) asks: rolecall asks: which city? ")
	fx.want(p.questions(), "far__page (MCP server far) asks: Open it. https://example.com/")
	fx.want(fx.callAs(t.Context(), p, "script"), "error: ")
	if strings.Contains(p.questions(), "javascript") {
		t.Error("a person was shown a script")
	}
	fx.want(fx.callAs(t.Context(), p, "hidden"), "error: ")
	if strings.Contains(p.questions(), "Fill in") {
		t.Error("a person was shown invisible characters")
	}
	fx.want(fx.callAs(t.Context(), p, "loop"), "16 answers")
	fx.want(fx.callAs(t.Context(), &person{answer: tool.Answer{Action: tool.Cancel}}, "city"), "cancel map[]")
	fx.want(fx.callAs(t.Context(), nil, "city"), "decline map[]")
}

// A server without a session ends its call with questions. The call continues with the state of the
// server, also when rolecall itself has ended the call meanwhile: no request is sent twice.
func TestElicit_Rounds(t *testing.T) {
	fx := newFixture(t)
	c, _ := askingServer(t)
	fx.load(c)
	p := &person{answer: tool.Answer{Action: tool.Accept}}
	fx.want(fx.callAs(t.Context(), p, "later"), "map[city:Ulm] after 3 calls")
	fx.want(p.questions(), "far__later (MCP server far) asks: First? ; far__later (MCP server far) asks: Second?")
	fx.want(fx.callAs(t.Context(), p, "think"), "input_unavailable")

	ended := &person{answer: tool.Answer{Action: tool.Accept}, rounds: true}
	fx.want(fx.callAs(t.Context(), ended, "later"), "input_required")
	fx.want(fx.callAs(t.Context(), ended, "later"), "input_required")
	fx.want(fx.callAs(t.Context(), ended, "later"), "map[city:Ulm] after 6 calls")
}

// While several calls are in progress, the server does not say which of them asks, so its question
// is declined. The time of a question does not count to the timeout of its call.
func TestElicit_OneCallOnly(t *testing.T) {
	fx := newFixture(t)
	c, _ := askingServer(t, "2025-11-25")
	c.Timeout = 300 * time.Millisecond
	fx.load(c)
	p := &person{answer: tool.Answer{Action: tool.Accept}, begun: make(chan struct{}, 1), wait: make(chan struct{})}
	first := make(chan string, 1)
	go func() { first <- fx.callAs(t.Context(), p, "city") }()
	<-p.begun
	other := &person{answer: tool.Answer{Action: tool.Accept}}
	fx.want(fx.callAs(t.Context(), other, "city"), "decline")
	if other.questions() != "" {
		t.Errorf("another person was asked %s", other.questions())
	}
	<-time.After(2 * c.Timeout)
	close(p.wait)
	fx.want(<-first, "accept map[city:Ulm]")
}

// A question is declined while another call is in progress that has not asked.
func TestElicit_BesideAnotherCall(t *testing.T) {
	fx := newFixture(t)
	c, _, held := holdingServer(t, "2025-11-25")
	fx.load(c)
	p := &person{answer: tool.Answer{Action: tool.Accept}}
	first := make(chan string, 1)
	go func() { first <- fx.callAs(t.Context(), p, "hold") }()
	<-held
	fx.want(fx.callAs(t.Context(), p, "city"), "decline")
	held <- struct{}{}
	fx.want(<-first, "held")
	if p.questions() != "" {
		t.Errorf("a person was asked %s", p.questions())
	}
}

// What a server asks while it gets a prompt or reads a resource is declined. It does not reach the
// person behind the only call of a tool.
func TestElicit_OfPromptOrResource(t *testing.T) {
	fx := newFixture(t)
	c, server, held := holdingServer(t, "2025-11-25")
	ask := func(ctx context.Context, session *sdk.ServerSession) string {
		got, err := session.Elicit(ctx, &sdk.ElicitParams{Message: "Which account?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
		if err != nil {
			return err.Error()
		}
		return got.Action
	}
	server.AddPrompt(&sdk.Prompt{Name: "account"}, func(ctx context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Description: ask(ctx, r.Session), Messages: []*sdk.PromptMessage{}}, nil
	})
	server.AddResource(&sdk.Resource{URI: "memo:a", Name: "a"}, func(ctx context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "memo:a", Text: ask(ctx, r.Session)}}}, nil
	})
	fx.load(c)
	p := &person{answer: tool.Answer{Action: tool.Accept}}
	first := make(chan string, 1)
	go func() { first <- fx.callAs(t.Context(), p, "hold") }()
	<-held
	fx.want(fx.call("far__get_prompt", `{"name":"account"}`), "decline")
	fx.want(fx.call("far__read_resource", `{"uri":"memo:a"}`), "decline")
	held <- struct{}{}
	fx.want(<-first, "held")
	if p.questions() != "" {
		t.Errorf("a person was asked %s", p.questions())
	}
	fx.want(fx.call("far__get_prompt", `{"name":"account"}`), "decline")
}

// A question that belongs to no call is declined.
func TestElicit_WithoutCall(t *testing.T) {
	fx := newFixture(t)
	c, server := askingServer(t, "2025-11-25")
	fx.load(c)
	asked := 0
	for session := range server.Sessions() {
		asked++
		got, err := session.Elicit(t.Context(), &sdk.ElicitParams{Message: "Anybody?"})
		if err != nil || got.Action != "decline" {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if asked == 0 {
		t.Error("there is no session")
	}
}

// A server that asks all the time does not fill the log.
func TestElicit_FloodIsNotLogged(t *testing.T) {
	fx := newFixture(t)
	c, server := askingServer(t, "2025-11-25")
	var log buffer.SyncBuffer
	c.Host.Log = slog.New(slog.NewTextHandler(&log, nil))
	fx.load(c)
	for session := range server.Sessions() {
		for range 300 {
			if _, err := session.Elicit(t.Context(), &sdk.ElicitParams{Message: "Anybody?"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := strings.Count(log.String(), "\n"); n == 0 || n > 110 {
		t.Errorf("300 questions are %d lines of the log", n)
	}
}

// A server may still work on a call that was cancelled. Its question does not reach the person behind
// a later call.
func TestElicit_OfCancelledCall(t *testing.T) {
	fx := newFixture(t)
	c, server, held := holdingServer(t, "2025-11-25")
	begun, goOn, declined := make(chan struct{}), make(chan struct{}), make(chan string)
	server.AddTool(&sdk.Tool{Name: "late", Description: "d", InputSchema: anyObject}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		begun <- struct{}{}
		<-goOn
		got, err := r.Session.Elicit(context.Background(), &sdk.ElicitParams{Message: "Delete it?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
		if err != nil {
			declined <- err.Error()
			return nil, err
		}
		declined <- got.Action
		return textResult("late"), nil
	})
	fx.load(c)
	ctx, cancel := context.WithCancel(t.Context())
	ended, other := make(chan string, 1), make(chan string, 1)
	go func() { ended <- fx.callAs(ctx, &person{answer: tool.Answer{Action: tool.Accept}}, "late") }()
	<-begun
	cancel()
	<-ended
	p := &person{answer: tool.Answer{Action: tool.Accept}}
	go func() { other <- fx.callAs(t.Context(), p, "hold") }()
	<-held
	close(goOn)
	if got := <-declined; got != "decline" {
		t.Errorf("the question was answered with %s", got)
	}
	held <- struct{}{}
	fx.want(<-other, "held")
	if p.questions() != "" {
		t.Errorf("another person was asked: %s", p.questions())
	}
}

// After a question was declined because of a cancelled call, the connection is renewed as soon as no call is in
// progress and it is not new any more. Then questions reach persons again, and what the old session asks reaches
// none.
func TestElicit_ConnectionIsRenewed(t *testing.T) {
	for _, tt := range []struct {
		after time.Duration
		want  string
	}{{time.Nanosecond, "accept map[city:Ulm]"}, {time.Hour, "decline map[]"}} {
		fx := newFixture(t)
		c, server, held := holdingServer(t, "2025-11-25")
		c.RenewAfter = tt.after
		fx.load(c)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan string, 1)
		go func() { ended <- fx.callAs(ctx, &person{answer: tool.Answer{Action: tool.Accept}}, "hold") }()
		<-held
		cancel()
		<-ended
		var old []*sdk.ServerSession
		for session := range server.Sessions() {
			old = append(old, session)
		}
		p := &person{answer: tool.Answer{Action: tool.Accept}}
		fx.want(fx.callAs(t.Context(), p, "city"), "decline map[]")
		fx.want(fx.callAs(t.Context(), p, "city"), tt.want)
		if renewed := tt.after < time.Hour; renewed != (p.questions() != "") {
			t.Errorf("after %v a person was asked %q", tt.after, p.questions())
		}
		for _, session := range old {
			late, stop := context.WithTimeout(t.Context(), 100*time.Millisecond)
			got, err := session.Elicit(late, &sdk.ElicitParams{Message: "Late?", RequestedSchema: json.RawMessage(`{"type":"object","properties":{}}`)})
			stop()
			if err == nil && got.Action != "decline" {
				t.Errorf("a question of the old session was answered with %s", got.Action)
			}
		}
		held <- struct{}{}
	}
}
