package gateway

import (
	"context"
	"log"
	"log/slog"
	"strings"
)

// errorLog returns a log for http.Server that writes what the server reports to l in plain
// words. A nil l discards.
func errorLog(l *slog.Logger) *log.Logger {
	if l == nil {
		l = slog.New(slog.DiscardHandler)
	}
	return log.New(serverErrors{l}, "", 0)
}

// serverErrors is an io.Writer. Each Write is one report of http.Server, in its words.
type serverErrors struct{ log *slog.Logger }

// Write implements io.Writer.
func (s serverErrors) Write(line []byte) (int, error) {
	text := strings.TrimPrefix(strings.TrimSpace(string(line)), "http: ")
	for _, r := range []struct {
		prefix, words string
		level         slog.Level
	}{
		{"Accept error: ", "no connection can be accepted", slog.LevelError},
		{"panic serving ", "a request panicked", slog.LevelError},
		{"TLS handshake error from ", "a TLS connection failed", slog.LevelDebug}, // by any host, without a limit
	} {
		if cause, ok := strings.CutPrefix(text, r.prefix); ok {
			s.log.Log(context.Background(), r.level, r.words, "error", cause)
			return len(line), nil
		}
	}
	s.log.Error("the HTTP server reports an error", "error", text)
	return len(line), nil
}
