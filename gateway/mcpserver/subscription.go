package mcpserver

import (
	"context"
	"runtime/debug"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/tool"
)

// Limits of subscriptions to resources.
const (
	maxSubscriptions       = 8192 // of all senders
	maxSenderSubscriptions = 256
	maxSessionURIs         = 64
)

// watchInterval is how often the resources are looked at to which clients have subscribed.
const watchInterval = 2 * time.Second

// subscriptionKey identifies a subscription.
type subscriptionKey struct {
	session *sdk.ServerSession
	uri     string
}

// subscription is one client's subscription to a resource. Server.subsMu guards due; only
// watchResources uses version after the start.
type subscription struct {
	scope     *clientScope
	ctx       context.Context        // has the values of the request, and does not end
	versioner tool.ResourceVersioner // nil for a resource that never changes
	version   string
	due       bool // the client is being notified
}

// subscribe begins a subscription, after it has read the resource as the client. So the gate
// decides the read, and the record has it. Resources without versions never change.
func (s *Server) subscribe(ctx context.Context, req *sdk.SubscribeRequest) error {
	sc, uri := scopeFrom(ctx), req.Params.URI
	if sc == nil {
		return newRPCError(codeNotFound, "the request has no sender")
	}
	if err := s.checkSubscriptions(sc, subscriptionKey{req.Session, uri}); err != nil {
		return err
	}
	ctx, err := s.withRoot(ctx, sc)
	if err != nil {
		return err
	}
	if _, err := s.readByTool(ctx, sc, uri, headerOf(req.Extra)); err != nil {
		return resourceError(err, uri, req.ProtocolVersion())
	}
	call := findCatalog(s.listableCatalogs(sc), tool.CatalogRequest{Kind: tool.ReadResource, URI: uri})
	sub := &subscription{scope: sc, ctx: context.WithoutCancel(ctx)}
	if versioner, ok := call.catalog.(tool.ResourceVersioner); ok {
		sub.versioner = versioner
		if sub.version, err = versioner.ResourceVersion(sub.ctx, sc.caller, uri); err != nil {
			return resourceError(err, uri, req.ProtocolVersion())
		}
	}
	return s.addSubscription(subscriptionKey{req.Session, uri}, sub)
}

// checkSubscriptions returns an error if there is no room for another subscription.
func (s *Server) checkSubscriptions(sc *clientScope, k subscriptionKey) error {
	s.subsMu.Lock()
	defer s.subsMu.Unlock()
	return s.checkSubscriptionRoom(sc, k)
}

// checkSubscriptionRoom must be called with subsMu held.
func (s *Server) checkSubscriptionRoom(sc *clientScope, k subscriptionKey) error {
	if s.subs[k] != nil {
		return nil
	}
	ofSender, ofSession := 0, 0
	for other, sub := range s.subs {
		if sub.scope.sender == sc.sender {
			ofSender++
		}
		if other.session == k.session {
			ofSession++
		}
	}
	if len(s.subs) >= maxSubscriptions || ofSender >= maxSenderSubscriptions || ofSession >= maxSessionURIs {
		return newRPCError(codeBusy, "too many subscriptions to resources")
	}
	return nil
}

// addSubscription registers a subscription, and begins to watch if it is the first.
func (s *Server) addSubscription(k subscriptionKey, sub *subscription) error {
	s.subsMu.Lock()
	defer s.subsMu.Unlock()
	if err := s.checkSubscriptionRoom(sub.scope, k); err != nil {
		return err
	}
	s.subs[k] = sub
	if !s.watchingSubs && s.lifetime.Err() == nil {
		s.watchingSubs = true
		s.work.Go(s.watchResources)
	}
	return nil
}

// unsubscribe ends a subscription.
func (s *Server) unsubscribe(_ context.Context, req *sdk.UnsubscribeRequest) error {
	s.subsMu.Lock()
	defer s.subsMu.Unlock()
	delete(s.subs, subscriptionKey{req.Session, req.Params.URI})
	return nil
}

// watchResources notifies clients of changed resources. It returns when there is no
// subscription left.
func (s *Server) watchResources() {
	tick := time.NewTicker(s.config.WatchInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-s.lifetime.Done():
			return
		}
		subs, ended := s.currentSubscriptions()
		for k, sub := range ended {
			s.forgetInSDK(k, sub.scope.endpoint)
		}
		if len(subs) == 0 {
			return
		}
		for k, sub := range subs {
			s.notifyIfChanged(k, sub)
		}
	}
}

