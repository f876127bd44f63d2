package mcpclient_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
)

// Whatever a server does with a call, the call ends with the code for what is known, other
// servers are not affected, and the next call gets a new connection.
func TestModule_CallsMisbehavingServer(t *testing.T) {
	interrupted, unavailable := string(errcode.ToolInterrupted), string(errcode.ToolUnavailable)
	for _, tt := range []struct{ mode, mutating, readOnly, logged string }{
		{"answers twice", "acted", "acted", ""},
		{"unknown id", "acted", "acted", ""},
		{"huge", interrupted, unavailable, "a message of more than 16 MiB"},
		{"many values", interrupted, unavailable, "a message of more than 262144 values"},
		{"many contents", interrupted, unavailable, "a message of more than 262144 values"},
		{"many commas", "acted", "acted", ""},
		{"garbage", interrupted, unavailable, `a line that is not a message: "Segmentation fault (core dumped)"`},
		{"deep nesting", interrupted, unavailable, ""},
		{"wrong type", interrupted, unavailable, ""},
		{"closing", interrupted, unavailable, ""},
		{"exits", interrupted, unavailable, "its stderr: killed by a cosmic ray"},
		{"hangs", interrupted, string(errcode.ToolTimeout), ""},
		{"rejects", "the server rejected the call: bad[31m arguments", "the server rejected the call", ""},
	} {
		for _, trusted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, trusted %v", tt.mode, trusted), func(t *testing.T) {
				t.Parallel()
				fx := newFixture(t)
				c := fx.childConfig("bad", tt.mode)
				c.Trusted = trusted
				if tt.mode == "hangs" {
					c.Timeout = 2 * time.Second
				}
				fx.load(c)
				want := tt.readOnly
				if !trusted {
					want = tt.mutating
					fx.load(fx.childConfig("good", "good"))
				}
				for range 2 { // the second may use a new connection
					got := fx.call("bad__act", `{}`)
					fx.want(got, want)
					if strings.Contains(got, "cosmic") || strings.Contains(got, "Segmentation") {
						t.Errorf("the error for models contains output of the server: %q", got)
					}
					if !trusted {
						fx.want(fx.call("good__act", `{}`), "acted")
					}
				}
				_, err := fx.handle("bad__act").Tool.Call(t.Context(), call("bad__act"))
				if tt.logged != "" && (err == nil || !strings.Contains(err.Error(), tt.logged)) {
					t.Errorf("the error for the log is %v, want it to contain %q", err, tt.logged)
				}
			})
		}
	}
}

// A server that cannot list its tools fails to load within the timeout.
func TestModule_RejectsUnusableServer(t *testing.T) {
	for mode, want := range map[string]string{
		"exits at start":    "the server ended: exit status 7",
		"never lists":       "deadline exceeded",
		"silent":            "deadline exceeded",
		"lists too many":    "more than 1000 tools",
		"lists in circles":  "does not end",
		"lists without end": "does not end",
		"lists garbage":     "list its tools",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if mode == "never lists" || mode == "silent" {
				fx.loader.StepTimeout = 3 * time.Second
			}
			err := fx.loader.LoadModule(ctx, fx.newModule(fx.childConfig("bad", mode)))
			if e, ok := errors.AsType[*mcpclient.ServerError](err); err == nil || !strings.Contains(err.Error(), want) || mode == "exits at start" && (!ok || e.Stderr != "cannot open the database") {
				t.Errorf("got %v, want it to contain %q", err, want)
			}
			if p, err := fx.pins.ReadPins(t.Context(), modules.OwnerOf("bad")); err != nil || p.Seen {
				t.Errorf("the server counts as seen: %+v, %v", p, err)
			}
		})
	}
}

// When a server floods its client with notifications, calls of its tools and of other
// servers are still answered.
func TestModule_SurvivesNotificationFlood(t *testing.T) {
	fx := newFixture(t)
	fx.load(fx.childConfig("bad", "floods"))
	fx.load(fx.childConfig("good", "good"))
	rounds := 3
	if testing.Short() {
		rounds = 1 // each answer of the server waits for a second of notifications
	}
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range rounds {
				fx.want(fx.call("bad__act", `{}`), "acted")
				fx.want(fx.call("good__act", `{}`), "acted")
			}
		})
	}
	all.Wait()
}

