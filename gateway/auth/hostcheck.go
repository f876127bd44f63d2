package auth

import (
	"net/http"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/org/hosts"
)

// bodyReadTimeout limits how long a request body may take to arrive.
const bodyReadTimeout = time.Minute

// HostCheck is middleware for handlers that are served over TCP. It checks that
// the Host header names this gateway, against DNS rebinding, and that the
// Origin header, if present, names an allowed origin (CORS). It also limits
// request bodies. It does not authenticate. The zero HostCheck allows only the
// listener's own address and its pages.
type HostCheck struct {
	Hosts     []hosts.Authority  // further host names; one without a port allows every port
	Origins   []hosts.Origin     // further origins whose pages may send requests
	Tokens    *TokenStore        // exchanges the startup token for a cookie; nil disables that
	OnRefused func(errcode.Code) // called with the code of every rejected request; may be nil
}

// Wrap returns a handler that runs the checks before next. It reads the connection's local address
// from the request's context, where net/http servers put it; without one only
// Hosts are allowed.
func (c HostCheck) Wrap(next http.Handler) http.Handler {
	if c.Tokens != nil {
		next = c.Tokens.startupRedirect(next)
	}
	return &hostCheckHandler{c, next}
}

// hostCheckHandler is the handler of HostCheck.Wrap.
type hostCheckHandler struct {
	config HostCheck
	next   http.Handler
}

// ServeHTTP implements http.Handler.
func (h *hostCheckHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	r, err := h.check(r)
	if err != nil {
		if h.config.OnRefused != nil {
			h.config.OnRefused(errcode.CodeOf(err))
		}
		wire.WriteError(w, err)
		return
	}
	if h.handleCORS(w, r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	limitBody(w, r)
	h.next.ServeHTTP(w, r)
}

// check rejects requests with a Host or Origin that is not allowed. It returns others with the
// URL of the gateway.
func (h *hostCheckHandler) check(r *http.Request) (*http.Request, error) {
	host, ok := hosts.ParseAuthority(r.Host)
	named := ok && matchesHost(host, h.config.Hosts)
	if !ok || !named && !isLocalAddress(host, localAddr(r)) {
		return r, errcode.New(wire.HostRefused, "host %.100q is not allowed; use the gateway's address, or add the name to hosts of kind: gateway", r.Host)
	}
	list := r.Header.Values("Origin")
	if len(list) == 0 || len(list) == 1 && (sameOrigin(list[0], r.Host) || h.allows(list[0])) {
		return withBaseURL(r, host, named), nil
	}
	return r, errcode.New(wire.OriginRefused, "origin %.100q is not allowed; add it to origins of kind: gateway", list)
}

// allows reports whether the configuration lists an origin.
func (h *hostCheckHandler) allows(text string) bool {
	origin, ok := hosts.ParseOrigin(text)
	return ok && slices.Contains(h.config.Origins, origin)
}

// handleCORS sets the CORS headers for a page of an allowed origin. It reports
// whether the request is a preflight, which needs no further answer.
func (h *hostCheckHandler) handleCORS(w http.ResponseWriter, r *http.Request) bool {
	if len(h.config.Origins) == 0 {
		return false
	}
	header := w.Header()
	header.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || !h.allows(origin) {
		return false
	}
	header.Set("Access-Control-Allow-Origin", origin)
	header.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	header.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
	header.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id")
	header.Set("Access-Control-Max-Age", "600")
	return true
}

// limitBody limits the size of a request body and the time it may take to
// arrive.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(bodyReadTimeout)) == nil {
		r.Body = &deadlineBody{http.MaxBytesReader(w, r.Body, wire.MaxRequestBytes), func() { _ = control.SetReadDeadline(time.Time{}) }}
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, wire.MaxRequestBytes)
}
