package endpoint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/provider/endpoint"
)

const key = "sk-secret-0123456789"

// serve starts a server for the test and returns the Config of an Endpoint for it.
func serve(t *testing.T, answer http.HandlerFunc) endpoint.Config {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	t.Cleanup(server.CloseClientConnections)
	return endpoint.Config{Name: "m", Model: "gpt", URL: server.URL + "/x", Key: key, Header: map[string]string{"Authorization": "Bearer " + key}, Client: server.Client()}
}

// post returns the whole body of an answer.
func post(ctx context.Context, c endpoint.Config, parts ...[]byte) (string, error) {
	body, err := endpoint.New(c).PostParts(ctx, parts...)
	if err != nil {
		return "", err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	return string(text), err
}

// modelError checks that err is a *model.Error without the key and returns it.
func modelError(t *testing.T, err error) *model.Error {
	t.Helper()
	found, ok := errors.AsType[*model.Error](err)
	if !ok {
		t.Fatalf("got %v (%T), want a *model.Error", err, err)
	}
	for e := err; e != nil; e = errors.Unwrap(e) {
		if strings.Contains(fmt.Sprintf("%v %+v %#v", e, e, e), key) {
			t.Errorf("the key is in %v", e)
		}
	}
	return found
}

func TestEndpoint_SendsPartsAsOneBody(t *testing.T) {
	big := bytes.Repeat([]byte("x"), 100_000)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintln(w, r.Method, r.URL.Path, r.ContentLength, r.Header["Authorization"], r.Header["Content-Type"], bytes.Equal(body, slices.Concat([]byte("{"), big, []byte("}"))))
	})
	got, err := post(t.Context(), c, []byte("{"), nil, big, []byte("}"))
	if want := "POST /x 100002 [Bearer " + key + "] [application/json] true\n"; got != want || err != nil {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestEndpoint_StatusErrors(t *testing.T) {
	const permanent, transient = false, true
	for _, c := range []struct {
		name   string
		status int
		body   string
		code   errcode.Code
		again  bool
		says   string
	}{
		{"bad request", 400, `{"error":{"message":"bad tool","type":"invalid_request_error"}}`, errcode.LLMCallFailed, permanent, "bad tool"},
		{"rejected key", 401, `{"error":{"message":"Incorrect API key provided: ` + key + `."}}`, errcode.LLMCallFailed, permanent, "apiKey"},
		{"key echoed with escapes", 401, `{"error":{"message":"` + strings.ReplaceAll(key, "-", `\u002d`) + `"}}`, errcode.LLMCallFailed, permanent, "***"},
		{"key echoed in HTML", 401, `<html>` + key + `</html>`, errcode.LLMCallFailed, permanent, "***"},
		{"key echoed where the quote is cut", 500, strings.Repeat("x", 290) + key, errcode.LLMCallFailed, transient, "***"},
		{"forbidden", 403, `{"detail":"moderation"}`, errcode.LLMCallFailed, permanent, "moderation"},
		{"unknown model", 404, `{"error":"model 'x' not found"}`, errcode.LLMCallFailed, permanent, "model 'x' not found"},
		{"no credit", 402, `{"error":{"message":"Insufficient Balance"}}`, errcode.LLMCallFailed, permanent, "Insufficient"},
		{"request timeout", 408, ``, errcode.LLMCallFailed, transient, "no error text"},
		{"conflict", 409, `{}`, errcode.LLMCallFailed, transient, "{}"},
		{"request too large", 413, ``, errcode.ContextExceeded, permanent, "length"},
		{"rate limit", 429, `{"error":{"message":"Rate limit reached"}}`, errcode.RateLimited, transient, "Rate limit"},
		{"quota exhausted", 429, `{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`, errcode.LLMCallFailed, permanent, "no credit left"},
		{"server error", 500, `oops`, errcode.LLMCallFailed, transient, "oops"},
		{"overloaded", 529, `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`, errcode.LLMCallFailed, transient, "Overloaded"},
		{"too long for OpenAI", 400, `{"error":{"message":"This model's maximum context length is 128000 tokens.","code":"context_length_exceeded"}}`, errcode.ContextExceeded, permanent, "128000"},
		{"too long for llama.cpp", 400, `{"error":{"code":400,"message":"the request exceeds the available context size","type":"exceed_context_size_error","n_ctx":8192}}`, errcode.ContextExceeded, permanent, "size"},
		{"too long for an older llama.cpp", 500, `{"error":{"code":500,"message":"too large","type":"exceed_context_size_error"}}`, errcode.ContextExceeded, permanent, "too large"},
		{"too long for Anthropic", 400, `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 208310 tokens > 200000 maximum"}}`, errcode.ContextExceeded, permanent, "208310"},
		{"too long for Gemini", 400, `{"error":{"code":400,"message":"The input token count (1200000) exceeds the maximum number of tokens allowed (1048576)."}}`, errcode.ContextExceeded, permanent, "1048576"},
		{"too long for xAI", 400, `{"error":"This model's maximum prompt length is 131072 but the request contains 140000 tokens."}`, errcode.ContextExceeded, permanent, "131072"},
		{"deep JSON", 500, strings.Repeat("[", 200_000), errcode.LLMCallFailed, transient, "[["},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := post(t.Context(), serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			}))
			got := modelError(t, err)
			if errcode.CodeOf(err) != c.code || got.Retryable != c.again || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 600 {
				t.Errorf("got %s, again %v: %v", errcode.CodeOf(err), got.Retryable, err)
			}
			if want := slices.Contains([]int{401, 402, 403, 404}, c.status) || c.name == "quota exhausted"; got.NeedsOperator != want {
				t.Errorf("needs the operator: %v, want %v", got.NeedsOperator, want)
			}
		})
	}
}

