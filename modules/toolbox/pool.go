package toolbox

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/backoff"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/modules/toolbox/database"
	"github.com/rolecall/rolecall/tool"
)

// pool holds the connections of one source, and whether it is reachable.
type pool struct {
	fingerprint, source string
	remote              bool // a database on a server
	noReadOnly          bool // as of the source
	log                 *slog.Logger

	refs   int  // guarded by Pools.mu
	pinged bool // PingServers has taken it; guarded by Pools.mu

	missing     string          // why this build cannot connect; "" if it can
	db          *database.DB    // nil for a service, and if missing is set
	client      *http.Client    // nil for a database
	slots       *fair.Semaphore // one for each connection of client
	closeDialer func() error    // closes the connector of db; nil if there is none

	mu          sync.Mutex // guards what follows
	unreachable bool       // the last attempt failed to connect
	retryAt     time.Time  // calls fail without an attempt until then
	backoff     backoff.Backoff
}

// callerPool is a pool on behalf of one caller.
type callerPool struct {
	*pool
	caller fair.Key
}

// forCaller returns the pool for the caller of a call, who shares it fairly with others.
func (p *pool) forCaller(c tool.Call) callerPool {
	owner, member := c.FairKey()
	return callerPool{p, fair.Key{Owner: owner, Member: member}}
}

// query is pool.query on behalf of the caller.
func (p callerPool) query(ctx context.Context, q database.Query) (json.RawMessage, error) {
	q.Caller = p.caller
	return p.pool.query(ctx, q)
}

// query runs a statement. It fails at once while the source is unreachable and the
// backoff lasts. Other errors are errors of database.DB.Query.
func (p *pool) query(ctx context.Context, q database.Query) (json.RawMessage, error) {
	if err := p.checkReady(); err != nil {
		return nil, err
	}
	rows, err := p.db.Query(ctx, q)
	p.noteResult(err)
	return rows, err
}

// checkReady returns an error if this build cannot connect, and during the backoff after a
// failed attempt to connect.
func (p *pool) checkReady() error {
	if p.missing != "" {
		return errcode.New(errcode.ToolUnavailable, "source %s cannot be used: %s", p.source, p.missing)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if left := time.Until(p.retryAt); p.unreachable && left > 0 {
		return errcode.New(errcode.ToolUnavailable, "source %s is unreachable; retry after %v", p.source, left.Round(time.Millisecond))
	}
	return nil
}

// noteResult updates whether the source is reachable from the error of an attempt.
// Concurrent calls may do so as well; each change is logged once.
func (p *pool) noteResult(err error) {
	lost := errcode.CodeOf(err) == errcode.ToolUnavailable
	if errors.Is(err, database.ErrNoConnection) || !lost && err != nil && !isAnswer(err) {
		return // the error does not show whether the source is reachable
	}
	p.mu.Lock()
	before := p.unreachable
	p.unreachable = lost
	if lost && time.Now().After(p.retryAt) {
		p.retryAt = time.Now().Add(p.backoff.Next())
	}
	if !lost {
		p.backoff.Reset()
		p.retryAt = time.Time{}
	}
	p.mu.Unlock()
	switch {
	case lost && !before:
		p.log.Warn("source unreachable; calls will retry", "source", p.source, "error", networkCause(err))
	case !lost && before:
		p.log.Info("source reachable again", "source", p.source)
	}
}

// isAnswer reports whether an error is a response of the source.
func isAnswer(err error) bool {
	switch errcode.CodeOf(err) {
	case errcode.ToolExecutionFailed, errcode.ResultTooLarge:
		return true
	}
	return false
}

// networkCause returns the innermost network error, for the log. The errors around it
// may contain the query of a request, which can be secret.
func networkCause(err error) error {
	for {
		_, where := err.(*net.OpError)
		if all, ok := err.(interface{ Unwrap() []error }); ok {
			return distinctCauses(all.Unwrap())
		}
		inner := errors.Unwrap(err)
		if where || inner == nil {
			return err
		}
		err = inner
	}
}

// distinctCauses returns the network errors of several attempts to connect, each text
// once.
func distinctCauses(attempts []error) error {
	var causes []error
	seen := map[string]bool{}
	for _, err := range attempts {
		if cause := networkCause(err); !seen[cause.Error()] {
			seen[cause.Error()] = true
			causes = append(causes, cause)
		}
	}
	return errors.Join(causes...)
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
	if p.closeDialer != nil {
		errs = append(errs, p.closeDialer())
	}
	return errors.Join(errs...)
}
