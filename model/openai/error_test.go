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

// wantNoKey checks that no error in the chain contains the key.
func wantNoKey(t *testing.T, err error) {
	t.Helper()
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), secret) {
			t.Errorf("the key is in %v", e)
		}
	}
}

// Errors arrive as a status or as an error object, before or in the middle of an
// answer, whole or streamed.
func TestAnswer_Errors(t *testing.T) {
	const permanent, transient = false, true
	failed := func(object string) string { return piece + `data: {"error":` + object + "}\n\n" }
	for _, c := range []struct {
		name      string
		status    int
		body      string
		code      errcode.Code
		retryable bool
		text      string
	}{
		{"bad request", 400, `{"error":{"message":"Invalid schema"}}`, errcode.LLMCallFailed, permanent, "Invalid schema"},
		{"wrong key", 401, `{"error":{"message":"Incorrect API key provided: ` + secret + `"}}`, errcode.LLMCallFailed, permanent, "***"},
		{"forbidden", 403, `{"error":{"message":"Country"}}`, errcode.LLMCallFailed, permanent, "Country"},
		{"no such model", 404, `{"error":{"message":"model not found"}}`, errcode.LLMCallFailed, permanent, "not found"},
		{"request too large", 413, ``, errcode.ContextExceeded, permanent, "length"},
		{"rate limit", 429, `{"error":{"message":"Rate limit"}}`, errcode.RateLimited, transient, "Rate limit"},
		{"server error", 500, `x`, errcode.LLMCallFailed, transient, "x"},
		{"overloaded", 529, `x`, errcode.LLMCallFailed, transient, "529"},
		{"conversation too long", 400, `{"error":{"message":"m","code":"context_length_exceeded"}}`, errcode.ContextExceeded, permanent, "length"},
		{"error in the stream", 200, failed(`{"message":"The server had an error","type":"server_error","code":null}`), errcode.LLMCallFailed, transient, "had an error"},
		{"error is a string", 200, failed(`"out of memory ` + secret + `"`), errcode.LLMCallFailed, transient, "out of memory ***"},
		{"error with a status code", 200, failed(`{"code":502,"message":"Provider disconnected","metadata":{}}`), errcode.LLMCallFailed, transient, "disconnected"},
		{"rate limit in the stream", 200, failed(`{"code":"rate_limit_exceeded","message":"slow down"}`), errcode.RateLimited, transient, "slow down"},
		{"conversation too long, in the stream", 200, failed(`{"code":400,"message":"exceeds the available context size","type":"exceed_context_size_error"}`), errcode.ContextExceeded, permanent, "context size"},
		{"bad request in the stream", 200, failed(`{"type":"BadRequestError","message":"no tools here"}`), errcode.LLMCallFailed, permanent, "no tools"},
		{"error of older vLLM", 200, `data: {"object":"error","message":"no such thing","type":"BadRequestError","code":400}` + "\n\n", errcode.LLMCallFailed, permanent, "no such thing"},
		{"error instead of a stream", 200, ` {"error":{"code":500,"message":"loading"}}`, errcode.LLMCallFailed, transient, "loading"},
		{"finish reason error", 200, piece + `data: {"choices":[{"delta":{},"finish_reason":"error"}]}` + "\n\ndata: [DONE]\n\n", errcode.LLMCallFailed, transient, "aborted"},
		{"DeepSeek overloaded", 200, piece + `data: {"choices":[{"delta":{},"finish_reason":"insufficient_system_resource"}]}` + "\n\n", errcode.LLMCallFailed, transient, "aborted"},
		{"truncated stream", 200, piece, errcode.LLMCallFailed, transient, "stopped in the middle"},
		{"empty stream", 200, ``, errcode.LLMCallFailed, transient, "stopped in the middle"},
		{"event is not JSON", 200, piece + "data: {\"choices\":[{\n\n", errcode.LLMCallFailed, transient, "not a JSON object"},
		{"event too deep", 200, "data: " + strings.Repeat(`{"a":[`, 1<<20) + "\n\n", errcode.LLMCallFailed, transient, "not a JSON object"},
		{"page instead of a stream", 200, "<html>Sign in</html>", errcode.LLMCallFailed, permanent, "answers text/html at 127.0.0.1:"},
		{"word instead of a stream", 200, "oops", errcode.LLMCallFailed, transient, "stopped in the middle"},
		{"document without a message", 200, `{"choices":[]}`, errcode.LLMCallFailed, transient, "without a message"},
		{"truncated document", 200, `{"choices":[{"message":{"content":"H`, errcode.LLMCallFailed, transient, "not a JSON object"},
		{"too many calls", 200, "data: {\"choices\":[{\"delta\":{\"tool_calls\":[" + strings.Repeat(`{"function":{"name":"f"}},`, 100_000) + "{}]}}]}\n\n", errcode.LLMCallFailed, permanent, "more than 256 calls"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := ask(t, openai.New(serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})), hello(t))
			if got := modelError(t, o.err); got.Retryable != c.retryable || errcode.CodeOf(o.err) != c.code || !strings.Contains(o.err.Error(), c.text) {
				t.Errorf("got %s, retryable %v: %v", errcode.CodeOf(o.err), got.Retryable, o.err)
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

// An answer that does not begin or stalls is an error.
func TestAnswer_Timeouts(t *testing.T) {
	for name, c := range map[string]struct {
		begins, text string
		config       provider.Config
	}{
		"before the answer":   {"", "did not begin", provider.Config{Timeout: time.Millisecond}},
		"in the middle of it": {piece, "no data for", provider.Config{IdleTimeout: time.Millisecond}},
	} {
		t.Run(name, func(t *testing.T) {
			config := serve(t, func(w http.ResponseWriter, r *http.Request) { // the server closes after this handler returns
				io.Copy(io.Discard, r.Body)
				io.WriteString(w, c.begins)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
			})
			config.Timeout, config.IdleTimeout = c.config.Timeout, c.config.IdleTimeout
			o := ask(t, openai.New(config), hello(t))
			if !modelError(t, o.err).Retryable || !strings.Contains(o.err.Error(), c.text) {
				t.Errorf("got %v", o.err)
			}
		})
	}
}

// repeatForever writes text until the client stops reading.
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
		{"reasoning", true, repeatForever(`data: {"choices":[{"delta":{"reasoning_content":"` + long + `"}}]}` + "\n\n")},
		{"reasoning details", true, repeatForever(`data: {"choices":[{"delta":{"reasoning_details":[{"type":"reasoning.text","index":0,"text":"` + long + `"}]}}]}` + "\n\n")},
		{"line", true, repeatForever("data: " + long)},
		{"white space", true, repeatForever(strings.Repeat(" ", 1<<10))},
		{"document", false, repeatForever(`{"a":"` + long)},
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

// Request bodies use pooled memory: concurrent and cancelled requests must not share
// it.
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
			t.Errorf("a request of %s contains %.100q", name, text)
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
	mu.Lock() // a cancelled request may still be served
	defer mu.Unlock()
	for i := range 8 {
		if name := string(rune('a' + i)); seen[name] < 30 {
			t.Errorf("%s was received %d times, want at least 30", name, seen[name])
		}
	}
}
