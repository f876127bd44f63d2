package mcpserver

import (
	"context"
	"errors"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// Limits for the progress of a call. Reports are dropped while maxReports wait to
// be sent; messages are cut after maxProgressMessage bytes.
const (
	maxReports         = 64
	maxProgressMessage = 1000
)

// runWithProgress runs a call in a new goroutine and returns its outcome. It
// calls send for each progress report, in the calling goroutine, with
// increasing progress as the protocol requires.
func (s *Server) runWithProgress(ctx context.Context, send func(tool.Progress), run func(context.Context) outcome) outcome {
	reports, done := make(chan tool.Progress, maxReports), make(chan outcome, 1)
	inner := tool.WithProgress(ctx, func(p tool.Progress) {
		select {
		case reports <- p:
		default:
		}
	})
	go func() { done <- s.callRecovered(inner, run) }()
	forward := tool.MonotonicProgress(func(p tool.Progress) { send(sanitizeProgress(p)) })
	for {
		select {
		case p := <-reports:
			forward(p)
		case o := <-done:
			for len(reports) > 0 {
				forward(<-reports)
			}
			return o
		}
	}
}

// callRecovered runs a call and turns a panic into an internal error.
func (s *Server) callRecovered(ctx context.Context, run func(context.Context) outcome) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("MCP call panicked", "panic", p, "stack", string(debug.Stack()))
			o = outcome{err: errPanicked}
		}
	}()
	return run(ctx)
}

// errPanicked reports that a call panicked; the log has the stack.
var errPanicked = errors.New("call panicked; see the log")

// sanitizeProgress drops a total that is not a number or is below the progress,
// and truncates the message.
func sanitizeProgress(p tool.Progress) tool.Progress {
	if math.IsNaN(p.Total) || math.IsInf(p.Total, 0) || p.Total < p.Done {
		p.Total = 0
	}
	p.Message = textutil.Truncate(p.Message, maxProgressMessage)
	return p
}

// progressNotification returns a progress notification. token is encoded JSON.
func progressNotification(token string, p tool.Progress) []byte {
	b := append(make([]byte, 0, 160+len(p.Message)), `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":`...)
	b = append(append(b, token...), `,"progress":`...)
	b = strconv.AppendFloat(b, p.Done, 'g', -1, 64)
	if p.Total != 0 {
		b = strconv.AppendFloat(append(b, `,"total":`...), p.Total, 'g', -1, 64)
	}
	if p.Message != "" {
		b = gjson.AppendJSONString(append(b, `,"message":`...), p.Message)
	}
	return append(b, `}}`...)
}

// eventWriter writes server-sent events. The first event sends the headers.
type eventWriter struct {
	w      http.ResponseWriter
	opened bool
}

// send writes one message as an event. It replaces newlines, which JSON has
// only between values, because a newline would end the event's data.
func (e *eventWriter) send(message []byte) {
	if !e.opened {
		e.opened = true
		e.w.Header().Set("Content-Type", "text/event-stream")
		e.w.WriteHeader(http.StatusOK)
	}
	b := append(make([]byte, 0, len(message)+32), "event: message\ndata: "...)
	for _, c := range message {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		b = append(b, c)
	}
	_, _ = e.w.Write(append(b, "\n\n"...)) // an error means that the client has disconnected
	_ = http.NewResponseController(e.w).Flush()
}

// parseAccept reads the Accept header: whether the client accepts JSON
// documents, event streams or anything. An absent header accepts anything.
// Clients that accept anything are sent documents.
func parseAccept(values []string) (document, stream, anything bool) {
	anything = strings.TrimSpace(strings.Join(values, "")) == ""
	for _, value := range values {
		for kind := range strings.SplitSeq(value, ",") {
			name, _, _ := strings.Cut(kind, ";")
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "application/json", "application/*":
				document = true
			case "text/event-stream", "text/*":
				stream = true
			case "*/*":
				anything = true
			}
		}
	}
	return document || anything, stream, anything
}
