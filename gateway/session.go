package gateway

import (
	"cmp"
	"net/http"
	"net/url"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/ui"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
)

// sessionPath is where a page begins, shows and ends its session.
const sessionPath = "/ui/session"

// maxSessionBody limits the body of a request without a sender.
const maxSessionBody = 8 << 10

// sessionRoutes are for pages of this gateway: a browser signs in and then sends a cookie in
// place of a token. The other routes take the cookie, too.
func (a *api) sessionRoutes() []route {
	return []route{
		{
			method: "POST", path: sessionPath, id: "beginSession", summary: "Begin a session with a configured token or the start-up token, and set its cookie",
			scopes: public, body: wire.SessionRequest{}, answer: wire.Session{}, errors: []errcode.Code{wire.RouteNotFound}, serve: a.beginSession,
		}, {
			method: "GET", path: sessionPath, id: "showSession", summary: "Show who sends the request",
			scopes: anyToken, answer: wire.Session{}, errors: []errcode.Code{wire.RouteNotFound}, serve: jsonEndpoint(a.showSession),
		}, {
			method: "DELETE", path: sessionPath, id: "endSession", summary: "End the session of the browser",
			scopes: anyToken, status: http.StatusNoContent, errors: []errcode.Code{wire.RouteNotFound}, serve: a.endSession,
		}, {
			method: "GET", path: "/ui/issuers", id: "listSignInIssuers", summary: "List the issuers with which users sign in, for the form of the page",
			scopes: public, answer: wire.SignInIssuers{}, errors: []errcode.Code{wire.RouteNotFound}, serve: jsonEndpoint(a.listSignInIssuers),
		}, {
			method: "GET", path: "/ui/login", id: "beginSignIn", summary: "Send the browser to an issuer, to sign in",
			params: []parameter{
				{name: "issuer", about: "name of the issuer; it may be left out if there is only one"},
				{name: "to", about: "path of this gateway to which the browser comes at the end; default: /"},
			},
			scopes: public, status: http.StatusSeeOther, errors: []errcode.Code{wire.RouteNotFound, errcode.ToolUnavailable}, serve: explainToBrowser(a.beginSignIn),
		}, {
			method: "GET", path: auth.CallbackPath, id: "finishSignIn", summary: "Begin the session of a browser that comes back from an issuer",
			params: []parameter{
				{name: "state", about: "what was sent to the issuer"}, {name: "code", about: "the authorization code"},
				{name: "issuer", about: "name of the issuer, if users sign in with several"}, {name: "iss", about: "the issuer (RFC 9207)"}, {name: "error", about: "why the issuer has not signed the user in"},
			},
			anyQuery: true, scopes: public, status: http.StatusSeeOther, errors: []errcode.Code{wire.RouteNotFound, errcode.ToolUnavailable}, serve: explainToBrowser(a.finishSignIn),
		},
	}
}

// beginSession answers POST /ui/session.
func (a *api) beginSession(w http.ResponseWriter, r *http.Request) error {
	if a.sessions == nil {
		return routeNotFound(w, r)
	}
	limitBody(r, maxSessionBody)
	q, err := decode[wire.SessionRequest](r)
	if err != nil {
		return err
	}
	p, s, err := a.sessions.BeginSession(w, r, q.Token)
	if err != nil {
		return err
	}
	return wire.WriteJSON(w, http.StatusOK, a.sessionOf(p, &s))
}

// showSession answers GET /ui/session. A sender without a cookie has no session.
func (a *api) showSession(r *http.Request) (any, error) {
	if a.sessions == nil {
		return nil, routeNotFound(nil, r)
	}
	s, ok := a.sessions.FindSession(r)
	if !ok {
		return a.sessionOf(auth.SenderOf(r), nil), nil
	}
	return a.sessionOf(auth.SenderOf(r), &s), nil
}

// sessionOf converts a sender, and its session if it has one.
func (a *api) sessionOf(p identity.Principal, s *auth.Session) wire.Session {
	out := wire.Session{User: string(p.User), Scope: auth.ScopeOf(p).String(), Operator: p.Kind == identity.Operator}
	if p.Kind == identity.Caller {
		role, _ := a.org().RoleByID(p.Role)
		out.RoleID, out.Role = p.Role, role.Name
	}
	if s != nil {
		out.CSRF, out.Expires = s.CSRF, new(s.Expires.UTC().Truncate(time.Second))
	}
	return out
}

// endSession answers DELETE /ui/session.
func (a *api) endSession(w http.ResponseWriter, r *http.Request) error {
	if a.sessions == nil || !a.sessions.EndSession(w, r) {
		return errcode.New(wire.RouteNotFound, "the request has no session")
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// listSignInIssuers answers GET /ui/issuers. It has nothing of an issuer but its name.
func (a *api) listSignInIssuers(r *http.Request) (any, error) {
	if a.sessions == nil {
		return nil, routeNotFound(nil, r)
	}
	return wire.SignInIssuers{Issuers: append([]string{}, a.sessions.SignInIssuers()...)}, nil
}

// explainToBrowser sends a browser whose sign-in fails to the page, with the code of the error. The
// page explains the code in its own words: a link has no text that it would show. Programs get
// the error.
func explainToBrowser(serve func(http.ResponseWriter, *http.Request) error) func(http.ResponseWriter, *http.Request) error {
	return func(w http.ResponseWriter, r *http.Request) error {
		err := serve(w, r)
		if err == nil || !ui.PrefersPage(r) {
			return err
		}
		return redirectTo(w, "../#/sign-in-failed?code="+url.QueryEscape(string(errcode.CodeOf(err)))) // relative: the page may be below a prefix
	}
}

// beginSignIn answers GET /ui/login.
func (a *api) beginSignIn(w http.ResponseWriter, r *http.Request) error {
	if a.sessions == nil {
		return routeNotFound(w, r)
	}
	q := r.URL.Query()
	target, err := a.sessions.BeginSignIn(w, r, q.Get("issuer"), q.Get("to"))
	if err != nil {
		return err
	}
	return redirectTo(w, target)
}

// finishSignIn answers GET /ui/callback.
func (a *api) finishSignIn(w http.ResponseWriter, r *http.Request) error {
	if a.sessions == nil {
		return routeNotFound(w, r)
	}
	to, err := a.sessions.FinishSignIn(w, r)
	if err != nil {
		return err
	}
	return redirectTo(w, cmp.Or(to, "/"))
}

// redirectTo sends a browser to an address, which does not learn where it comes from. The
// address has been checked.
func redirectTo(w http.ResponseWriter, target string) error {
	w.Header().Set("Referrer-Policy", "no-referrer")
	w.Header().Set("Location", target)
	w.WriteHeader(http.StatusSeeOther)
	return nil
}
