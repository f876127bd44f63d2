package mcpauth

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/rolecall/rolecall/errcode"
)

// maxLoginTime is how long a person may take to log in.
const maxLoginTime = 10 * time.Minute

// RedirectPath is the path of LoginRequest.Redirect.
const RedirectPath = "/callback"

// LoginRequest is the beginning of a login.
type LoginRequest struct {
	// Redirect is the URL to which the issuer sends the browser back: http://127.0.0.1:PORT/callback,
	// where the person's own program listens.
	Redirect string
	// Issuer is an issuer that the operator trusts and that differs from the issuer of the logins
	// before. "" is the same issuer. For the first login it is the only issuer that is accepted.
	Issuer string
}

// LoginOffer is what a person needs to log in.
type LoginOffer struct {
	ID     string // of the attempt, for FinishLogin
	URL    string // of the issuer, https or on this machine, to open in a browser
	Issuer string
	Scopes []string
}

// Answer is the query of the URL to which the issuer has sent the browser back.
type Answer struct {
	Code, State string
	Issuer      string // iss (RFC 9207)
	Error       string // why the person is not logged in
}

// Connect makes one connection to the server with an Authorizer, and closes it. It does not limit
// the time of authorization.
type Connect func(context.Context, Authorizer) error

// BeginLogin begins a login of a subject: it connects to the server and follows its challenge to
// the issuer. FinishLogin ends the login. An attempt that is not finished within 10 minutes fails.
//
// Errors:
//
//   - InvalidArguments
//   - InsufficientPermissions if the subject has no login here
//   - AuthorizationRequired if the server names another issuer, or if the operator has to log in
//     first
//   - Conflict if the server asks for no authorization
//   - ToolUnavailable, RateLimited and LimitExceeded
func (s *Server) BeginLogin(ctx context.Context, subject Subject, q LoginRequest, connect Connect) (LoginOffer, error) {
	expected, err := s.checkLogin(ctx, subject, q)
	if err != nil {
		return LoginOffer{}, err
	}
	a, err := s.newAttempt(subject, q, expected)
	if err == nil {
		err = s.config.Logins.startAttempt(a, connect)
	}
	if err != nil {
		return LoginOffer{}, err
	}
	select {
	case offer := <-a.offered:
		return offer, nil
	case <-a.done:
		return LoginOffer{}, a.err
	case <-ctx.Done():
		a.cancel(context.Cause(ctx))
		return LoginOffer{}, context.Cause(ctx)
	}
}

// checkLogin checks that a subject may log in, and returns the only issuer with which; "" is any.
func (s *Server) checkLogin(ctx context.Context, subject Subject, q LoginRequest) (string, error) {
	expected, err := s.issuer(ctx)
	configured := s.config.Issuer != ""
	switch {
	case err != nil:
		return "", err
	case s.exchanges(subject):
		return "", errcode.New(errcode.Conflict, "the MCP server %q needs no login of callers: the token with which you authenticate is exchanged", s.config.Server)
	case s.config.Grant == ClientCredentials:
		return "", errcode.New(errcode.Conflict, "the MCP server %q has client credentials, so it needs no login", s.config.Server)
	case subject == "" || subject != Operator && !s.config.PerCaller:
		return "", errcode.New(errcode.InsufficientPermissions, "only the operator logs in to the MCP server %q", s.config.Server)
	case !isRedirect(q.Redirect):
		return "", errcode.New(errcode.InvalidArguments, "redirect must be http://127.0.0.1:PORT%s, where your program listens", RedirectPath).With("field", "redirect")
	case q.Issuer != "" && !isSecure(q.Issuer):
		return "", errcode.New(errcode.InvalidArguments, "issuer must begin with https://").With("field", "issuer")
	case q.Issuer != "" && subject != Operator && !sameIssuer(q.Issuer, expected):
		return "", errcode.New(errcode.InsufficientPermissions, "only the operator accepts another issuer of the MCP server %q", s.config.Server)
	case q.Issuer != "" && configured && !sameIssuer(q.Issuer, expected):
		return "", errcode.New(errcode.InvalidArguments, "the configuration of the MCP server %q has another issuer", s.config.Server).With("field", "issuer")
	case q.Issuer == "" && expected == "" && subject != Operator:
		return "", s.errRequired(Operator, "the operator's first login decides with which issuer all others are")
	case q.Issuer != "":
		expected = q.Issuer
	}
	return expected, s.config.Logins.checkRoom(ctx, s.config.Server, subject)
}

