package toolbox

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// pool is the connections of one source.
type pool struct {
	print, source string
	remote        bool // a database on a server
	log           *slog.Logger

	users  int  // guarded by Pools.mu
	pinged bool // it was looked at; likewise

	db     *database.DB // of a database
	client *client      // of a service
	shut   func() error // closes what db is reached through; nil is nothing

	mu          sync.Mutex // guards what follows
	unreachable bool       // it could not be reached last
	until       time.Time  // no try before that
	pause       backoff.Backoff
}

// callerPool is a pool as one caller has it.
type callerPool struct {
	*pool
	who string
}

// of gives a caller's share.
func (p *pool) of(by identity.Principal) callerPool {
	return callerPool{p, cmp.Or(by.Key(), by.String())}
}

// query runs a caller's statement: pool.query.
func (s callerPool) query(ctx context.Context, q database.Query) (json.RawMessage, error) {
	q.Caller = s.who
	return s.pool.query(ctx, q)
}

// query runs a statement, unless the database could not be reached a moment
// ago. Errors are as of database.DB.Query.
func (p *pool) query(ctx context.Context, q database.Query) (json.RawMessage, error) {
	if err := p.ready(); err != nil {
		return nil, err
	}
	rows, err := p.db.Query(ctx, q)
	p.note(err)
	return rows, err
}

// ready refuses to try again too soon.
func (p *pool) ready() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := time.Until(p.until); p.unreachable && left > 0 {
		return errcode.New(errcode.ToolUnavailable, "source %s cannot be reached; a call after %v tries again", p.source, left.Round(time.Millisecond))
	}
	return nil
}

// note learns from what came of a try whether the source is there. Others may
// have found out meanwhile; each change is logged once.
func (p *pool) note(err error) {
	lost := errcode.Of(err) == errcode.ToolUnavailable
	if errors.Is(err, database.ErrNoConnection) || !lost && err != nil && !answered(err) {
		return // it says nothing about the source
	}
	p.mu.Lock()
	before := p.unreachable
	p.unreachable = lost
	if lost && time.Now().After(p.until) {
		p.until = time.Now().Add(p.pause.Next())
	}
	if !lost {
		p.pause.Reset()
		p.until = time.Time{}
	}
	p.mu.Unlock()
	switch {
	case lost && !before:
		p.log.Warn("a source cannot be reached; its calls try again", "source", p.source, "error", cause(err))
	case !lost && before:
		p.log.Info("a source is reached again", "source", p.source)
	}
}

// answered says whether an error is the source's own answer.
func answered(err error) bool {
	switch errcode.Of(err) {
	case errcode.ToolExecutionFailed, errcode.ResultTooLarge:
		return true
	}
	return false
}

// cause gives why, for the log: it names hosts. What is around it may hold the
// query of a request.
func cause(err error) error {
	for {
		_, where := err.(*net.OpError)
		inner := errors.Unwrap(err)
		if where || inner == nil {
			return err
		}
		err = inner
	}
}

// close closes the connections.
func (p *pool) close() error {
	var errs []error
	if p.db != nil {
		errs = append(errs, p.db.Close())
	}
	if p.client != nil {
		p.client.CloseIdleConnections()
	}
	if p.shut != nil {
		errs = append(errs, p.shut())
	}
	return errors.Join(errs...)
}