// A call whose connection breaks is not sent again.
func TestModule_SendsCallOnce(t *testing.T) {
	var calls atomic.Int64
	at := newRawServer(t, func(w http.ResponseWriter, r *http.Request, method string) {
		if calls.Add(1); method == "tools/call" {
			panic(http.ErrAbortHandler) // the connection breaks
		}
	})
	fx := newFixture(t)
	fx.load(mcpclient.Config{Name: "web", URL: at})
	before := calls.Load()
	fx.want(fx.call("web__act", `{}`), string(errcode.ToolInterrupted))
	if n := calls.Load() - before; n != 1 {
		t.Errorf("the server got %d requests, want 1", n)
	}
}

// TestModule_CallsMisbehavingHTTPServer is TestModule_CallsMisbehavingServer over HTTP.
func TestModule_CallsMisbehavingHTTPServer(t *testing.T) {
	unavailable, interrupted := string(errcode.ToolUnavailable), string(errcode.ToolInterrupted)
	for _, tt := range []struct {
		name, want, logged string
		serve              func(w http.ResponseWriter, r *http.Request, method string)
	}{
		{"100 MB", interrupted, "more than 16 MiB", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "application/json")
				writeFlood(w, `{"jsonrpc":"2.0","id":1,"result":"`)
			}
		}},
		{"100 MB of events", interrupted, "", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "text/event-stream")
				writeFlood(w, "data: ")
			}
		}},
		{"many values", interrupted, "more than 262144 values", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "application/json")
				fmt.Fprintf(w, `{"jsonrpc":"2.0","id":1,"result":[%s1]}`, strings.Repeat("{},", 300_000))
			}
		}},
		{"an event with many values", interrupted, "more than 262144 values", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprintf(w, ": \"\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":[%s\r\ndata: 1]}\r\n\r\n", strings.Repeat("{},", 300_000))
			}
		}},
		{"status 403", unavailable, "403", respondWith("tools/call", http.StatusForbidden)},
		{"status 502", interrupted, "502", respondWith("tools/call", http.StatusBadGateway)},
		{"HTML", interrupted, "", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<html>")
			}
		}},
		{"malformed event", interrupted, "", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: garbage\n\n")
			}
		}},
		{"stream without an answer", interrupted, "", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, ": nothing\n\n")
			}
		}},
		{"no response", interrupted, "", func(w http.ResponseWriter, r *http.Request, method string) {
			if method == "tools/call" {
				<-r.Context().Done()
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			fx := newFixture(t)
			fx.load(mcpclient.Config{Name: "web", URL: newRawServer(t, tt.serve), Timeout: 3 * time.Second})
			for range 2 {
				_, err := fx.handle("web__act").Tool.Call(t.Context(), call("web__act"))
				if string(errcode.CodeOf(err)) != tt.want || !strings.Contains(err.Error(), tt.logged) {
					t.Errorf("got %v, want %s and %q in the log", err, tt.want, tt.logged)
				}
			}
		})
	}
}

// The values of a stream are counted for each event.
func TestModule_ReadsManyEvents(t *testing.T) {
	fx := newFixture(t)
	fx.load(mcpclient.Config{Name: "web", URL: newRawServer(t, func(w http.ResponseWriter, r *http.Request, method string) {
		if method != "tools/call" {
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for range 4 {
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"level\":\"info\",\"data\":[%s1]}}\n\n", strings.Repeat("1,", 100_000))
		}
		fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"acted\"}]}}\n\n", r.Context().Value(idKey{}))
	})})
	fx.want(fx.call("web__act", `{}`), "acted")
}

// respondWith returns a handler that answers requests of one method with a status.
func respondWith(of string, code int) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, method string) {
		if method == of {
			w.WriteHeader(code)
		}
	}
}

// writeFlood writes 100 MB, or less if the client stops reading.
func writeFlood(w http.ResponseWriter, head string) {
	piece := strings.Repeat("x", 1<<20)
	_, err := fmt.Fprint(w, head)
	for i := 0; i < 100 && err == nil; i++ {
		_, err = fmt.Fprint(w, piece)
	}
}

