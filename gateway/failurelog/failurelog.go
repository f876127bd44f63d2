// Package failurelog logs failed requests, with bounds on the lines that one sender
// causes and on their length.
//
//	l := failurelog.New(log)
//	l.Request(slog.LevelError, "request failed", sender, r, err)
//
// It does not decide which requests are failures, and it does not answer them.
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

// Limits of a window: the lines of one sender, and those of all senders.
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

// Log logs failures. It leaves out what exceeds the limits, and says in a later line how
// many lines that were. All methods are safe for concurrent use.
type Log struct {
	log *slog.Logger

	mu      sync.Mutex // guards the fields below
	begin   time.Time  // of the window
	lines   map[string]int
	all     int
	leftOut int // since the last line
}

// New returns a Log that writes to log. A nil log discards.
func New(log *slog.Logger) *Log {
	return &Log{log: cmp.Or(log, slog.New(slog.DiscardHandler)), lines: map[string]int{}}
}

// Request logs the failure of an HTTP request. A sender that is not authenticated is known
// by its address.
func (l *Log) Request(level slog.Level, text string, sender identity.Principal, r *http.Request, err error) {
	name := sender.String()
	if sender == (identity.Principal{}) {
		name = hostOf(r.RemoteAddr)
	}
	l.Failure(level, text, name, err, "method", textutil.Truncate(r.Method, maxMethod), "path", textutil.Truncate(r.URL.EscapedPath(), maxPath))
}

// Failure logs a failure of a sender with attributes, whose length the caller has to bound.
func (l *Log) Failure(level slog.Level, text, sender string, err error, attributes ...any) {
	if !l.log.Enabled(context.Background(), level) {
		return
	}
	leftOut, ok := l.take(sender)
	if !ok {
		return
	}
	attributes = append(attributes, "error", textutil.Truncate(err.Error(), maxError))
	if leftOut > 0 {
		attributes = append(attributes, "leftOut", leftOut)
	}
	l.log.Log(context.Background(), level, text, attributes...)
}

// take reports whether a sender may cause a line now, and how many were left out since the
// last line.
func (l *Log) take(sender string) (leftOut int, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.begin) >= window {
		l.begin, l.all = now, 0
		clear(l.lines)
	}
	if l.all >= maxLines || l.lines[sender] >= linesPerSender {
		l.leftOut++
		return 0, false
	}
	l.all++
	l.lines[sender]++
	leftOut, l.leftOut = l.leftOut, 0
	return leftOut, true
}

// hostOf returns the host of a network address, or the address if it has none.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
