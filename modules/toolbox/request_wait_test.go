package toolbox_test

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox"
)

// newBusySource returns a fixture with an HTTP source of maxConns connections. A call of
// its tool long holds one of them; end lets it return and waits for it.
func newBusySource(t *testing.T, maxConns int) (w *fixture, end func()) {
	t.Helper()
	arrived, release := make(chan struct{}), make(chan struct{})
	base := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/long" {
			arrived <- struct{}{}
			<-release
		}
	})
	c := parse(t, fmt.Sprintf(`{"kind": "source", "name": "api", "type": "http", "baseUrl": %q}
---
{kind: tool, name: long, type: http, source: api, description: d, method: POST, path: /long}
---
{kind: tool, name: next, type: http, source: api, description: d, method: POST, path: /next, timeout: 50ms}
---
{kind: tool, name: later, type: http, source: api, description: d, method: POST, path: /later}`, base))
	c.Sources[0].MaxConns = maxConns
	w = newFixture(t, c)
	w.change = func(c *toolbox.Config) {
		c.Network = func() toolbox.Network {
			return toolbox.Network{Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}}
		}
	}
	w.load(c)
	done := make(chan bool)
	go func() {
		w.call(t.Context(), "long", `{}`)
		close(done)
	}()
	<-arrived
	return w, func() {
		close(release)
		<-done
	}
}

// A request that timed out before it got a connection was not sent, so its outcome is
// known.
func TestRequest_TimeoutBeforeConnectionIsUnavailable(t *testing.T) {
	w, end := newBusySource(t, 1)
	if message := wantCode(t, w.call(t.Context(), "next", `{}`), errcode.ToolUnavailable); strings.Contains(message, "unknown") {
		t.Errorf("got %q", message)
	}
	end()
	if got := w.call(t.Context(), "later", `{}`); got.Result.IsError {
		t.Errorf("the source counts as unreachable: %s", resultText(got.Result))
	}
}

// A caller whose requests hang leaves a connection of the source for other callers.
func TestRequest_CallersShareConnections(t *testing.T) {
	w, end := newBusySource(t, 2)
	wantCode(t, w.call(t.Context(), "next", `{}`), errcode.ToolUnavailable)
	if got := w.callAs(t.Context(), bob, "later", `{}`); got.Result.IsError {
		t.Errorf("another caller: %s", resultText(got.Result))
	}
	end()
}

// The status of an error response is reported even if its body is too long.
func TestRequest_LongErrorBodyKeepsStatus(t *testing.T) {
	base := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_, _ = io.WriteString(w, strings.Repeat("taken ", 1000))
	})
	w := newHTTPFixture(t, base, `name: book, method: POST, path: /, maxResponseBytes: 100`)
	answer := w.call(t.Context(), "book", `{}`)
	if message := wantCode(t, answer, errcode.ToolExecutionFailed); !strings.Contains(message, "409: taken") {
		t.Errorf("got %q", message)
	}
	if text := resultText(answer.Result); !strings.Contains(text, `"truncated":true`) {
		t.Errorf("the body is cut and the error says nothing of it: %s", text)
	}
}