func TestEndpoint_RetryAfter(t *testing.T) {
	for _, c := range []struct {
		name, header, value, body string
		least, most               time.Duration
	}{
		{"seconds", "Retry-After", "7", "", 7 * time.Second, 7 * time.Second},
		{"fraction of a second", "Retry-After", "0.5", "", time.Second / 2, time.Second / 2},
		{"milliseconds", "Retry-After-Ms", "1500", "", 1500 * time.Millisecond, 1500 * time.Millisecond},
		{"future date", "Retry-After", time.Now().Add(time.Hour).UTC().Format(http.TimeFormat), "", 50 * time.Minute, time.Hour},
		{"past date", "Retry-After", "Fri, 31 Dec 1999 23:59:59 GMT", "", 0, 0},
		{"distant date", "Retry-After", "Fri, 31 Dec 9999 23:59:59 GMT", "", 24 * time.Hour, 24 * time.Hour},
		{"not a date", "Retry-After", "soon", "", 0, 0},
		{"negative", "Retry-After", "-5", "", 0, 0},
		{"not a number", "Retry-After", "NaN", "", 0, 0},
		{"infinite", "Retry-After", "Inf", "", 24 * time.Hour, 24 * time.Hour},
		{"retryDelay of Gemini", "X", "x", `{"error":{"details":[{"@type":"Help"},{"@type":"RetryInfo","retryDelay":"3.5s"}]}}`, 3500 * time.Millisecond, 3500 * time.Millisecond},
		{"long retryDelay of Gemini", "X", "x", `{"error":{"details":[{"retryDelay":"999999h"}]}}`, 24 * time.Hour, 24 * time.Hour},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := post(t.Context(), serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set(c.header, c.value)
				w.WriteHeader(429)
				io.WriteString(w, c.body)
			}))
			if got := modelError(t, err).RetryAfter; got < c.least || got > c.most {
				t.Errorf("got %v, want %v to %v", got, c.least, c.most)
			}
		})
	}
}