// Configured headers are sent to the server's own address only.
func TestModule_SendsSecretsToServerOnly(t *testing.T) {
	var leaked atomic.Value
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked.Store(r.Header.Clone())
	}))
	defer other.Close()
	var seen atomic.Value
	at := newRawServer(t, func(w http.ResponseWriter, r *http.Request, method string) {
		seen.Store(r.Header.Get("Authorization") + " " + r.Header.Get("X-Key"))
		if method == "tools/call" {
			http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
		}
	})
	t.Setenv("HTTP_PROXY", other.URL)
	fx := newFixture(t)
	fx.load(mcpclient.Config{Name: "web", URL: at, Headers: map[string]string{"Authorization": "Bearer t", "X-Key": "k"}})
	if seen.Load() != "Bearer t k" {
		t.Errorf("the server got the headers %q", seen.Load())
	}
	_, err := fx.handle("web__act").Tool.Call(t.Context(), call("web__act"))
	if err == nil || !strings.Contains(err.Error(), "redirects to "+other.URL) {
		t.Errorf("got %v", err)
	}
	if leaked.Load() != nil {
		t.Errorf("another server got the headers %v", leaked.Load())
	}
}

// A call that was not sent because the program had ended or the session was lost is sent
// on a new connection.
func TestModule_Reconnects(t *testing.T) {
	t.Run("program", func(t *testing.T) {
		fx := newFixture(t)
		fx.load(fx.childConfig("fs", "real"))
		fx.want(fx.call("fs__crash", `{}`), string(errcode.ToolInterrupted))
		fx.want(fx.call("fs__again", `{}`), "again")
	})
	t.Run("session", func(t *testing.T) {
		var forget atomic.Bool
		var times atomic.Int64
		at := newRawServer(t, func(w http.ResponseWriter, r *http.Request, method string) {
			if method == "initialize" {
				w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", times.Add(1)))
			}
			if method == "tools/call" && forget.CompareAndSwap(true, false) {
				w.WriteHeader(http.StatusNotFound)
			}
		})
		fx := newFixture(t)
		fx.load(mcpclient.Config{Name: "web", URL: at})
		fx.want(fx.call("web__act", `{}`), "acted")
		forget.Store(true)
		fx.want(fx.call("web__act", `{}`), "acted")
		if times.Load() != 2 {
			t.Errorf("%d sessions, want 2", times.Load())
		}
	})
	t.Run("backoff", func(t *testing.T) {
		fx := newFixture(t)
		var attempts atomic.Int64
		down := atomic.Bool{}
		at := newRawServer(t, func(w http.ResponseWriter, _ *http.Request, method string) {
			if down.Load() {
				attempts.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
			} else if method == "tools/call" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: garbage\n\n")
			}
		})
		fx.load(mcpclient.Config{Name: "web", URL: at})
		fx.want(fx.call("web__act", `{}`), string(errcode.ToolInterrupted))
		down.Store(true)
		for range 20 {
			fx.want(fx.call("web__act", `{}`), string(errcode.ToolUnavailable))
		}
		if n := attempts.Load(); n > 8 {
			t.Errorf("the server got %d requests at once", n)
		}
	})
}

// A server may close the stream of a call and answer on the next one: the client resumes it.
func TestModule_ResumesStream(t *testing.T) {
	server := sdk.NewServer(&sdk.Implementation{Name: "far", Version: "1"}, nil)
	var closed atomic.Int64
	server.AddTool(&sdk.Tool{Name: "cut", Description: "d", InputSchema: anyObject}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Extra.CloseSSEStream != nil {
			closed.Add(1)
			r.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: time.Millisecond})
		}
		return textResult("resumed"), nil
	})
	resumed := make(chan string, 10)
	handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{EventStore: sdk.NewMemoryEventStore(nil)})
	web := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if id := r.Header.Get("Last-Event-ID"); id != "" {
			resumed <- id
		}
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { web.CloseClientConnections(); web.Close() })
	fx := newFixture(t)
	fx.load(mcpclient.Config{Name: "far", URL: web.URL, Revision: "2025-11-25"})
	fx.want(fx.callWith(t.Context(), "far__cut", `{}`), "resumed")
	if closed.Load() != 1 || len(resumed) == 0 {
		t.Errorf("the stream was closed %d times and resumed %d times", closed.Load(), len(resumed))
	}
}
