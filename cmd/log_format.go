package cmd

import (
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/textutil"
)

// logFormat is how a process writes its log and its notices. The zero value writes notices
// as they are.
type logFormat struct {
	stamped bool        // every line has a time
	json    bool        // every line is a JSON object; it implies stamped
	level   *slog.Level // the least level of records; nil leaves it to the place
}

// newLogFormat parses the flags of serve. Level "" is warn.
func newLogFormat(format, level string) (logFormat, error) {
	f := logFormat{stamped: true, level: new(slog.LevelWarn)}
	switch format {
	case "json":
		f.json = true
	case "text":
	default:
		return f, usageError{fmt.Errorf("--log-format %q is unknown; use text or json", format)}
	}
	switch strings.ToLower(level) {
	case "debug", "info", "warn", "error":
		if err := f.level.UnmarshalText([]byte(level)); err != nil {
			return f, usageError{fmt.Errorf("--log-level: %w", err)}
		}
	case "":
	default:
		return f, usageError{fmt.Errorf("--log-level %q is unknown; use debug, info, warn or error", level)}
	}
	return f, nil
}

// handler returns a handler of records of at least this level.
func (f logFormat) handler(out io.Writer, least slog.Level) slog.Handler {
	options := &slog.HandlerOptions{Level: least}
	if f.json {
		return slog.NewJSONHandler(escapingWriter{out}, options)
	}
	return slog.NewTextHandler(out, options)
}

// notices returns a writer of notices to the operator, which do not depend on the level.
// Each write must have complete lines.
func (f logFormat) notices(out io.Writer) io.Writer {
	switch {
	case f.json:
		return noticeWriter(slog.New(f.handler(out, slog.LevelInfo)).Info)
	case f.stamped:
		return noticeWriter(func(text string, _ ...any) {
			at := time.Now().Format("2006-01-02T15:04:05.000Z07:00") // as slog.TextHandler
			for line := range strings.SplitSeq(text, "\n") {
				fmt.Fprintf(out, "%s=%s %s\n", slog.TimeKey, at, textutil.Sanitize(line))
			}
		})
	}
	return out
}

// noticeWriter calls a function with each text that is written, without its last newline.
type noticeWriter func(text string, args ...any)

// Write implements io.Writer.
func (n noticeWriter) Write(text []byte) (int, error) {
	n(strings.TrimSuffix(string(text), "\n"))
	return len(text), nil
}

// escapingWriter escapes what controls a terminal in JSON documents.
type escapingWriter struct{ out io.Writer }

// Write implements io.Writer.
func (w escapingWriter) Write(document []byte) (int, error) {
	if _, err := w.out.Write(textutil.EscapeUnprintable(document)); err != nil {
		return 0, err
	}
	return len(document), nil
}

// logger returns a logger to out, which is stderr, for records of at least this level. With
// --log-level it uses another level. With --verbose it logs all records.
func (c *common) logger(out io.Writer, least slog.Level) *slog.Logger {
	switch {
	case c.verbose:
		least = slog.LevelDebug
	case c.logs.level != nil:
		least = *c.logs.level
	}
	return slog.New(c.logs.handler(out, least))
}