// Errors that a wrong configuration causes are permanent and say what to check.
func TestEndpoint_ConfigurationErrors(t *testing.T) {
	for _, c := range []struct {
		name, key   string
		status      int
		kind, body  string
		want, lacks string
	}{
		{"no key, unauthorized", "", 401, "", `{"error":{"message":"no header"}}`, `model "m" needs an API key; set apiKey: ${NAME} (status 401: no header)`, ""},
		{"no key, forbidden", "", 403, "", ``, `model "m" needs an API key`, ""},
		{"wrong key", key, 401, "", ``, `does not accept its key`, "needs an API key"},
		{"not found", key, 404, "", `404 page not found`, `model "m": there is no "gpt" at HOST/x (status 404): 404 page not found; check model and baseURL`, ""},
		{"page of another server", key, 200, "text/html; charset=utf-8", "<html>Hello</html>", `model "m" answers text/html at HOST/x: is its baseURL right?`, ""},
		{"image", key, 200, "Image/PNG", "x", `model "m" answers image/png at HOST/x`, ""},
		{"content type echoes the key", key, 200, "text/" + key, "x", `answers text/*** at`, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			config := serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", c.kind)
				w.WriteHeader(c.status)
				io.WriteString(w, c.body)
			})
			config.Key = c.key
			_, err := post(t.Context(), config)
			want := strings.ReplaceAll(c.want, "HOST", strings.TrimSuffix(strings.TrimPrefix(config.URL, "http://"), "/x"))
			if modelError(t, err).Retryable || !strings.Contains(err.Error(), want) || c.lacks != "" && strings.Contains(err.Error(), c.lacks) {
				t.Errorf("got %v, want %q", err, want)
			}
		})
	}
}

// Many servers send answers with another content type or none.
func TestEndpoint_AcceptsContentTypes(t *testing.T) {
	for _, kind := range []string{"", "application/json", "Application/JSON; charset=utf-8", "application/problem+json", "text/event-stream;charset=UTF-8", "text/plain", "application/x-ndjson", "application/vnd.amazon.eventstream"} {
		t.Run(kind, func(t *testing.T) {
			got, err := post(t.Context(), serve(t, func(w http.ResponseWriter, r *http.Request) {
				w.Header()["Content-Type"] = []string{kind}
				io.WriteString(w, "{}")
			}))
			if got != "{}" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

// A key that cannot be sent is a permanent error and is not shown.
func TestEndpoint_RejectsInvalidKey(t *testing.T) {
	c := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the request was sent") })
	c.Key = key + "\nx"
	c.Header["Authorization"] = "Bearer " + c.Key
	_, err := post(t.Context(), c)
	if modelError(t, err).Retryable || errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), "apiKey") {
		t.Errorf("got %v", err)
	}
}

func TestEndpoint_ConnectionClosedBeforeResponse(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	})
	_, err := post(t.Context(), c, []byte("{}"))
	if want := `model "m" closed the connection before it answered`; !modelError(t, err).Retryable || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v, want %q", err, want)
	}
}

// Neither the key nor the conversation is sent to the target of a redirect.
func TestEndpoint_DoesNotFollowRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 307, 308} {
		t.Run(fmt.Sprint(status), func(t *testing.T) {
			reached := make(chan string, 1)
			elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { reached <- r.Header.Get("Authorization") }))
			defer elsewhere.Close()
			c := serve(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, elsewhere.URL+"/"+key, status) })
			for _, client := range []*http.Client{nil, c.Client} {
				c.Client = client
				_, err := post(t.Context(), c, []byte("{}"))
				if got := modelError(t, err); got.Retryable || !strings.Contains(err.Error(), "baseURL") {
					t.Errorf("got %v", err)
				}
			}
			select {
			case got := <-reached:
				t.Errorf("the redirect was followed with %q", got)
			default:
			}
		})
	}
}

