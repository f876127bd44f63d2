package gateway_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/client"
)

func TestServe_FinishesRequestsOnShutdown(t *testing.T) {
	dir := t.TempDir()
	l, err := gateway.Listen(dir)
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
	go func() { done <- gateway.Serve(ctx, l, slow) }()
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
	l, err := gateway.Listen(dir)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- gateway.Serve(ctx, l, f.Handler) }()
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
