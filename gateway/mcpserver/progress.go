package mcpserver

import (
	"context"
	"errors"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/tool"
)

// How much of a call's progress is passed on: what comes while so many reports
// wait to be sent is left out, and so is what a message has beyond its most
// bytes.
const (
	maxReports = 64
	maxMessage = 1000
)

// withProgress runs a call and has its progress sent, one report at a time, by the
// goroutine that called. As the protocol wants it, progress only grows.
func (s *Server) withProgress(ctx context.Context, send func(tool.Progress), run func(context.Context) outcome) outcome {
	reports, done := make(chan tool.Progress, maxReports), make(chan outcome, 1)
	inner := tool.WithProgress(ctx, func(p tool.Progress) {
		select {
		case reports <- p:
		default:
		}
	})
	go func() { done <- s.guarded(inner, run) }()
	pass := tool.Monotonic(func(p tool.Progress) { send(sendable(p)) })
	for {
		select {
		case p := <-reports:
			pass(p)
		case o := <-done:
			for len(reports) > 0 {
				pass(<-reports)
			}
			return o
		}
	}
}

// guarded runs a call; a panic is a fault of that call alone.
func (s *Server) guarded(ctx context.Context, run func(context.Context) outcome) (o outcome) {
	defer func() {
		if p := recover(); p != nil {
			s.log.Error("MCP call panicked", "panic", p, "stack", string(debug.Stack()))
			o = outcome{fault: errBroke}
		}
	}()
	return run(ctx)
}

// errBroke: something panicked; the log has how.
var errBroke = errors.New("the call broke down")

// sendable gives progress without a total that is none, and with a short message.
func sendable(p tool.Progress) tool.Progress {
	if math.IsNaN(p.Total) || math.IsInf(p.Total, 0) || p.Total < p.Done {
		p.Total = 0
	}
	p.Message = short(p.Message, maxMessage)
	return p
}

// short cuts text to at most so many bytes.
func short(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}

// progressNote is the notification of a call's progress; token is JSON.
func progressNote(token string, p tool.Progress) []byte {
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

// events writes server-sent events to a client, from the first on.
type events struct {
	w      http.ResponseWriter
	opened bool
}

// send sends one message. Its newlines, which JSON has between values alone,
// would end the event.
func (e *events) send(message []byte) {
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
	_, _ = e.w.Write(append(b, "\n\n"...)) // a peer that has gone is nobody's error
	_ = http.NewResponseController(e.w).Flush()
}

// accepted says which answers a client takes: single documents, streams, or
// anything, as one does that does not say. Who takes anything takes the simplest.
func accepted(values []string) (document, stream, anything bool) {
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
