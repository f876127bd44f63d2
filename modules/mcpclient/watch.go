package mcpclient

import (
	"context"
	"strconv"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
)

// Limits of the resources of a server that clients watch.
const (
	maxWatched    = 1000
	maxWatchedBy  = 256              // of them for one caller, which gets no more than it leaves free
	watchTimeout  = 30 * time.Second // after which a resource that no client asks about is not watched
	subscribeTime = 10 * time.Second
)

// watcher counts the changes of resources that the server notifies. All of its methods are
// safe for concurrent use.
type watcher struct {
	mu    sync.Mutex // guards what follows
	byURI map[string]*watched
}

// watched is a resource to which the client has subscribed.
type watched struct {
	by      identity.Principal // for whom it was watched first
	conn    *conn              // where it has subscribed
	changes uint64
	asked   time.Time
}

// changed counts a change of a resource, if it is watched.
func (w *watcher) changed(uri string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if r := w.byURI[uri]; r != nil {
		r.changes++
	}
}

// version returns how often a resource has changed. subscribe reports whether the client has
// to subscribe to it at n, and ended which subscriptions end. It reports false if too many
// resources are watched for by, or for all.
func (w *watcher) version(n *conn, by identity.Principal, uri string, now time.Time) (version uint64, subscribe bool, ended []string, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	own := 0
	for other, r := range w.byURI {
		switch {
		case other != uri && now.Sub(r.asked) > watchTimeout:
			ended = append(ended, other)
			delete(w.byURI, other)
		case r.by == by:
			own++
		}
	}
	r := w.byURI[uri]
	switch {
	case r != nil:
	case own >= min(maxWatchedBy, maxWatched-len(w.byURI)):
		return 0, false, ended, false
	default:
		if w.byURI == nil {
			w.byURI = map[string]*watched{}
		}
		r = &watched{by: by}
		w.byURI[uri] = r
	}
	r.asked = now
	if subscribe = n != nil && r.conn != n; subscribe {
		if r.conn != nil {
			r.changes++ // changes may have been missed
		}
		r.conn = n
	}
	return r.changes, subscribe, ended, true
}

// ResourceVersion implements tool.ResourceVersioner. The client subscribes to the resource at
// the server, in the background, and counts the notifications. A server that supports no
// subscriptions notifies nothing, and neither does one with connections of callers.
func (c catalog) ResourceVersion(_ context.Context, by identity.Principal, uri string) (string, error) {
	known, ok := c.serverURI(uri)
	if !ok {
		return "", errcode.New(errcode.FileNotFound, "there is no resource %q", uri)
	}
	if auth := c.module.config.Auth; auth != nil && auth.PerCaller() {
		return "", nil // a subscription on the operator's connection could tell of what is another person's
	}
	r := c.module.reconnector
	n := r.lastConn.Load()
	if n != nil && !n.isAlive() {
		n = nil
	}
	version, subscribe, ended, ok := r.watcher.version(n, by.Holder(), known, time.Now())
	if !ok {
		return "", errcode.New(errcode.RateLimited, "too many resources of the MCP server %q are watched; a caller may watch %d of them", c.module.config.Name, maxWatchedBy)
	}
	if n != nil && (subscribe || len(ended) > 0) && r.ctx.Err() == nil {
		r.background.Go(func() { r.resubscribe(n, known, subscribe, ended) })
	}
	return strconv.FormatUint(version, 10), nil
}

// resubscribe begins and ends subscriptions at the server. Failures are logged.
func (r *reconnector) resubscribe(n *conn, uri string, subscribe bool, ended []string) {
	ctx, cancel := context.WithTimeout(r.ctx, subscribeTime)
	defer cancel()
	for _, other := range ended {
		if err := n.session.Unsubscribe(ctx, &sdk.UnsubscribeParams{URI: other}); err != nil {
			r.log.Debug("MCP server resource still watched", "error", err)
		}
	}
	if !subscribe {
		return
	}
	if err := n.session.Subscribe(ctx, &sdk.SubscribeParams{URI: uri}); err != nil {
		r.log.Debug("MCP server resource not watched", "error", err)
	}
}
