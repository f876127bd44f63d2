package openai_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/provider"
)

const piece = `data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}` + "\n\n"

// wantNoKey checks that nothing of an error holds the key.
func wantNoKey(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), secret) {
			t.Errorf("the key stands in %v", e)
		}
	}
}

// A status or an error object, before an answer or in the middle of it, whole
// or streamed.
func TestAnswer_Errors(t *testing.T) {
	const lasting, passing = false, true
	failed := func(object string) string { return piece + `data: {"error":` + object + "}\n\n" }
	for _, c := range []struct {
		name   string
		status int
		body   string
		code   errcode.Code
		again  bool
		says   string
	}{
		{"bad request", 400, `{"error":{"message":"Invalid schema"}}`, errcode.LLMCallFailed, lasting, "Invalid schema"},
		{"wrong key", 401, `{"error":{"message":"Incorrect API key provided: ` + secret + `"}}`, errcode.LLMCallFailed, lasting, "***"},
		{"forbidden", 403, `{"error":{"message":"Country"}}`, errcode.LLMCallFailed, lasting, "Country"},
		{"no such model", 404, `{"error":{"message":"model not found"}}`, errcode.LLMCallFailed, lasting, "not found"},
		{"too large", 413, ``, errcode.ContextExceeded, lasting, "length"},
		{"too often", 429, `{"error":{"message":"Rate limit"}}`, errcode.RateLimited, passing, "Rate limit"},
		{"server error", 500, `x`, errcode.LLMCallFailed, passing, "x"},
		{"overloaded", 529, `x`, errcode.LLMCallFailed, passing, "529"},
		{"too long", 400, `{"error":{"message":"m","code":"context_length_exceeded"}}`, errcode.ContextExceeded, lasting, "length"},
		{"an error in the middle", 200, failed(`{"message":"The server had an error","type":"server_error","code":null}`), errcode.LLMCallFailed, passing, "had an error"},
		{"an error of no kind", 200, failed(`"out of memory ` + secret + `"`), errcode.LLMCallFailed, passing, "out of memory ***"},
		{"an error with a code", 200, failed(`{"code":502,"message":"Provider disconnected","metadata":{}}`), errcode.LLMCallFailed, passing, "disconnected"},
		{"a limit in the middle", 200, failed(`{"code":"rate_limit_exceeded","message":"slow down"}`), errcode.RateLimited, passing, "slow down"},
		{"too long, said in the middle", 200, failed(`{"code":400,"message":"exceeds the available context size","type":"exceed_context_size_error"}`), errcode.ContextExceeded, lasting, "context size"},
		{"a refusal of the request in the middle", 200, failed(`{"type":"BadRequestError","message":"no tools here"}`), errcode.LLMCallFailed, lasting, "no tools"},
		{"an error of older vLLM", 200, `data: {"object":"error","message":"no such thing","type":"BadRequestError","code":400}` + "\n\n", errcode.LLMCallFailed, lasting, "no such thing"},
		{"an error in place of a stream", 200, ` {"error":{"code":500,"message":"loading"}}`, errcode.LLMCallFailed, passing, "loading"},
		{"an error as the way it ended", 200, piece + `data: {"choices":[{"delta":{},"finish_reason":"error"}]}` + "\n\ndata: [DONE]\n\n", errcode.LLMCallFailed, passing, "gave up"},
		{"no room at DeepSeek", 200, piece + `data: {"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}` + "\n\n", errcode.LLMCallFailed, passing, "gave up"},
		{"an end in the middle", 200, piece, errcode.LLMCallFailed, passing, "broke off in the middle"},
		{"nothing at all", 200, ``, errcode.LLMCallFailed, passing, "broke off in the middle"},
		{"a piece that is no JSON", 200, piece + "data: {\"choices\":[{\n\n", errcode.LLMCallFailed, passing, "no JSON"},
		{"a piece that nests without end", 200, "data: " + strings.Repeat(`{"a":[`, 1<<20) + "\n\n", errcode.LLMCallFailed, passing, "no JSON"},
		{"a page in place of a stream", 200, "<html>Sign in</html>", errcode.LLMCallFailed, lasting, "answers text/html at 127.0.0.1:"},
		{"a word in place of a stream", 200, "oops", errcode.LLMCallFailed, passing, "broke off"},
		{"a document without a message", 200, `{"choices":[]}`, errcode.LLMCallFailed, passing, "without a message"},
		{"a document that is cut off", 200, `{"choices":[{"message":{"content":"H`, errcode.LLMCallFailed, passing, "no JSON"},
		{"calls without end", 200, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[" + strings.Repeat(`{"function":{"name":"f"}},`, 100_000) + "{}]}}]}\n\n", errcode.LLMCallFailed, lasting, "more than 256 calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := ask(t, openai.New(serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})), hello(t))
			if got := modelError(t, o.err); got.Retryable != c.again || errcode.Of(o.err) != c.code || !strings.Contains(o.err.Error(), c.says) {
				t.Errorf("got %s, again %v: %v", errcode.Of(o.err), got.Retryable, o.err)
			}
			wantNoKey(t, o.err)
		})
	}
}

