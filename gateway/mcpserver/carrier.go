package mcpserver

import (
	"context"
	"net/http"
	"strconv"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// carrierHeader names the HTTP request that carries a request of the protocol to the SDK. It is set here,
// whatever a client sends.
const carrierHeader = "Rolecall-Carrier"

// carriers are the HTTP requests that the SDK answers. In versions with sessions the SDK lets a request go on
// when its client has disconnected. The answer would be lost, and the request would count to no limit
// of its sender. So its context ends with the HTTP request. The zero carriers are ready to use. They are
// safe for concurrent use.
type carriers struct {
	mu   sync.Mutex // guards what follows
	last uint64
	open map[string]context.Context
}

// add names an HTTP request in its header, until remove is called.
func (c *carriers) add(ctx context.Context, header http.Header) (remove func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	name := strconv.FormatUint(c.last, 10)
	if c.open == nil {
		c.open = map[string]context.Context{}
	}
	c.open[name] = ctx
	header.Set(carrierHeader, name)
	return func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.open, name)
	}
}

// untilDisconnected returns a context for a request that also ends when its client has disconnected, or has
// cancelled the call that beginCall registered. done must be called. Notifications, and what begins something longer, go on.
func (c *carriers) untilDisconnected(ctx context.Context, method string, req sdk.Request) (_ context.Context, done func()) {
	extra := req.GetExtra()
	if extra == nil || method == methodInitialize || method == "subscriptions/listen" || strings.HasPrefix(method, "notifications/") {
		return ctx, func() {}
	}
	name := extra.Header.Get(carrierHeader)
	if name == "" {
		return ctx, func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	c.mu.Lock()
	carrier, open := c.open[name]
	c.mu.Unlock()
	if !open { // it has ended already
		cancel()
		return ctx, cancel
	}
	end := func() {}
	if call, ok := carrier.Value(callKey{}).(*sessionCall); ok {
		ctx, end = context.WithValue(ctx, callKey{}, call), call.end
		call.sdkOwns.Store(true)
	}
	stop := context.AfterFunc(carrier, cancel)
	return ctx, func() { stop(); cancel(); end() }
}