// forgetInSDK makes the SDK forget the subscription of a session that has ended. By itself it
// keeps the URI of each resource to which a session was still subscribed when it ended.
func (s *Server) forgetInSDK(k subscriptionKey, e *endpoint) {
	_, err := e.handle(s.lifetime, methodUnsubscribe, &sdk.UnsubscribeRequest{Session: k.session, Params: &sdk.UnsubscribeParams{URI: k.uri}})
	if err != nil {
		s.log.Debug("MCP subscription not forgotten", "error", err)
	}
}

// currentSubscriptions returns the subscriptions whose sessions go on, and those whose sessions
// have ended, which it removes. When none goes on, the watch ends.
func (s *Server) currentSubscriptions() (list, ended map[subscriptionKey]*subscription) {
	s.subsMu.Lock()
	defer s.subsMu.Unlock()
	open := map[*sdk.ServerSession]bool{}
	servers := map[*sdk.Server]bool{}
	for _, sub := range s.subs {
		servers[sub.scope.endpoint.server] = true
	}
	for server := range servers {
		for session := range server.Sessions() {
			open[session] = true
		}
	}
	list, ended = map[subscriptionKey]*subscription{}, map[subscriptionKey]*subscription{}
	for k, sub := range s.subs {
		if !open[k.session] {
			delete(s.subs, k)
			ended[k] = sub
			continue
		}
		list[k] = sub
	}
	s.watchingSubs = len(list) > 0
	return list, ended
}

// notifyIfChanged notifies the client of a subscription if its resource has changed. A client that may
// no longer read the resource is not notified. A client that has not yet taken the previous
// notification is not notified either.
func (s *Server) notifyIfChanged(k subscriptionKey, sub *subscription) {
	defer s.logPanic()
	if sub.versioner == nil {
		return
	}
	sc := sub.scope
	call := findCatalog(s.visibleCatalogs(sc), tool.CatalogRequest{Kind: tool.ReadResource, URI: k.uri})
	if call.catalog == nil || call.catalog.Source() != sub.versioner.Source() || !sc.stillAuthorized() {
		return
	}
	version, err := sub.versioner.ResourceVersion(sub.ctx, sc.caller, k.uri)
	if err != nil || version == sub.version || !s.beginNotify(k, sub) {
		return
	}
	sub.version = version
	s.work.Go(func() {
		defer s.endNotify(k, sub)
		err := sc.endpoint.server.ResourceUpdated(s.lifetime, &sdk.ResourceUpdatedNotificationParams{URI: k.uri})
		if err != nil {
			s.log.Debug("MCP client not notified of a changed resource", "error", err)
		}
	})
}

// logPanic recovers from a panic of a module's catalog and logs it.
func (s *Server) logPanic() {
	if p := recover(); p != nil {
		s.log.Error("looking at a resource panicked", "panic", p, "stack", string(debug.Stack()))
	}
}

// beginNotify marks a subscription as the one whose client is notified. It reports false if the
// session is being notified already: each has one notification in progress.
func (s *Server) beginNotify(k subscriptionKey, sub *subscription) bool {
	s.subsMu.Lock()
	defer s.subsMu.Unlock()
	if s.notified[k.session] {
		return false
	}
	s.notified[k.session], sub.due = true, true
	return true
}

// endNotify ends what beginNotify has begun.
func (s *Server) endNotify(k subscriptionKey, sub *subscription) {
	s.subsMu.Lock()
	defer s.subsMu.Unlock()
	delete(s.notified, k.session)
	sub.due = false
}

// notifyOnlyDue is middleware that sends a notification of a changed resource only to the session for
// which it is. The SDK sends it to all that have subscribed to the URI, and callers of one role
// have different files under the same URI.
func (s *Server) notifyOnlyDue(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		params, ok := req.GetParams().(*sdk.ResourceUpdatedNotificationParams)
		if !ok {
			return next(ctx, method, req)
		}
		session, _ := req.GetSession().(*sdk.ServerSession)
		s.subsMu.Lock()
		sub := s.subs[subscriptionKey{session, params.URI}]
		due := sub != nil && sub.due
		s.subsMu.Unlock()
		if !due {
			return nil, nil
		}
		return next(ctx, method, req)
	}
}
