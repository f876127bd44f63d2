package endpoint_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/model/provider/endpoint"
)

// slow is a server that says 200 at once; its two pieces come later.
type slow struct{ first, second time.Duration }

func (s slow) RoundTrip(r *http.Request) (*http.Response, error) {
	out, in := io.Pipe()
	context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	go func() {
		defer in.Close()
		for _, p := range []struct {
			text string
			wait time.Duration
		}{{"a", s.first}, {"b", s.second}} {
			select {
			case <-time.After(p.wait):
			case <-r.Context().Done():
				in.CloseWithError(r.Context().Err())
				return
			}
			io.WriteString(in, p.text)
		}
	}()
	return &http.Response{StatusCode: 200, Body: out}, nil
}

// An answer begins with its first piece, not with its header: a server on a
// small machine reads the question in between.
func TestHowLongAnAnswerMayTake(t *testing.T) {
	const begin, idle, short = 5 * time.Minute, time.Minute, time.Second
	for name, c := range map[string]struct {
		server slow
		want   string // the text, or a part of the error
	}{
		"at once":                                {slow{0, 0}, "ab"},
		"late to begin, and then steady":         {slow{begin - short, idle - short}, "ab"},
		"never begun, though there was a header": {slow{begin + short, 0}, "did not begin to answer within 5m0s"},
		"begun, and then silent":                 {slow{0, idle + short}, "nothing came for 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := endpoint.New(endpoint.Config{Name: "m", URL: "http://m.test", FirstByteTimeout: begin, IdleTimeout: idle, Client: &http.Client{Transport: c.server}})
				body, err := e.Post(t.Context(), []byte("{}"))
				if err != nil {
					t.Fatal(err)
				}
				defer body.Close()
				got, err := io.ReadAll(body)
				if text := string(got); err == nil && text != c.want || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %q and %v, want %q", text, err, c.want)
				}
			})
		})
	}
}

// alive is a server that only keeps its connection alive, from the beginning or
// after a piece of an answer.
type alive struct{ begins, again string }

func (a alive) RoundTrip(r *http.Request) (*http.Response, error) {
	out, in := io.Pipe()
	context.AfterFunc(r.Context(), func() { out.CloseWithError(r.Context().Err()) })
	go func() {
		_, err := io.WriteString(in, a.begins)
		for err == nil {
			select {
			case <-time.After(10 * time.Second):
				_, err = io.WriteString(in, a.again)
			case <-r.Context().Done():
				err = r.Context().Err()
			}
		}
	}()
	return &http.Response{StatusCode: 200, Body: out}, nil
}

// What keeps a connection alive keeps nobody waiting for ever.
func TestOnlyKeptAlive(t *testing.T) {
	const begin, idle = 5 * time.Minute, time.Minute
	for name, c := range map[string]struct {
		server alive
		says   string
		after  time.Duration
	}{
		"comments alone":              {alive{"", ": PROCESSING\n\n"}, "did not begin", begin},
		"comments in pieces":          {alive{": PROC", "ESSING\n\n: PROC"}, "did not begin", begin},
		"empty lines":                 {alive{"", "\n"}, "did not begin", begin},
		"comments in the middle":      {alive{"data: 1\n\n", ": ping\r\n\r\n"}, "nothing came for 1m0s", idle},
		"empty lines in the middle":   {alive{"data: 1\n\n", "\n"}, "nothing came for 1m0s", idle},
		"a comment that has no end":   {alive{"data: 1\n\n:", "data"}, "nothing came for 1m0s", idle},
		"a comment just before there": {alive{": x\ndata: 1\n", "\n: x\n"}, "nothing came for 1m0s", idle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := endpoint.New(endpoint.Config{Name: "m", URL: "http://m.test", FirstByteTimeout: begin, IdleTimeout: idle, Client: &http.Client{Transport: c.server}})
				body, err := e.Post(t.Context(), []byte("{}"))
				if err != nil {
					t.Fatal(err)
				}
				defer body.Close()
				began := time.Now()
				_, err = io.ReadAll(body)
				if took := time.Since(began); err == nil || !strings.Contains(err.Error(), c.says) || took != c.after {
					t.Errorf("got %v after %v, want %q after %v", err, took, c.says, c.after)
				}
			})
		})
	}
}
