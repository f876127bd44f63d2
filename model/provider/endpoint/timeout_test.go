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

// slowServer sends status 200 at once and two parts of the answer after delays.
type slowServer struct{ first, second time.Duration }

func (s slowServer) RoundTrip(r *http.Request) (*http.Response, error) {
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

// An answer begins with its first content, not with its header: a slow server
// processes the request in between.
func TestEndpoint_TimeoutsCountFromContent(t *testing.T) {
	const begin, idle, short = 5 * time.Minute, time.Minute, time.Second
	for name, c := range map[string]struct {
		server slowServer
		want   string // the text, or a part of the error
	}{
		"no delay":               {slowServer{0, 0}, "ab"},
		"within both timeouts":   {slowServer{begin - short, idle - short}, "ab"},
		"header without content": {slowServer{begin + short, 0}, "did not begin to answer within 5m0s"},
		"stalls after content":   {slowServer{0, idle + short}, "no data for 1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := endpoint.New(endpoint.Config{Name: "m", URL: "http://m.test", FirstByteTimeout: begin, IdleTimeout: idle, Client: &http.Client{Transport: c.server}})
				body, err := e.PostParts(t.Context(), []byte("{}"))
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

// keepAliveServer sends begins and then again every ten seconds.
type keepAliveServer struct{ begins, again string }

func (a keepAliveServer) RoundTrip(r *http.Request) (*http.Response, error) {
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

// Comments and empty lines do not extend a timeout.
func TestEndpoint_KeepAliveIsNotContent(t *testing.T) {
	const begin, idle = 5 * time.Minute, time.Minute
	for name, c := range map[string]struct {
		server keepAliveServer
		says   string
		after  time.Duration
	}{
		"only comments":             {keepAliveServer{"", ": PROCESSING\n\n"}, "did not begin", begin},
		"comments in parts":         {keepAliveServer{": PROC", "ESSING\n\n: PROC"}, "did not begin", begin},
		"empty lines":               {keepAliveServer{"", "\n"}, "did not begin", begin},
		"comments after content":    {keepAliveServer{"data: 1\n\n", ": ping\r\n\r\n"}, "no data for 1m0s", idle},
		"empty lines after content": {keepAliveServer{"data: 1\n\n", "\n"}, "no data for 1m0s", idle},
		"comment without end":       {keepAliveServer{"data: 1\n\n:", "data"}, "no data for 1m0s", idle},
		"comment before content":    {keepAliveServer{": x\ndata: 1\n", "\n: x\n"}, "no data for 1m0s", idle},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e := endpoint.New(endpoint.Config{Name: "m", URL: "http://m.test", FirstByteTimeout: begin, IdleTimeout: idle, Client: &http.Client{Transport: c.server}})
				body, err := e.PostParts(t.Context(), []byte("{}"))
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

// Every byte of an answer that is not text is content, also one that begins like a comment.
func TestEndpoint_BinaryIsContent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		e := endpoint.New(endpoint.Config{Name: "m", URL: "http://m.test", Binary: true, Client: &http.Client{Transport: keepAliveServer{"\x00\n:", "\x00"}}})
		body, err := e.PostParts(ctx, []byte("{}"))
		if err != nil {
			t.Fatal(err)
		}
		defer body.Close()
		if _, err := io.ReadAll(body); err != context.DeadlineExceeded {
			t.Errorf("got %v, want an answer until the end of the context", err)
		}
	})
}
