package mcpclient

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/modules"
)

// minRelistInterval is the least time between two lists that a server asks for.
const minRelistInterval = 250 * time.Millisecond

// reconnector keeps a server reachable: it connects when somebody needs it, lists
// what there is, and lists again when the server says that it changed.
type reconnector struct {
	config  Config
	log     *slog.Logger
	onTools func(context.Context, []modules.Pin) error // takes what the server offers
	life    context.Context                            // ends with the link
	end     context.CancelFunc
	work    sync.WaitGroup

	sem chan struct{} // holds a token while nobody changes what follows

	seen atomic.Pointer[conn] // conn, for those without the turn

	conn     *conn
	failures int
	pause    backoff.Backoff
	until    time.Time // no try before
	last     error     // of the last try
}

func newLink(c Config, log *slog.Logger, learn func(context.Context, []modules.Pin) error) *reconnector {
	l := &reconnector{config: c, log: log, onTools: learn, sem: make(chan struct{}, 1), pause: backoff.Backoff{Jitter: true}}
	l.life, l.end = context.WithCancel(context.Background())
	l.sem <- struct{}{}
	return l
}

// ready gives a connection whose list is learned, as far as the server had told
// when ready was called. Errors have the code tool_unavailable: nothing was asked
// of any tool.
func (l *reconnector) ready(ctx context.Context) (*conn, error) {
	before, told := l.seen.Load(), uint64(0)
	if before != nil {
		told = before.changes.Load()
	}
	select {
	case <-l.sem:
		defer func() { l.sem <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if l.life.Err() != nil {
		return nil, errcode.New(errcode.ToolUnavailable, "MCP server %q is closed", l.config.Name)
	}
	if l.conn != nil && !l.conn.alive() {
		l.drop()
	}
	if l.conn == nil {
		return l.connect(ctx)
	}
	if l.conn == before && before.listed.Load() < told {
		return l.refreshTools(ctx)
	}
	return l.conn, nil
}

// connect wants the turn.
func (l *reconnector) connect(ctx context.Context) (*conn, error) {
	if rest := time.Until(l.until); rest > 0 {
		return nil, l.unavailable(l.last, rest)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.life, cancel)()
	n, err := dial(ctx, l.config, l.log)
	if err == nil {
		if err = l.listTools(ctx, n); err != nil {
			n.close()
		}
	}
	if err != nil {
		return nil, l.failed(ctx, err)
	}
	l.conn, l.failures, l.last = n, 0, nil
	l.pause.Reset()
	l.seen.Store(n)
	l.log.Info("connected to an MCP server", "protocol", n.session.InitializeResult().ProtocolVersion)
	l.work.Go(func() { l.follow(n) })
	return n, nil
}

// refreshTools wants the turn. A server that does not give its list any more is
// disconnected: what its tools are is not known.
func (l *reconnector) refreshTools(ctx context.Context) (*conn, error) {
	n := l.conn
	if err := l.listTools(ctx, n); err != nil {
		if ctx.Err() == nil {
			l.drop()
		}
		return nil, l.failed(ctx, err)
	}
	return n, nil
}

func (l *reconnector) listTools(ctx context.Context, n *conn) error {
	pins, err := n.list(ctx, *l.config.Prefix, l.log)
	if err != nil {
		return err
	}
	return l.onTools(ctx, pins)
}

// drop wants the turn.
func (l *reconnector) drop() {
	n := l.conn
	l.conn = nil
	l.log.Warn("an MCP server is disconnected", "reason", n.explain(errors.New("the connection was given up")))
	n.close()
}

// failed wants the turn. A try that its caller gave up says nothing about the
// server but what it wrote meanwhile. Of the first connection the caller tells.
func (l *reconnector) failed(ctx context.Context, err error) error {
	if gaveUp := ctx.Err(); gaveUp != nil {
		if e, ok := errors.AsType[*ServerError](err); ok {
			return &ServerError{Err: fmt.Errorf("%w (%w)", gaveUp, e.Err), Stderr: e.Stderr}
		}
		return gaveUp
	}
	pause := l.pause.Next()
	l.failures++
	l.until, l.last = time.Now().Add(pause), err
	level := slog.LevelError
	if l.seen.Load() == nil {
		level = slog.LevelDebug
	}
	l.log.Log(ctx, level, "an MCP server cannot be used", "tries", l.failures, "error", err)
	return l.unavailable(err, pause)
}

// unavailable tells calls of the pause. Whoever waits for the first connection
// has pauses of its own, or gives up.
func (l *reconnector) unavailable(cause error, rest time.Duration) error {
	if l.seen.Load() == nil {
		return errcode.Wrap(errcode.ToolUnavailable, cause, "MCP server %q does not come up", l.config.Name)
	}
	return errcode.Wrap(errcode.ToolUnavailable, cause, "MCP server %q cannot be used now; the next try is in %v", l.config.Name, rest.Round(100*time.Millisecond))
}

// follow lists anew when the server says so, however often it does: once at a
// time, and not without a pause.
func (l *reconnector) follow(n *conn) {
	for {
		select {
		case <-n.changed:
		case <-n.done:
			return
		case <-l.life.Done():
			return
		}
		if _, err := l.ready(l.life); err != nil {
			l.log.Debug("the news of an MCP server was not learned", "error", err)
		}
		select {
		case <-time.After(minRelistInterval):
		case <-l.life.Done():
			return
		}
	}
}

// close ends the link and waits for all that it does.
func (l *reconnector) close() {
	l.end()
	<-l.sem
	if l.conn != nil {
		l.conn.close()
		l.conn = nil
	}
	l.sem <- struct{}{}
	l.work.Wait()
}
