package gateway_test

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/test/buffer"
)

func TestServe_FinishesRequestsOnShutdown(t *testing.T) {
	dir := t.TempDir()
	l, err := gateway.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	reached, release := make(chan struct{}), make(chan struct{})
	slow := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		close(reached)
		<-release
		_, _ = w.Write([]byte(`{"status":"ok"}`))
	})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, slow, nil) }()
	c, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() {
		_, err := c.CheckHealth(context.Background())
		answered <- err
	}()
	<-reached
	cancel()
	close(release)
	if err := <-answered; err != nil {
		t.Errorf("the request in progress: %v", err)
	}
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
	if _, err := client.Dial(dir); !errors.Is(err, client.ErrNotServed) {
		t.Errorf("after the end: %v, want ErrNotServed", err)
	}
}

func TestServe_EndsStreamsOnShutdown(t *testing.T) {
	m, release := blockedTeamModel()
	f := newFixture(t, m)
	defer close(release)
	dir := t.TempDir()
	l, err := gateway.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, f.Handler, nil) }()
	c, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	var broken error
	for _, err := range c.TaskEvents(t.Context(), string(f.StartTask(t, "go")), 0, true) {
		cancel()
		broken = err
	}
	if broken == nil {
		t.Error("the stream ended as if the task had")
	}
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
}

// fullListener fails to accept the first connection, as if too many files were open.
type fullListener struct {
	net.Listener
	failed atomic.Bool
}

// Accept implements net.Listener.
func (l *fullListener) Accept() (net.Conn, error) {
	if l.failed.CompareAndSwap(false, true) {
		return nil, &net.OpError{Op: "accept", Net: "unix", Err: syscall.EMFILE}
	}
	return l.Listener.Accept()
}

// What net/http reports is in the log, in plain words.
func TestServe_LogsServerErrors(t *testing.T) {
	dir := t.TempDir()
	l, err := gateway.ListenUnix(dir)
	if err != nil {
		t.Fatal(err)
	}
	var log buffer.SyncBuffer
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("broken") })
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- gateway.Serve(ctx, &fullListener{Listener: l}, handler, slog.New(slog.NewTextHandler(&log, nil)))
	}()
	c, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.CheckHealth(t.Context()); err == nil {
		t.Error("a panic is a success")
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("serve: %v", err)
	}
	text := log.String()
	for _, want := range []string{`level=ERROR msg="no connection can be accepted" error="accept unix: `, `level=ERROR msg="a request panicked" error="`, "broken"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in:\n%s", want, text)
		}
	}
	if strings.Contains(text, "http: ") {
		t.Errorf("words of net/http in:\n%s", text)
	}
}