func TestEndpoint_Unreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.Close()
	for name, c := range map[string]struct {
		url   string
		again bool
		says  string
	}{
		"connection refused": {"http://" + l.Addr().String() + "/" + key, true, "cannot be reached at " + l.Addr().String() + ": connection refused"},
		"invalid URL":        {"http://[::1/" + key, false, "baseURL is not a URL"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := post(t.Context(), endpoint.Config{Name: "m", URL: c.url, Key: key})
			if got := modelError(t, err); got.Retryable != c.again || strings.Contains(err.Error(), "http://") || !strings.HasSuffix(err.Error(), c.says) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// stallingServer returns an Endpoint whose server sends begin and then nothing. It
// uses a pipe, so that it works in a synctest bubble.
func stallingServer(t *testing.T, begin string, config endpoint.Config) (*endpoint.Endpoint, *sync.WaitGroup) {
	near, far := net.Pipe()
	var server sync.WaitGroup
	server.Go(func() {
		buffer := make([]byte, 4<<10)
		far.Read(buffer)
		io.WriteString(far, begin)
		io.Copy(io.Discard, far) // until the client hangs up
		far.Close()
	})
	config.Name, config.URL = "m", "http://m"
	config.Client = &http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return near, nil }}}
	return endpoint.New(config), &server
}

const responseHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"

func TestEndpoint_FirstByteTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, server := stallingServer(t, "", endpoint.Config{FirstByteTimeout: 30 * time.Second})
		began := time.Now()
		_, err := e.PostParts(t.Context(), []byte("{}"))
		if took := time.Since(began); !modelError(t, err).Retryable || !strings.Contains(err.Error(), "did not begin") || took != 30*time.Second {
			t.Errorf("after %v got %v", took, err)
		}
		server.Wait()
	})
}

func TestEndpoint_IdleTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, server := stallingServer(t, responseHead+"data: 1\n\n", endpoint.Config{IdleTimeout: 10 * time.Second})
		body, err := e.PostParts(t.Context(), []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		began, events := time.Now(), 0
		for event, err := range endpoint.ReadEvents(body) {
			if err == nil {
				events++
				time.Sleep(time.Hour) // the time between two reads does not count
				began = time.Now()
				continue
			}
			if !modelError(t, err).Retryable || !strings.Contains(err.Error(), "no data for 10s") || time.Since(began) != 10*time.Second {
				t.Errorf("after %v got %v, %q", time.Since(began), err, event.Data)
			}
		}
		if events != 1 {
			t.Errorf("got %d events, want 1", events)
		}
		body.Close()
		server.Wait()
	})
}

// A lost connection is an error, not the end of the answer.
func TestEndpoint_ConnectionLost(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: 1\n\ndata: 2\n")
		w.(http.Flusher).Flush()
		conn, _, _ := w.(http.Hijacker).Hijack()
		conn.Close()
	})
	body, err := endpoint.New(c).PostParts(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	var got []string
	for e, err := range endpoint.ReadEvents(body) {
		if err != nil {
			if !modelError(t, err).Retryable || !strings.Contains(err.Error(), "stopped in the middle") {
				t.Error(err)
			}
			got = append(got, "error")
			continue
		}
		got = append(got, string(e.Data))
	}
	if !slices.Equal(got, []string{"1", "error"}) {
		t.Errorf("got %q", got)
	}
}

// Cancelling ends an answer at once with the caller's cause and closes the
// connection.
func TestEndpoint_Cancel(t *testing.T) {
	gone := make(chan struct{})
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: 1\n\n")
		w.(http.Flusher).Flush()
		<-r.Context().Done()
		close(gone)
	})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	body, err := endpoint.New(c).PostParts(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	for e, err := range endpoint.ReadEvents(body) {
		if err != nil && err != cause {
			t.Errorf("got %v, want %v", err, cause)
		}
		if err == nil && string(e.Data) == "1" {
			cancel(cause)
		}
	}
	<-gone
	if _, err := endpoint.New(c).PostParts(ctx); err != cause {
		t.Errorf("got %v, want %v", err, cause)
	}
}

// A connection is reused even if the answer was read to its last event but not to
// the end of its body.
func TestEndpoint_ReusesConnections(t *testing.T) {
	connections := make(chan net.Conn, 10)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, "data: [DONE]\n\n")
		w.(http.Flusher).Flush()
	}))
	server.Config.ConnState = func(c net.Conn, s http.ConnState) {
		if s == http.StateNew {
			connections <- c
		}
	}
	server.Start()
	defer server.Close()
	e := endpoint.New(endpoint.Config{URL: server.URL, Client: server.Client()})
	for range 5 {
		body, err := e.PostParts(t.Context(), []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		body.Read(make([]byte, 8))
		body.Close()
	}
	if len(connections) != 1 {
		t.Errorf("got %d connections, want 1", len(connections))
	}
}

