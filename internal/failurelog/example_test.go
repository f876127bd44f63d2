package failurelog_test

import (
	"errors"
	"log/slog"
	"net/http/httptest"
	"os"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/failurelog"
)

func Example() {
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey { // differs each time
			return slog.Attr{}
		}
		return a
	}})
	l := failurelog.New(slog.New(handler))
	r := httptest.NewRequest("GET", "/api/a%0Ab", nil)
	for range 1000 { // of these, 10 are logged
		l.LogRequest(slog.LevelError, "request failed", identity.ByCaller("ann", "clerk"), r, errors.New("no room"))
	}
	r = httptest.NewRequest("GET", "/api", nil)
	l.LogRequest(slog.LevelError, "request failed", identity.ByCaller("bob", "clerk"), r, errors.New("no room"))
	// Output:
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api/a%0Ab error="no room"
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api/a%0Ab error="no room"
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api/a%0Ab error="no room"
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api/a%0Ab error="no room"
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api/a%0Ab error="no room"
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api/a%0Ab error="no room"
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api/a%0Ab error="no room"
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api/a%0Ab error="no room"
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api/a%0Ab error="no room"
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api/a%0Ab error="no room"
	// level=ERROR msg="request failed" remote=192.0.2.1 method=GET path=/api error="no room" leftOut=990
}
