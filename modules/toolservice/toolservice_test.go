package toolservice_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules/toolservice"
	"github.com/rolecall/rolecall/modules/toolservice/broker"
	"github.com/rolecall/rolecall/modules/toolservice/protocol"
	"github.com/rolecall/rolecall/tool"
)

// fakeBroker is a broker in memory: answer is called with each request.
type fakeBroker struct {
	answer   func(m broker.Message, respond func(broker.Delivery))
	err      error // of Open
	opened   atomic.Int32
	sends    atomic.Int32
	released atomic.Int32
	drop     func() // set by Open: the connection is lost
	refuse   atomic.Bool
	tooLarge atomic.Bool
}

func (b *fakeBroker) Open(_ context.Context, _ broker.Queues, receive func(broker.Delivery)) (broker.Link, error) {
	b.opened.Add(1)
	if b.err != nil {
		return nil, b.err
	}
	b.drop = func() { receive(broker.Delivery{Err: broker.ErrUnavailable}) }
	return &fakeLink{b, receive}, nil
}
func (b *fakeBroker) connect() (broker.Driver, func() error, error) {
	return b, func() error { b.released.Add(1); return nil }, nil
}
func (b *fakeBroker) MaxBytes() int { return 10_000 }
func (b *fakeBroker) Close() error  { return nil }

type fakeLink struct {
	*fakeBroker
	receive func(broker.Delivery)
}

func (l *fakeLink) Close() error { return nil }

func (l *fakeLink) Send(_ context.Context, m broker.Message) (bool, error) {
	l.sends.Add(1)
	if l.refuse.Load() {
		return false, broker.ErrUnavailable
	}
	if l.tooLarge.Load() {
		return false, broker.ErrTooLarge
	}
	l.answer(m, l.receive)
	return true, nil
}

// text returns a delivery with the last response of a request.
func text(id, body string) broker.Delivery {
	return broker.Delivery{Message: broker.Message{ID: id, Body: []byte(body)}}
}

