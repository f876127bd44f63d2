// Package failurelog logs failed requests and denied calls, with bounds on the lines that
// one sender causes and on their length.
//
//	l := failurelog.New(log)
//	l.LogRequest(slog.LevelError, "request failed", sender, r, err)
//
// It does not decide what is a failure, and it does not answer requests. Bound limits the lines of a program
// that is not trusted.
package failurelog

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
)

// Limits of a window: the lines of one sender, and the lines of all senders.
const (
	window         = 10 * time.Second
	linesPerSender = 10
	maxLines       = 100
)

// Limits of what a sender chooses, in bytes.
const (
	maxMethod = 16
	maxPath   = 256
	maxError  = 8 << 10 // a stack has its place in it
)

// Log logs failures. It leaves out lines that exceed the limits. The next line, or a line at
// the end of the window, says how many lines were left out. All methods are safe for
// concurrent use.
type Log struct {
	log       *slog.Logger
	perSender int // lines of one sender in a window

	mu      sync.Mutex // guards the fields below
	begin   time.Time  // of the window
	lines   map[string]int
	total   int
	leftOut int        // since the last line
	level   slog.Level // the highest of the lines left out
	summary bool       // a summary is due at the end of the window
}

// New returns a Log that writes to log. A nil log discards.
func New(log *slog.Logger) *Log {
	return &Log{log: cmp.Or(log, slog.New(slog.DiscardHandler)), perSender: linesPerSender, lines: map[string]int{}}
}

// Bound returns a logger for what one program that is not trusted causes. All of its lines together have the limit
// that a Log has for all senders.
func Bound(log *slog.Logger) *slog.Logger {
	limit := New(log)
	limit.perSender = maxLines
	return slog.New(bounded{limit.log.Handler(), limit})
}

// bounded is a handler that leaves out lines over a limit.
type bounded struct {
	slog.Handler
	limit *Log
}

// Handle implements slog.Handler.
func (b bounded) Handle(ctx context.Context, r slog.Record) error {
	leftOut, ok := b.limit.take("", r.Level)
	if !ok {
		return nil
	}
	if leftOut > 0 {
		r = r.Clone()
		r.Add("leftOut", leftOut)
	}
	return b.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (b bounded) WithAttrs(attrs []slog.Attr) slog.Handler {
	return bounded{b.Handler.WithAttrs(attrs), b.limit}
}

// WithGroup implements slog.Handler.
func (b bounded) WithGroup(name string) slog.Handler {
	return bounded{b.Handler.WithGroup(name), b.limit}
}

// LogRequest logs the failure of an HTTP request, with the address of its sender. A sender that
// is not authenticated is known by that address.
func (l *Log) LogRequest(level slog.Level, text string, sender identity.Principal, r *http.Request, err error) {
	name, remote := sender.String(), hostOf(r.RemoteAddr)
	if sender == (identity.Principal{}) {
		name = remote
	}
	l.LogFailure(level, text, name, err, "remote", remote, "method", textutil.Truncate(r.Method, maxMethod), "path", textutil.Truncate(r.URL.EscapedPath(), maxPath))
}

// LogFailure logs a failure of a sender with attributes, whose length the caller has to bound.
func (l *Log) LogFailure(level slog.Level, text, sender string, err error, attributes ...any) {
	if l.log.Enabled(context.Background(), level) {
		l.LogLine(level, text, sender, append(attributes, "error", textutil.Truncate(err.Error(), maxError))...)
	}
}

// LogLine logs a line that a sender has caused, with attributes, whose length the caller has to
// bound.
func (l *Log) LogLine(level slog.Level, text, sender string, attributes ...any) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	leftOut, ok := l.take(sender, level)
	if !ok {
		return
	}
	if leftOut > 0 {
		attributes = append(attributes, "leftOut", leftOut)
	}
	l.log.Log(context.Background(), level, text, attributes...)
}

// take reports whether a sender may cause a line now, and how many were left out since the
// last line.
func (l *Log) take(sender string, level slog.Level) (leftOut int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	if now.Sub(l.begin) >= window {
		l.begin, l.total = now, 0
		clear(l.lines)
	}
	if l.total >= maxLines || l.lines[sender] >= l.perSender {
		l.countLeftOut(level, l.begin.Add(window).Sub(now))
		return 0, false
	}
	l.total++
	l.lines[sender]++
	leftOut, l.leftOut = l.leftOut, 0
	return leftOut, true
}

// countLeftOut counts a line that is left out. It must be called with mu held.
func (l *Log) countLeftOut(level slog.Level, rest time.Duration) {
	if l.leftOut++; l.leftOut == 1 || level > l.level {
		l.level = level
	}
	if !l.summary {
		l.summary = true
		time.AfterFunc(rest, l.summarize)
	}
}

// summarize says how many lines were left out, if no line has said it since.
func (l *Log) summarize() {
	l.mu.Lock()
	n, level := l.leftOut, l.level
	l.leftOut, l.summary = 0, false
	l.mu.Unlock()
	if n > 0 {
		l.log.Log(context.Background(), level, "lines of this log were left out", "leftOut", n)
	}
}

// hostOf returns the host of a network address, or the address if it has none.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
