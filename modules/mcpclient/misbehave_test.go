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

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/mcpclient"
)

// Whatever a server does with a call, the call ends with a code that says what
// is known, a neighbour notices nothing, and the next call gets a new server.
func TestACallToABadServer(t *testing.T) {
	interrupted, unavailable := string(errcode.ToolInterrupted), string(errcode.ToolUnavailable)
	for _, tt := range []struct{ mode, mutating, readOnly, says string }{
		{"twice", "acted", "acted", ""},
		{"another", "acted", "acted", ""},
		{"huge", interrupted, unavailable, "a message of more than 16 MiB"},
		{"garbage", interrupted, unavailable, `a line that is no message: "Segmentation fault (core dumped)"`},
		{"deep", interrupted, unavailable, ""},
		{"wrong", interrupted, unavailable, ""},
		{"closing", interrupted, unavailable, ""},
		{"exits", interrupted, unavailable, "its stderr: killed by a cosmic ray"},
		{"hangs", interrupted, string(errcode.ToolTimeout), ""},
		{"refuses", "the server refused the call: bad[31m arguments", "the server refused the call", ""},
	} {
		for _, trusted := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, trusted %v", tt.mode, trusted), func(t *testing.T) {
				t.Parallel()
				k := newKit(t)
				c := k.child("bad", tt.mode)
				c.Trusted = trusted
				if tt.mode == "hangs" {
					c.Timeout = 2 * time.Second
				}
				k.load(c)
				k.load(k.child("good", "good"))
				want := tt.mutating
				if trusted {
					want = tt.readOnly
				}
				for range 2 { // the second is on a connection that is new, or as good
					got := k.call("bad__act", `{}`)
					k.want(got, want)
					if strings.Contains(got, "cosmic") || strings.Contains(got, "Segmentation") {
						t.Errorf("a model reads what the server wrote where nobody should: %q", got)
					}
					k.want(k.call("good__act", `{}`), "acted")
				}
				_, err := k.handle("bad__act").Tool.Call(t.Context(), call("bad__act"))
				if tt.says != "" && (err == nil || !strings.Contains(err.Error(), tt.says)) {
					t.Errorf("the log reads %v, want it to hold %q", err, tt.says)
				}
			})
		}
	}
}

// What a server cannot say so that it is used, it is refused with at the start,
// within the time that it has.
func TestAServerThatCannotBeUsed(t *testing.T) {
	for mode, want := range map[string]string{
		"dies":                  "the server ended: exit status 7",
		"never lists":           "deadline exceeded",
		"silent":                "deadline exceeded",
		"lists too many":        "more than 1000 tools",
		"lists in circles":      "does not end",
		"lists without end":     "does not end",
		"lists nothing that is": "list its tools",
	} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if mode == "never lists" || mode == "silent" {
				k.loader.StepTimeout = 3 * time.Second
			}
			err := k.loader.Load(ctx, k.make(k.child("bad", mode)))
			if e, ok := errors.AsType[*mcpclient.ServerError](err); err == nil || !strings.Contains(err.Error(), want) || mode == "dies" && (!ok || e.Stderr != "cannot open the database") {
				t.Errorf("got %v, want it to hold %q", err, want)
			}
			if p, err := k.pins.Get(t.Context(), modules.Owner("bad")); err != nil || p.Seen {
				t.Errorf("it counts as seen: %+v, %v", p, err)
			}
		})
	}
}

// A server that floods its client with news is listed now and then, and calls
// of it and of others are answered.
func TestAFloodOfNews(t *testing.T) {
	k := newKit(t)
	k.load(k.child("bad", "floods"))
	k.load(k.child("good", "good"))
	var all sync.WaitGroup
	for range 2 {
		all.Go(func() {
			for range 3 {
				k.want(k.call("bad__act", `{}`), "acted")
				k.want(k.call("good__act", `{}`), "acted")
			}
		})
	}
	all.Wait()
}

// A call that was under way when its server died is not sent to the next one.
func TestACallIsSentOnce(t *testing.T) {
	var calls atomic.Int64
	at := raw(t, func(w http.ResponseWriter, r *http.Request, method string) {
		if calls.Add(1); method == "tools/call" {
			panic(http.ErrAbortHandler) // the connection breaks
		}
	})
	k := newKit(t)
	k.load(mcpclient.Config{Name: "web", URL: at})
	before := calls.Load()
	k.want(k.call("web__act", `{}`), string(errcode.ToolInterrupted))
	if n := calls.Load() - before; n != 1 {
		t.Errorf("the server was asked %d times", n)
	}
}