func TestDocument_DoneIsCalledOnce(t *testing.T) {
	done := make(chan string, 5)
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Write(body)
	})
	d := &endpoint.Document{Parts: [][]byte{[]byte("{"), []byte("}")}, Done: func() { done <- "done" }}
	body, err := endpoint.New(c).SendDocument(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(body)
	body.Close()
	<-done
	if string(text) != "{}" || err != nil || len(done) != 0 {
		t.Errorf("got %q, %v and %d times more", text, err, len(done))
	}
	c.URL = "http://[::1"
	endpoint.New(c).SendDocument(t.Context(), &endpoint.Document{Done: func() { done <- "refused" }})
	if got := <-done; got != "refused" {
		t.Errorf("got %q", got)
	}
}

func TestEvents_Parse(t *testing.T) {
	for _, c := range []struct{ name, body, want string }{
		{"data", "data: a\n\ndata:b\n\n", "|a||b|"},
		{"names", "event: x\ndata: a\n\ndata: b\n\n", "x|a||b|"},
		{"name without data", "event: x\n\ndata: a\n\n", "|a|"},
		{"comments and other fields", ": hi\n\nid: 1\nretry: 5\ndata: a\n: there\n\n", "|a|"},
		{"two kinds of line ends", "data: a\r\n\r\ndata: b\n\n", "|a||b|"},
		{"several lines", "data: a\ndata:\ndata: b\n\n", "|a\n\nb|"},
		{"empty data", "data\n\ndata:\n\n", "||||"},
		{"no empty line at the end", "data: a\n\ndata: b", "|a||b|"},
		{"no events", "{\"error\": 1}", ""},
		{"empty", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got strings.Builder
			for e, err := range endpoint.ReadEvents(iotest.OneByteReader(strings.NewReader(c.body))) {
				if err != nil {
					t.Fatal(err)
				}
				fmt.Fprintf(&got, "%s|%s|", e.Name, e.Data)
			}
			if got.String() != c.want {
				t.Errorf("got %q, want %q", got.String(), c.want)
			}
		})
	}
}

// endlessReader repeats a text without end.
type endlessReader struct{ text string }

func (e endlessReader) Read(p []byte) (n int, err error) {
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	return n, nil
}

func TestEvents_LimitsSize(t *testing.T) {
	for _, c := range []struct {
		name string
		from io.Reader
	}{
		{"a line", io.MultiReader(strings.NewReader("data: "), endlessReader{"xxxxxxxx"})},
		{"an event", endlessReader{"data: " + strings.Repeat("x", 1018) + "\n"}},
		{"a comment", endlessReader{":" + strings.Repeat("-", 1022) + "\n"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			var last error
			for _, err := range endpoint.ReadEvents(c.from) {
				last = err
			}
			if last == nil || !strings.Contains(modelError(t, last).Error(), "more than") {
				t.Errorf("got %v", last)
			}
		})
	}
	t.Run("a document", func(t *testing.T) {
		if _, err := endpoint.ReadAll(endlessReader{"["}); err == nil || modelError(t, err).Retryable {
			t.Errorf("got %v", err)
		}
	})
}

// FuzzEvents checks that events of any input contain only text of its lines.
func FuzzEvents(f *testing.F) {
	f.Add([]byte("event: x\ndata: a\r\n\ndata"))
	f.Fuzz(func(t *testing.T, body []byte) {
		for e, err := range endpoint.ReadEvents(bytes.NewReader(body)) {
			if err != nil {
				t.Fatal(err)
			}
			for line := range bytes.SplitSeq(e.Data, []byte("\n")) {
				if !bytes.Contains(body, line) {
					t.Errorf("%q is not in the input", line)
				}
			}
		}
	})
}
