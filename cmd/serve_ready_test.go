package cmd

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A server that still resumes its tasks answers /healthz and /readyz over TCP. When the start
// fails it stops listening.
func TestServeHTTP_AnswersBeforeReady(t *testing.T) {
	c := &common{launcher: launcher, data: t.TempDir(), err: t.Output()}
	s, err := openSession(c, &terminal{out: t.Output()}, sessionOptions{serve: true, fatal: func(error) {}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := s.ListenHTTP("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	url, errStart := "http://"+l.Addr().String(), errors.New("the configuration is wrong")
	get := func(path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return 0, err.Error()
		}
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Error(err)
		}
		return answer.StatusCode, string(body)
	}
	ended := 0
	err = s.serveHTTP(t.Context(), l, func() (func(), error) {
		if status, body := get("/healthz"); status != http.StatusOK {
			t.Errorf("healthz: %d %s", status, body)
		}
		if status, body := get("/readyz"); status != http.StatusServiceUnavailable || !strings.Contains(body, `"starting"`) {
			t.Errorf("readyz: %d %s", status, body)
		}
		return func() { ended++ }, errStart
	})
	if !errors.Is(err, errStart) || ended != 1 {
		t.Errorf("got %v, and the end was called %d times", err, ended)
	}
	if status, body := get("/healthz"); status != 0 {
		t.Errorf("after a failed start: %d %s", status, body)
	}

	l, err = s.ListenHTTP("127.0.0.1:0", nil)
	if err != nil {
		t.Fatal(err)
	}
	url = "http://" + l.Addr().String()
	ctx, cancel := context.WithCancel(t.Context())
	err = s.serveHTTP(ctx, l, func() (func(), error) {
		s.MarkReady()
		if status, body := get("/readyz"); status != http.StatusOK {
			t.Errorf("when it is ready: %d %s", status, body)
		}
		cancel()
		return nil, nil
	})
	if err != nil {
		t.Error(err)
	}
}
