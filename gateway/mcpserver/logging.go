//lint:file-ignore SA1019 the SDK marks sampling, roots and logging as deprecated; clients and servers have them

package mcpserver

import (
	"context"
	"log/slog"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// Limits of the log messages of one call. Further messages, and messages that the client does not
// take in time, are dropped.
const (
	maxLogMessages = 100
	maxLogMessage  = 1000 // bytes
)

// setLogLevel handles logging/setLevel: calls of the session send log messages from now on. The
// SDK compares the levels.
func (s *Server) setLogLevel(req *sdk.ServerRequest[*sdk.SetLoggingLevelParams]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if session := s.sessions[req.Session.ID()]; session != nil {
		session.wantsLog = true
	}
}

// sessionWantsLog reports whether the client of a session has set a log level.
func (s *Server) sessionWantsLog(session *session) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return session.wantsLog
}

// runWithLog runs a call whose tool sends log messages to the client of session, and returns
// when they are sent. The SDK sends the messages that the client has asked for.
func (s *Server) runWithLog(ctx context.Context, session *sdk.ServerSession, name string, run func(context.Context) outcome) outcome {
	messages := make(chan tool.LogMessage, maxLogMessages)
	var sent sync.WaitGroup
	sent.Go(func() {
		for m := range messages {
			params := &sdk.LoggingMessageParams{Level: logLevel(m.Level), Logger: name, Data: textutil.Truncate(textutil.RemoveInvisible(m.Text), maxLogMessage)}
			if err := session.Log(ctx, params); err != nil {
				s.log.Debug("MCP log message not sent", "error", err)
			}
		}
	})
	var mu sync.Mutex // guards left and ended
	left, ended := maxLogMessages, false
	o := s.callRecovered(tool.WithLog(ctx, func(m tool.LogMessage) {
		mu.Lock()
		defer mu.Unlock()
		if !ended && left > 0 {
			left--
			messages <- m // has room for all
		}
	}), run)
	mu.Lock()
	ended = true
	close(messages)
	mu.Unlock()
	sent.Wait()
	return o
}

// logLevel returns the level in the words of the protocol.
func logLevel(l slog.Level) sdk.LoggingLevel {
	switch {
	case l >= slog.LevelError:
		return "error"
	case l >= slog.LevelWarn:
		return "warning"
	case l >= slog.LevelInfo:
		return "info"
	}
	return "debug"
}