// isRedirect reports whether a browser that is sent to a URL reaches its own machine only.
func isRedirect(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return false
	}
	at, err := netip.ParseAddrPort(u.Host)
	return err == nil && at.Addr() == netip.AddrFrom4([4]byte{127, 0, 0, 1}) && at.Port() != 0 && text == "http://"+at.String()+RedirectPath
}

// FinishLogin completes the attempt of a subject with the answer of the issuer. It returns when the
// login is stored.
//
// Errors:
//
//   - ItemNotFound if the subject has no such attempt, or if it has ended
//   - Unauthenticated if the issuer or the server rejects it
//   - AuthorizationRequired, ToolUnavailable and Conflict as with BeginLogin
func (s *Server) FinishLogin(ctx context.Context, subject Subject, id string, answer Answer) (Login, error) {
	a := s.config.Logins.attempts.find(s.config.Server, subject, id)
	if a == nil {
		return Login{}, errcode.New(errcode.ItemNotFound, "log in to the MCP server %q: there is no such attempt, or it took too long; begin again", s.config.Server)
	}
	select {
	case a.answers <- answer:
	default: // there is an answer already
	}
	select {
	case <-a.done:
		return a.login, a.err
	case <-ctx.Done():
		return Login{}, context.Cause(ctx)
	}
}

// Logout forgets the login of a subject here. The issuer is not told. It reports whether there was
// one.
func (s *Server) Logout(ctx context.Context, subject Subject) (bool, error) {
	l := s.config.Logins
	s.config.Logins.attempts.cancel(s.config.Server, subject)
	defer l.lock(loginOwner(s.config.Server, subject))()
	_, found, err := l.read(ctx, s.config.Server, subject)
	if err != nil || !found {
		return false, err
	}
	if err := l.remove(ctx, s.config.Server, subject); err != nil {
		return false, err
	}
	l.notify(s.config.Server, subject)
	return true, nil
}

// ListLogins lists the logins at the server, by subject.
func (s *Server) ListLogins(ctx context.Context) (list []Login, err error) {
	all, err := s.config.Logins.list(ctx, s.config.Server)
	for _, r := range all {
		list = append(list, s.current(ctx, r))
	}
	return list, err
}

// FindLogin returns the login of a subject. It reports false if there is none.
func (s *Server) FindLogin(ctx context.Context, subject Subject) (Login, bool, error) {
	r, found, err := s.config.Logins.read(ctx, s.config.Server, subject)
	return s.current(ctx, r), found, err
}

// current returns a login, which has ended if it cannot be used with the configuration of now. It
// is not opened: a copy of the data has no keys.
func (s *Server) current(ctx context.Context, r record) Login {
	login := r.login()
	login.Ended = s.checkRecord(ctx, r) != nil
	return login
}

// storeLogin stores the login of an attempt that has connected.
func (s *Server) storeLogin(ctx context.Context, a *attempt, h *loginHandler) (Login, error) {
	l := s.config.Logins
	g := h.grant()
	if g.ClientID == s.config.ClientID {
		g.ClientSecret = "" // it is in the configuration
	}
	defer l.lock(loginOwner(s.config.Server, a.subject))()
	if err := ctxError(ctx); err != nil {
		return Login{}, err
	}
	if a.subject == Operator && s.config.Issuer == "" {
		if err := l.writeIssuer(ctx, s.config.Server, pinnedIssuer{Issuer: g.Issuer, URL: s.config.URL}); err != nil {
			return Login{}, err
		}
	}
	if err := l.write(ctx, g); err != nil {
		return Login{}, err
	}
	l.mu.Lock()
	delete(l.wanted, loginOwner(s.config.Server, a.subject))
	l.mu.Unlock()
	l.notify(s.config.Server, a.subject)
	return g.login(), nil
}

// ctxError returns the cause of a context that has ended.
func ctxError(ctx context.Context) error {
	if ctx.Err() == nil {
		return nil
	}
	return context.Cause(ctx)
}

// loginError returns the error of an attempt for the person.
func (s *Server) loginError(err error) error {
	if _, coded := errors.AsType[*errcode.Error](err); coded {
		return err
	}
	if _, answered := errors.AsType[*oauth2.RetrieveError](err); !answered && errors.Is(err, context.DeadlineExceeded) {
		return errcode.New(errcode.ToolUnavailable, "log in to the MCP server %q: it took too long; begin again", s.config.Server)
	}
	text := plainError(err).Error()
	if strings.Contains(text, "failed to register client") { // the rest may have what the issuer has sent
		text = "its issuer does not register this client; configure a clientId that it knows"
	}
	return errcode.New(errcode.Unauthenticated, "log in to the MCP server %q: %.400s", s.config.Server, text)
}