// newTool returns the only tool of a service.
func newTool(t *testing.T, b *fakeBroker, effect tool.Effect, change func(*toolservice.Config)) (tool.Tool, *toolservice.Module) {
	t.Helper()
	topic, err := protocol.ParseTopic("request:tg:joke")
	if err != nil {
		t.Fatal(err)
	}
	c := toolservice.Config{
		Service: toolservice.Service{ID: "joke-service", Request: topic, Timeout: time.Minute, MaxResponseBytes: 1000},
		Tools:   []toolservice.Tool{{Definition: tool.Definition{Name: "tell-joke", Effect: effect}, Config: json.RawMessage(`{"style":"pun"}`)}},
		Broker:  b.connect,
	}
	if change != nil {
		change(&c)
	}
	m, err := toolservice.New(c)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Provision(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m.ToolGroups()[0].Tools[0], m
}

// ann is a call for an external caller.
func ann() tool.Call {
	return tool.Call{ID: "call-1", Args: json.RawMessage(`{"topic": "llamas"}`), By: identity.ByAgent("agent-1"), Owner: "user:ann@teller"}
}

// outcome returns the text of a result, or the code and message of its error.
func outcome(r tool.Result, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	if !r.IsError {
		return r.Text
	}
	var failure struct{ Error, Message string }
	_ = json.Unmarshal(r.Structured, &failure) // Failure wrote it
	return failure.Error + ": " + failure.Message
}

func TestCall_Outcomes(t *testing.T) {
	type respond = func(broker.Delivery)
	const end = `{"error":null,"response":"funny","end_of_stream":true}`
	for _, c := range []struct {
		name   string
		effect tool.Effect
		answer func(m broker.Message, respond respond)
		want   string
	}{
		{"one message", 0, func(m broker.Message, r respond) { r(text(m.ID, end)) }, "funny"},
		{"invisible characters", 0, func(m broker.Message, r respond) {
			r(text(m.ID, `{"response":"fun\u001b[31mny\udb40\udc41\u202e","end_of_stream":true}`))
		}, "fun[31mny"},
		{"invisible characters in an error", 0, func(m broker.Message, r respond) {
			r(text(m.ID, `{"error":{"type":"x","message":"no\udb40\udc41 fun"}}`))
		}, "tool_execution_failed: no fun"},
		{"pieces", 0, func(m broker.Message, r respond) {
			r(text(m.ID, `{"response":"very ","end_of_stream":false}`))
			r(text(m.ID, `{"response":""}`))
			r(text(m.ID, end))
		}, "very funny"},
		{"twice", 0, func(m broker.Message, r respond) {
			r(text(m.ID, end))
			r(text(m.ID, `{"response":"again","end_of_stream":true}`))
		}, "funny"},
		{"with the id of another", 0, func(m broker.Message, r respond) {
			r(text("other", `{"response":"forged","end_of_stream":true}`))
			r(text("", `{"response":"forged","end_of_stream":true}`))
			r(text(m.ID, end))
		}, "funny"},
		{"not a text", 0, func(m broker.Message, r respond) {
			r(text(m.ID, `{"response":{"a":[1]},"end_of_stream":true,"extra":1}`))
		}, `{"a":[1]}`},
		{"null", 0, func(m broker.Message, r respond) { r(text(m.ID, `{"response":null,"end_of_stream":true}`)) }, ""},
		{"error", 0, func(m broker.Message, r respond) {
			r(text(m.ID, `{"error":{"type":"tool-service-error","message":"no \"jokes\""},"response":"","end_of_stream":true}`))
		}, `tool_execution_failed: no "jokes"`},
		{"error without a message", 0, func(m broker.Message, r respond) { r(text(m.ID, `{"error":{}}`)) }, "tool_execution_failed: the tool service failed without a message"},
		{"no JSON", 0, func(m broker.Message, r respond) { r(text(m.ID, "funny")) },
			`tool_execution_failed: the response of the tool service "joke-service" cannot be read: the response is not the JSON that a tool service writes; it may have changed something`},
		{"no JSON, read only", tool.ReadOnly, func(m broker.Message, r respond) { r(text(m.ID, "[]")) },
			`tool_execution_failed: the response of the tool service "joke-service" cannot be read: the response is not the JSON that a tool service writes`},
		{"too large", tool.ReadOnly, func(m broker.Message, r respond) {
			r(text(m.ID, `{"response":"`+strings.Repeat("x", 1001)+`","end_of_stream":true}`))
		},
			`result_too_large: the response of the tool service "joke-service" is larger than 1000 bytes`},
		{"100 MB", 0, func(m broker.Message, r respond) { r(text(m.ID, strings.Repeat("x", 100<<20))) },
			`result_too_large: the response of the tool service "joke-service" is larger than 1000 bytes; it may have changed something`},
		{"endless pieces", tool.ReadOnly, func(m broker.Message, r respond) {
			for range 200 {
				r(text(m.ID, `{"response":"0123456789"}`))
			}
		}, `result_too_large: the response of the tool service "joke-service" is larger than 1000 bytes`},
		{"no service", 0, func(m broker.Message, r respond) {
			r(broker.Delivery{Message: broker.Message{ID: m.ID}, Err: broker.ErrNoService})
		}, `tool_unavailable: tell-joke did not run: no service receives requests of the tool service "joke-service"; it may be called again later`},
		{"token rejected", 0, func(m broker.Message, r respond) { r(text(m.ID, `{"error":{"type":"forbidden"}}`)) },
			`tool_unavailable: the tool service "joke-service" rejected the request and did nothing: the call token is not valid; the operator compares its key and its clock`},
		{"token expired", 0, func(m broker.Message, r respond) {
			r(text(m.ID, `{"error":{"type":"forbidden","message":"the call token\nhas expired"}}`))
		},
			`tool_unavailable: the tool service "joke-service" rejected the request and did nothing: the call token has expired; the operator compares its key and its clock`},
	} {
		t.Run(c.name, func(t *testing.T) {
			joke, _ := newTool(t, &fakeBroker{answer: c.answer}, c.effect, nil)
			if got := outcome(joke.Call(t.Context(), ann())); got != c.want {
				t.Errorf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestCall_SendsUserConfigAndArguments(t *testing.T) {
	for owner, user := range map[string]string{"user:ann@teller": "ann", "01234567-task": "operator", "user:a@b@teller": "a@b", "": "operator"} {
		var got broker.Message
		joke, _ := newTool(t, &fakeBroker{answer: func(m broker.Message, respond func(broker.Delivery)) {
			got = m
			respond(text(m.ID, `{"response":"x","end_of_stream":true}`))
		}}, 0, nil)
		call := ann()
		call.Owner = owner
		outcome(joke.Call(t.Context(), call))
		want := map[string]string{"user": user, "config": `{"style":"pun"}`, "arguments": `{"topic": "llamas"}`}
		var body map[string]string
		if err := json.Unmarshal(got.Body, &body); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, body); diff != "" || got.Token != "" {
			t.Errorf("owner %q: token %q (-want +got):\n%s", owner, got.Token, diff)
		}
	}
}

func TestCall_TokenSaysWhoCalls(t *testing.T) {
	const key = "the key of the service"
	var got broker.Message
	joke, _ := newTool(t, &fakeBroker{answer: func(m broker.Message, respond func(broker.Delivery)) {
		got = m
		respond(text(m.ID, `{"response":"x","end_of_stream":true}`))
	}}, 0, func(c *toolservice.Config) {
		c.Organization = func() string { return "org-1" }
		c.RoleOf = func(identity.Principal) string { return "teller" }
		c.Keys = func() ([]string, error) { return []string{key, "the old key"}, nil }
	})
	outcome(joke.Call(t.Context(), ann()))
	r, err := protocol.DecodeRequest(got.Body)
	if err != nil {
		t.Fatal(err)
	}
	token, err := protocol.VerifyToken(got.Token, "joke-service", r, time.Now(), key)
	if err != nil {
		t.Fatal(err)
	}
	if until := time.Until(token.Expires); until < 50*time.Second || until > 62*time.Second {
		t.Errorf("the token expires in %v, the call in a minute", until)
	}
	token.Digest, token.ConfigDigest, token.Expires = "", "", time.Time{}
	want := protocol.Token{Service: "joke-service", Organization: "org-1", Caller: "ann", Agent: "agent-1", Role: "teller", Tool: "tell-joke", CallID: "call-1"}
	if diff := cmp.Diff(want, token); diff != "" {
		t.Errorf("token (-want +got):\n%s", diff)
	}
}

// A service without a key gets no token, and one whose keys have changed gets a token of the new ones.
func TestCall_KeysChange(t *testing.T) {
	var got broker.Message
	var keys []string
	joke, _ := newTool(t, &fakeBroker{answer: func(m broker.Message, respond func(broker.Delivery)) {
		got = m
		respond(text(m.ID, `{"response":"x","end_of_stream":true}`))
	}}, 0, func(c *toolservice.Config) { c.Keys = func() ([]string, error) { return keys, nil } })
	for _, keys = range [][]string{nil, {"old key"}, {"new key", "old key"}, {"new key"}, nil} {
		outcome(joke.Call(t.Context(), ann()))
		r, err := protocol.DecodeRequest(got.Body)
		if err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"old key", "new key"} {
			_, err := protocol.VerifyToken(got.Token, "joke-service", r, time.Now(), key)
			if (err == nil) != slices.Contains(keys, key) || len(keys) == 0 && got.Token != "" {
				t.Errorf("with the keys %q, a token for %q: %q, %v", keys, key, got.Token, err)
			}
		}
	}
}

func TestCall_WithoutReadableKeyDoesNotRun(t *testing.T) {
	b := &fakeBroker{}
	joke, _ := newTool(t, b, 0, func(c *toolservice.Config) {
		c.Keys = func() ([]string, error) { return nil, errors.New("disk") }
	})
	if got := outcome(joke.Call(t.Context(), ann())); !strings.HasPrefix(got, "tool_unavailable: tell-joke did not run: the keys of") || b.sends.Load() != 0 {
		t.Errorf("got %q after %d sends", got, b.sends.Load())
	}
}

func TestCall_BusyServiceIsAskedAgainWithDelays(t *testing.T) {
	const busy = `{"error":{"type":"too-many-requests","message":"later"},"end_of_stream":true}`
	synctest.Test(t, func(t *testing.T) {
		var times []time.Duration
		start := time.Now()
		b := &fakeBroker{}
		b.answer = func(m broker.Message, respond func(broker.Delivery)) {
			times = append(times, time.Since(start))
			if len(times) < 4 {
				respond(text(m.ID, busy))
				return
			}
			respond(text(m.ID, `{"response":"at last","end_of_stream":true}`))
		}
		joke, _ := newTool(t, b, 0, nil)
		if got := outcome(joke.Call(t.Context(), ann())); got != "at last" || times[1] < 50*time.Millisecond || times[3] < 350*time.Millisecond {
			t.Errorf("got %q, requests at %v", got, times)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		b := &fakeBroker{answer: func(m broker.Message, respond func(broker.Delivery)) { respond(text(m.ID, busy)) }}
		joke, _ := newTool(t, b, 0, nil)
		want := `tool_unavailable: the tool service "joke-service" has too much to do and did nothing; call again later`
		if got := outcome(joke.Call(t.Context(), ann())); got != want || b.sends.Load() > 10 {
			t.Errorf("got %q after %d requests", got, b.sends.Load())
		}
	})
}

func TestCall_SilentServiceTimesOut(t *testing.T) {
	for effect, want := range map[tool.Effect]string{
		tool.Mutating:   `tool_interrupted: tell-joke was sent to the tool service "joke-service" and its outcome is unknown: verify the effect before retrying`,
		tool.Idempotent: `tool_timeout: the tool service "joke-service" did not answer within 1m0s; it is safe to call tell-joke again`,
		tool.ReadOnly:   `tool_timeout: the tool service "joke-service" did not answer within 1m0s; it is safe to call tell-joke again`,
	} {
		synctest.Test(t, func(t *testing.T) {
			var late func()
			joke, _ := newTool(t, &fakeBroker{answer: func(m broker.Message, respond func(broker.Delivery)) {
				late = func() { respond(text(m.ID, `{"response":"late","end_of_stream":true}`)) }
			}}, effect, nil)
			start := time.Now()
			if got := outcome(joke.Call(t.Context(), ann())); got != want || time.Since(start) != time.Minute {
				t.Errorf("%s: got %q after %v", effect, got, time.Since(start))
			}
			late() // is dropped
		})
	}
}

func TestCall_LostConnection(t *testing.T) {
	for effect, want := range map[tool.Effect]string{
		tool.Mutating: `tool_interrupted: tell-joke was sent to the tool service "joke-service" and its outcome is unknown: verify the effect before retrying`,
		tool.ReadOnly: `tool_unavailable: the response of the tool service "joke-service" was lost; it is safe to call tell-joke again`,
	} {
		b := &fakeBroker{}
		b.answer = func(broker.Message, func(broker.Delivery)) { b.drop() }
		joke, _ := newTool(t, b, effect, nil)
		if got := outcome(joke.Call(t.Context(), ann())); got != want {
			t.Errorf("%s: got %q", effect, got)
		}
	}
	b := &fakeBroker{}
	b.refuse.Store(true)
	joke, _ := newTool(t, b, tool.Mutating, nil)
	const unsent = `tool_unavailable: tell-joke did not run: the broker of the tool service "joke-service" cannot be reached`
	if got := outcome(joke.Call(t.Context(), ann())); got != unsent {
		t.Errorf("not sent: got %q", got)
	}
	unreachable := &fakeBroker{err: fmt.Errorf("%w: refused", broker.ErrUnavailable)}
	joke, _ = newTool(t, unreachable, tool.Mutating, nil)
	for range 2 {
		if got := outcome(joke.Call(t.Context(), ann())); got != unsent {
			t.Errorf("no broker: got %q", got)
		}
	}
	if unreachable.opened.Load() != 2 {
		t.Errorf("a later call does not try again")
	}
}

func TestCall_CanceledCallLeavesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	var respond func(broker.Delivery)
	var id string
	joke, _ := newTool(t, &fakeBroker{answer: func(m broker.Message, r func(broker.Delivery)) {
		respond, id = r, m.ID
		cancel()
	}}, 0, nil)
	if got := outcome(joke.Call(ctx, ann())); got != "error: call tell-joke: context canceled" {
		t.Errorf("got %q", got)
	}
	respond(text(id, `{"response":"late","end_of_stream":true}`)) // is dropped
}

func TestCall_RequestLargerThanTheBrokerAccepts(t *testing.T) {
	b := &fakeBroker{}
	joke, _ := newTool(t, b, 0, nil)
	call := ann()
	call.Args = json.RawMessage(`{"topic":"` + strings.Repeat("x", 10_000) + `"}`)
	if got := outcome(joke.Call(t.Context(), call)); !strings.HasPrefix(got, "invalid_arguments: the request has 100") || b.sends.Load() != 0 {
		t.Errorf("got %.200q", got)
	}
}

// The broker may accept less than it said before the connection.
func TestCall_BrokerRejectsTheSize(t *testing.T) {
	b := &fakeBroker{}
	b.tooLarge.Store(true)
	joke, _ := newTool(t, b, tool.Mutating, nil)
	want := `invalid_arguments: tell-joke did not run: the request is larger than the broker of the tool service "joke-service" accepts; send less`
	if got := outcome(joke.Call(t.Context(), ann())); got != want {
		t.Errorf("got %q", got)
	}
}

// A caller whose calls fill the queue is told so. Another caller waits and is answered.
func TestCall_QueueIsFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		joke, _ := newTool(t, &fakeBroker{answer: func(broker.Message, func(broker.Delivery)) {}}, 0, func(c *toolservice.Config) {
			c.Service.MaxConcurrent, c.Service.Timeout = 1, time.Hour
		})
		const count = 2000
		outcomes := make(chan string, count)
		for range count {
			go func() { outcomes <- outcome(joke.Call(ctx, ann())) }()
		}
		synctest.Wait()
		want := `rate_limited: tell-joke did not run: too many calls wait for the tool service "joke-service" already; wait for your own calls to finish, then call again`
		if rejected := len(outcomes); rejected != count-1-1024 {
			t.Errorf("%d of %d calls were rejected; 1024 may wait", rejected, count)
		}
		for range len(outcomes) {
			if got := <-outcomes; got != want {
				t.Fatalf("got %q", got)
			}
		}
	})
}

func TestCall_ConcurrencyIsBoundedAndFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var responses []func()
		b := &fakeBroker{answer: func(m broker.Message, respond func(broker.Delivery)) {
			responses = append(responses, func() { respond(text(m.ID, `{"response":"x","end_of_stream":true}`)) })
		}}
		joke, _ := newTool(t, b, 0, func(c *toolservice.Config) { c.Service.MaxConcurrent = 4 })
		done := make(chan string, 100)
		start := func(owner string) {
			go func() {
				call := ann()
				call.Owner = owner
				outcome(joke.Call(t.Context(), call))
				done <- owner
			}()
			synctest.Wait()
		}
		for range 20 {
			start("user:greedy@r")
		}
		start("user:modest@r")
		if len(responses) != 3 { // half of four for one owner, and the first of another
			t.Errorf("%d requests were sent at once, want 3", len(responses))
		}
		responses[2]()
		if owner := <-done; owner != "user:modest@r" {
			t.Errorf("%s was answered first", owner)
		}
		for answered := 0; answered < 20; synctest.Wait() {
			for i, respond := range responses {
				if respond != nil && i != 2 {
					responses[i] = nil
					respond()
					<-done
					answered++
					synctest.Wait()
				}
			}
		}
	})
}

func TestModule_ClosedModuleRejectsCalls(t *testing.T) {
	b := &fakeBroker{}
	joke, m := newTool(t, b, 0, nil)
	if err := m.Close(); err != nil {
		t.Fatal(err)
	}
	if got := outcome(joke.Call(t.Context(), ann())); !strings.HasPrefix(got, "tool_unavailable: ") || b.opened.Load() != 0 || b.released.Load() != 1 {
		t.Errorf("got %q", got)
	}
}

func TestNew_RejectsInvalid(t *testing.T) {
	topic, _ := protocol.ParseTopic("request:tg:joke")
	for _, c := range []toolservice.Config{
		{},
		{Service: toolservice.Service{ID: "operator", Request: topic}, Broker: (&fakeBroker{}).connect},
		{Service: toolservice.Service{ID: "a"}, Broker: (&fakeBroker{}).connect},
		{Service: toolservice.Service{ID: "a", Request: topic}},
		{Service: toolservice.Service{ID: "a", Request: topic}, Broker: (&fakeBroker{}).connect, Tools: []toolservice.Tool{{Definition: tool.Definition{Name: "a b"}}}},
	} {
		if _, err := toolservice.New(c); errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
