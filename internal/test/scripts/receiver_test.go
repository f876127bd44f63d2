package scripts_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"sync/atomic"

	"github.com/rogpeppe/go-internal/testscript"
)

// receiver implements receiver VAR FILE, which starts a receiver of webhooks and sets VAR to its
// address. It writes the id of each message to FILE. It does not answer the first one, so that the
// sender can be killed during the delivery, and accepts the others.
func receiver(ts *testscript.TestScript, neg bool, args []string) {
	path := ts.MkAbs(args[1])
	var count atomic.Int32
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the end of the connection is noticed after the body
		n := count.Add(1)
		ids, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err != nil {
			w.WriteHeader(http.StatusInternalServerError)
			return
		}
		fmt.Fprintf(ids, "message %d: %s\n", n, r.Header.Get("webhook-id"))
		ids.Close()
		if n == 1 {
			select {
			case <-r.Context().Done(): // the sender is dead
			case <-ended:
			}
		}
	}))
	ts.Defer(func() { close(ended); server.Close() })
	ts.Setenv(args[0], server.URL)
}
