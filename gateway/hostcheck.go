package gateway

import (
	"net/http"
	"slices"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/org/hosts"
)

// maxRequest is the most bytes the body of any request may have; most routes
// take less.
const maxRequest = 16 << 20

// bodyTime is how long a body may take to arrive.
const bodyTime = time.Minute

// HostCheck stands before a handler that is reached over TCP. It lets those requests
// through that name this gateway (Host, against DNS rebinding) and that no page
// of another origin sent (Origin); it says nothing of who sends them. The zero
// Door takes the listener's own address and its pages alone.
type HostCheck struct {
	Hosts     []hosts.Authority  // further names; one without a port stands for every port
	Origins   []hosts.Origin     // further origins whose pages may ask
	Tokens    *Tokens            // whose start-up token is traded for a cookie; nil is none
	OnRefused func(errcode.Code) // told the code of every refusal; nil is nobody
}

// Wrap gives the handler behind the door. The connection's address is read from
// the request's context, where servers of net/http put it; without one only Hosts
// are taken.
func (d HostCheck) Wrap(next http.Handler) http.Handler {
	if d.Tokens != nil {
		next = d.Tokens.startupRedirect(next)
	}
	return &hostCheckHandler{d, next}
}

// hostCheckHandler is a Door and what is behind it.
type hostCheckHandler struct {
	door HostCheck
	next http.Handler
}

// ServeHTTP implements http.Handler.
func (g *hostCheckHandler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := g.check(r); err != nil {
		if g.door.OnRefused != nil {
			g.door.OnRefused(errcode.Of(err))
		}
		refuseWith(w, err)
		return
	}
	if g.handleCORS(w, r) {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	limitBody(w, r)
	g.next.ServeHTTP(w, r)
}

// check refuses what is for another host, or from another origin.
func (g *hostCheckHandler) check(r *http.Request) error {
	host, ok := hosts.ParseAuthority(r.Host)
	if !ok || !isHere(host, localAddr(r)) && !isIn(host, g.door.Hosts) {
		return errcode.New(HostRefused, "the host %.100q is not this gateway's; use its address, or list the name under hosts of kind: gateway", r.Host)
	}
	list := r.Header.Values("Origin")
	if len(list) == 0 || len(list) == 1 && (sameOrigin(list[0], r.Host) || g.allows(list[0])) {
		return nil
	}
	return errcode.New(OriginRefused, "pages of %.100q may not ask here; list the origin under origins of kind: gateway", list)
}

// allows says whether the configuration names an origin.
func (g *hostCheckHandler) allows(text string) bool {
	from, ok := hosts.ParseOrigin(text)
	return ok && slices.Contains(g.door.Origins, from)
}

// handleCORS lets a browser hand the answer to the page of an allowed origin. It
// says whether the request was only a question about that (a preflight).
func (g *hostCheckHandler) handleCORS(w http.ResponseWriter, r *http.Request) bool {
	if len(g.door.Origins) == 0 {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	from := r.Header.Get("Origin")
	if from == "" || !g.allows(from) {
		return false
	}
	h.Set("Access-Control-Allow-Origin", from)
	h.Set("Access-Control-Expose-Headers", "Mcp-Session-Id, WWW-Authenticate")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, PATCH, DELETE")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, Last-Event-ID, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id")
	h.Set("Access-Control-Max-Age", "600")
	return true
}

// limitBody limits how much a body may be, and how long it may take.
func limitBody(w http.ResponseWriter, r *http.Request) {
	if r.Body == nil || r.Body == http.NoBody {
		return
	}
	control := http.NewResponseController(w)
	if control.SetReadDeadline(time.Now().Add(bodyTime)) == nil {
		r.Body = &deadlineBody{http.MaxBytesReader(w, r.Body, maxRequest), func() { _ = control.SetReadDeadline(time.Time{}) }}
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
}
