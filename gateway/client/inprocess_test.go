package client_test

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/gateway/wire"
)

// A request whose context has ended does not reach the handler, however fast that is.
func TestLocal_RejectsEndedContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c := client.NewLocal(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		t.Error("the handler is called")
		w.Write([]byte("{}"))
	}))
	if _, err := c.FindTask(ctx, "t"); !errors.Is(err, context.Canceled) {
		t.Errorf("read: %v", err)
	}
	if _, err := c.StartTask(ctx, wire.TaskRequest{Text: "x"}, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("write: %v", err)
	}
}
