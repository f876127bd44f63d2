package cmd

import (
	"bytes"
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"github.com/rolecall/rolecall/gateway/client"
)

// Requests on the socket wait until the session is ready; those for the health do not.
func TestServeSocket_HoldsRequestsUntilReady(t *testing.T) {
	dir := t.TempDir()
	s, err := openSession(&common{launcher: launcher, data: dir, err: &bytes.Buffer{}}, &terminal{out: io.Discard}, sessionOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	stop, err := s.ServeSocket()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.Dial(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := api.CheckHealth(t.Context()); err != nil {
		t.Errorf("the health: %v", err)
	}
	list := func(ctx context.Context) (err error) {
		for _, err = range api.ListTasks(ctx, "") {
		}
		return err
	}
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := list(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before it is ready: %v, want a request that waits", err)
	}
	s.MarkReady()
	s.MarkReady()
	if err := list(t.Context()); err != nil {
		t.Errorf("when it is ready: %v", err)
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}