func TestAnswer_RetryAfter(t *testing.T) {
	for header, value := range map[string]string{"Retry-After": "7", "Retry-After-Ms": "7000"} {
		o := ask(t, openai.New(serve(t, func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set(header, value)
			w.WriteHeader(429)
		})), hello(t))
		if got := modelError(t, o.err).RetryAfter; got != 7*time.Second {
			t.Errorf("%s: got %v", header, got)
		}
	}
}

// A server that says nothing, at first or after a while, is not waited for.
func TestAnswer_Timeouts(t *testing.T) {
	for name, c := range map[string]struct {
		begins, says string
		config       provider.Config
	}{
		"before the answer":   {"", "did not begin", provider.Config{Timeout: time.Millisecond}},
		"in the middle of it": {piece, "nothing came", provider.Config{IdleTimeout: time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			config := serve(t, func(w http.ResponseWriter, r *http.Request) { // its end waits for this one's
				io.Copy(io.Discard, r.Body)
				io.WriteString(w, c.begins)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			config.Timeout, config.IdleTimeout = c.config.Timeout, c.config.IdleTimeout
			o := ask(t, openai.New(config), hello(t))
			if !modelError(t, o.err).Retryable || !strings.Contains(o.err.Error(), c.says) {
				t.Errorf("got %v", o.err)
			}
		})
	}
}

// repeatForever writes a text again and again until nobody reads it.
func repeatForever(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		for {
			if _, err := io.WriteString(w, text); err != nil {
				return
			}
		}
	}
}

func TestAnswer_LimitsSize(t *testing.T) {
	long := strings.Repeat("x", 64<<10)
	for _, c := range []struct {
		name   string
		stream bool
		answer http.HandlerFunc
	}{
		{"text", true, repeatForever(`data: {"choices":[{"delta":{"content":"` + long + `"}}]}` + "\n\n")},
		{"arguments", true, repeatForever(`data: {"choices":[{"delta":{"tool_calls":[{"index":0,"function":{"arguments":"` + long + `"}}]}}]}` + "\n\n")},
		{"thoughts", true, repeatForever(`data: {"choices":[{"delta":{"reasoning_content":"` + long + `"}}]}` + "\n\n")},
		{"details of thoughts", true, repeatForever(`data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"` + long + `"}]}}]}` + "\n\n")},
		{"a line", true, repeatForever("data: " + long)},
		{"nothing", true, repeatForever(strings.Repeat(" ", 1<<10))},
		{"a document", false, repeatForever(`{"a":"` + long)},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := serve(t, c.answer)
			config.Stream = c.stream
			if o := ask(t, openai.New(config), hello(t)); !strings.Contains(modelError(t, o.err).Error(), "more than") && !strings.Contains(o.err.Error(), "at most") {
				t.Errorf("got %v", o.err)
			}
		})
	}
}

// The body of a request is written into memory that is used again: requests at
// the same time, and such that are given up, must not get into each other.
func TestRequest_BuffersAreNotShared(t *testing.T) {
	var mu sync.Mutex
	seen := map[string]int{}
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		var got struct{ Messages []struct{ Content string } }
		if err == nil && json.Unmarshal(body, &got) != nil {
			t.Errorf("got %.100q", body)
		}
		if err != nil || len(got.Messages) != 2 {
			return
		}
		name, text := got.Messages[0].Content, got.Messages[1].Content
		if text != strings.Repeat(name, len(text)/max(1, len(name))) {
			t.Errorf("a request of %s holds %.100q", name, text)
		}
		mu.Lock()
		seen[name]++
		mu.Unlock()
		io.WriteString(w, piece+"data: [DONE]\n\n")
	})
	m := openai.New(c)
	var all sync.WaitGroup
	for i := range 8 {
		name := string(rune('a' + i))
		all.Go(func() {
			for n := range 40 {
				ctx, cancel := context.WithCancel(t.Context())
				if n%4 == 3 {
					time.AfterFunc(time.Duration(n)*10*time.Microsecond, cancel)
				}
				for range m.Generate(ctx, model.Request{System: name, Items: []model.Item{messageItem("user", `{"text":"`+strings.Repeat(name, 50_000)+`"}`)}}) {
				}
				cancel()
			}
		})
	}
	all.Wait()
	mu.Lock() // a request that was given up may still be served
	defer mu.Unlock()
	for i := range 8 {
		if name := string(rune('a' + i)); seen[name] < 30 {
			t.Errorf("%s was heard %d times, want 30 at least", name, seen[name])
		}
	}
}
