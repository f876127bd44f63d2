package failurelog_test

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/failurelog"
	"github.com/rolecall/rolecall/internal/test/buffer"
)

func lines(b *buffer.SyncBuffer) int { return strings.Count(b.String(), "\n") }

func TestLog_LimitsLinesOfSender(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer.SyncBuffer
		l := failurelog.New(slog.New(slog.NewTextHandler(&out, nil)))
		fail := func(sender string, n int) {
			for range n {
				l.LogFailure(slog.LevelError, "request failed", sender, errors.New("no room"))
			}
		}
		fail("ann", 1000)
		if n := lines(&out); n != 10 {
			t.Errorf("one sender caused %d lines, want 10", n)
		}
		fail("bob", 1)
		if n := lines(&out); n != 11 || !strings.Contains(out.String(), "leftOut=990") {
			t.Errorf("with another sender there are %d lines: %s", n, &out)
		}
		for i := range 1000 {
			fail(fmt.Sprint("sender ", i), 1)
		}
		if n := lines(&out); n != 100 {
			t.Errorf("all senders caused %d lines, want 100", n)
		}
		time.Sleep(10 * time.Second) // in synctest's time
		synctest.Wait()
		if n := lines(&out); n != 101 || !strings.Contains(out.String(), `msg="lines of this log were left out" leftOut=911`) {
			t.Errorf("at the end of the window there are %d lines", n)
		}
		fail("ann", 1)
		if n := lines(&out); n != 102 || strings.Contains(out.String(), "leftOut=0") {
			t.Errorf("in the next window there are %d lines", n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := lines(&out); n != 102 {
			t.Errorf("after a quiet minute there are %d lines", n)
		}
	})
}

// A line that says how many were left out makes the summary superfluous.
func TestLog_SaysOnceWhatWasLeftOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer.SyncBuffer
		l := failurelog.New(slog.New(slog.NewTextHandler(&out, nil)))
		for range 25 {
			l.LogLine(slog.LevelWarn, "call denied", "ann", "tool", "a\x1b[31m\nb")
		}
		l.LogLine(slog.LevelWarn, "call denied", "bob")
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := out.String(); lines(&out) != 11 || strings.Count(got, "leftOut=15") != 1 || strings.Contains(got, "\x1b") {
			t.Errorf("got %s", got)
		}
	})
}

func TestLog_BoundsAndEscapesRequest(t *testing.T) {
	var out buffer.SyncBuffer
	l := failurelog.New(slog.New(slog.NewTextHandler(&out, nil)))
	for _, sender := range []identity.Principal{{}, identity.ByCaller("ann", "r")} {
		out.Drain()
		r := httptest.NewRequest("POST", "/", nil)
		r.Method = strings.Repeat("M", 60_000)
		r.URL = &url.URL{Path: "/a\x1b[31m\n\u202e" + strings.Repeat("x", 60_000)}
		l.LogRequest(slog.LevelError, "request failed", sender, r, errors.New(strings.Repeat("e", 60_000)))
		if s := out.String(); len(s) > 9000 || lines(&out) != 1 || !strings.Contains(s, "/a%1B[31m%0A%E2%80%AE") && !strings.Contains(s, "/a%1B%5B31m%0A%E2%80%AE") {
			t.Errorf("%d bytes: %.300s", len(s), s)
		}
	}
}

func TestLog_KnowsUnauthenticatedSenderByHost(t *testing.T) {
	var out buffer.SyncBuffer
	l := failurelog.New(slog.New(slog.NewTextHandler(&out, nil)))
	for port := range 1000 {
		r := httptest.NewRequest("GET", "/", nil)
		r.RemoteAddr = fmt.Sprint("192.0.2.1:", port)
		l.LogRequest(slog.LevelError, "request failed", identity.Principal{}, r, errors.New("x"))
	}
	if n := lines(&out); n != 10 {
		t.Errorf("one host caused %d lines, want 10", n)
	}
}

// All that is logged to a bounded logger shares one limit, also with attributes and in a group.
func TestBound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out buffer.SyncBuffer
		l := failurelog.Bound(slog.New(slog.NewTextHandler(&out, nil)).With("module", "far"))
		for i := range 400 {
			l.Warn("question declined", "number", i)
			l.With("tool", "act").Error("tool left out")
			l.WithGroup("server").Info("connected")
		}
		if n := lines(&out); n != 100 || strings.Count(out.String(), "module=far") != 100 {
			t.Errorf("%d lines, want 100", n)
		}
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if text := out.String(); lines(&out) != 101 || !strings.Contains(text, "level=ERROR msg=\"lines of this log were left out\" module=far leftOut=1100") {
			t.Errorf("the lines that were left out: %.300s", text[strings.LastIndex(strings.TrimSpace(text), "\n")+1:])
		}
		l.Warn("question declined")
		if n := lines(&out); n != 102 {
			t.Errorf("%d lines in the next window", n)
		}
	})
}