// Over HTTP as over pipes.
func TestBadHTTP(t *testing.T) {
	unavailable, interrupted := string(errcode.ToolUnavailable), string(errcode.ToolInterrupted)
	for _, tt := range []struct {
		name, want, logs string
		serve            func(w http.ResponseWriter, r *http.Request, method string)
	}{
		{"100 MB", interrupted, "more than 16 MiB", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "application/json")
				pour(w, `{"jsonrpc":"2.0","id":1,"result":"`)
			}
		}},
		{"100 MB of events", interrupted, "", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "text/event-stream")
				pour(w, "data: ")
			}
		}},
		{"a status that refuses", unavailable, "403", status("tools/call", http.StatusForbidden)},
		{"a status that says nothing", interrupted, "502", status("tools/call", http.StatusBadGateway)},
		{"a page", interrupted, "", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "text/html")
				fmt.Fprint(w, "<html>")
			}
		}},
		{"an event that is none", interrupted, "", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: garbage\n\n")
			}
		}},
		{"a stream without the answer", interrupted, "", func(w http.ResponseWriter, _ *http.Request, method string) {
			if method == "tools/call" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, ": nothing\n\n")
			}
		}},
		{"never", interrupted, "", func(w http.ResponseWriter, r *http.Request, method string) {
			if method == "tools/call" {
				<-r.Context().Done()
			}
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			k := newKit(t)
			k.load(mcpclient.Config{Name: "web", URL: raw(t, tt.serve), Timeout: 3 * time.Second})
			for range 2 {
				_, err := k.handle("web__act").Tool.Call(t.Context(), call("web__act"))
				if string(errcode.Of(err)) != tt.want || !strings.Contains(err.Error(), tt.logs) {
					t.Errorf("got %v, want %s and %q in the log", err, tt.want, tt.logs)
				}
			}
		})
	}
}

func status(of string, code int) func(http.ResponseWriter, *http.Request, string) {
	return func(w http.ResponseWriter, _ *http.Request, method string) {
		if method == of {
			w.WriteHeader(code)
		}
	}
}

// pour writes a hundred megabytes, or as many as are taken.
func pour(w http.ResponseWriter, head string) {
	piece := strings.Repeat("x", 1<<20)
	_, err := fmt.Fprint(w, head)
	for i := 0; i < 100 && err == nil; i++ {
		_, err = fmt.Fprint(w, piece)
	}
}

// Secrets go to the server's own address and to no other.
func TestSecretsStay(t *testing.T) {
	var leaked atomic.Value
	thief := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		leaked.Store(r.Header.Clone())
	}))
	defer thief.Close()
	var seen atomic.Value
	at := raw(t, func(w http.ResponseWriter, r *http.Request, method string) {
		seen.Store(r.Header.Get("Authorization") + " " + r.Header.Get("X-Key"))
		if method == "tools/call" {
			http.Redirect(w, r, thief.URL, http.StatusTemporaryRedirect)
		}
	})
	t.Setenv("HTTP_PROXY", thief.URL)
	k := newKit(t)
	k.load(mcpclient.Config{Name: "web", URL: at, Headers: map[string]string{"Authorization": "Bearer t", "X-Key": "k"}})
	if seen.Load() != "Bearer t k" {
		t.Errorf("the server saw %q", seen.Load())
	}
	_, err := k.handle("web__act").Tool.Call(t.Context(), call("web__act"))
	if err == nil || !strings.Contains(err.Error(), "redirects to "+thief.URL) {
		t.Errorf("got %v", err)
	}
	if leaked.Load() != nil {
		t.Errorf("somebody else saw %v", leaked.Load())
	}
}

// A server that has ended, or forgotten us, before a call was sent, is asked
// again.
func TestReconnect(t *testing.T) {
	t.Run("a program", func(t *testing.T) {
		k := newKit(t)
		k.load(k.child("fs", "real"))
		k.want(k.call("fs__crash", `{}`), string(errcode.ToolInterrupted))
		k.want(k.call("fs__again", `{}`), "again")
	})
	t.Run("a session", func(t *testing.T) {
		var forget atomic.Bool
		var times atomic.Int64
		at := raw(t, func(w http.ResponseWriter, r *http.Request, method string) {
			if method == "initialize" {
				w.Header().Set("Mcp-Session-Id", fmt.Sprint("s", times.Add(1)))
			}
			if method == "tools/call" && forget.CompareAndSwap(true, false) {
				w.WriteHeader(http.StatusNotFound)
			}
		})
		k := newKit(t)
		k.load(mcpclient.Config{Name: "web", URL: at})
		k.want(k.call("web__act", `{}`), "acted")
		forget.Store(true)
		k.want(k.call("web__act", `{}`), "acted")
		if times.Load() != 2 {
			t.Errorf("%d sessions", times.Load())
		}
	})
	t.Run("a server that stays away is left alone", func(t *testing.T) {
		k := newKit(t)
		var tries atomic.Int64
		away := atomic.Bool{}
		at := raw(t, func(w http.ResponseWriter, _ *http.Request, method string) {
			if away.Load() {
				tries.Add(1)
				w.WriteHeader(http.StatusServiceUnavailable)
			} else if method == "tools/call" {
				w.Header().Set("Content-Type", "text/event-stream")
				fmt.Fprint(w, "data: garbage\n\n")
			}
		})
		k.load(mcpclient.Config{Name: "web", URL: at})
		k.want(k.call("web__act", `{}`), string(errcode.ToolInterrupted))
		away.Store(true)
		for range 20 {
			k.want(k.call("web__act", `{}`), string(errcode.ToolUnavailable))
		}
		if n := tries.Load(); n > 8 {
			t.Errorf("it was asked %d times in a moment", n)
		}
	})
}
