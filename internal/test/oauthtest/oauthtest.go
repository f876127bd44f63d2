// Package oauthtest runs an MCP server that requires OAuth, and the authorization server of its
// tokens, for tests, on loopback. Its fields make them misbehave.
//
//	upstream := oauthtest.NewServer(t)
//	config.URL = upstream.URL()
//	answer := upstream.LogIn(t, offer.URL, "ann")
package oauthtest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// Issuer is an authorization server: authorization codes with PKCE, client credentials, refresh
// tokens that are used once, exchanges of tokens, and registration. Its fields may be changed between requests, with
// Change.
type Issuer struct {
	server *httptest.Server

	mu sync.Mutex // guards what follows

	Clients  map[string]string                          // registered clients and their secrets; "" is a public one
	Keys     map[string]any                             // public keys of clients that authenticate with one
	Subjects map[string]string                          // tokens that may be exchanged, and their users
	Lasts    time.Duration                              // of access tokens
	Metadata func(map[string]any)                       // changes the metadata; nil does not
	Redirect func(url.Values)                           // changes where the browser is sent; nil does not
	Token    func(http.ResponseWriter, url.Values) bool // answers a token request itself, if it returns true
	Answer   func(map[string]any)                       // changes the answer of the token endpoint; nil does not

	codes       map[string]url.Values
	refresh     map[string]issued
	access      map[string]issued
	Refreshes   int            // how many refresh tokens were used
	RefreshesOf map[string]int // by user
	Exchanges   []url.Values   // requests for an exchange
	assertions  map[string]bool
	Requests    []string
}

// issued is what a token is for.
type issued struct {
	user, client, resource, scope string
	exchanged                     bool
	expires                       time.Time
}

// newIssuer starts an issuer.
func newIssuer(t testing.TB) *Issuer {
	i := &Issuer{RefreshesOf: map[string]int{}, Clients: map[string]string{}, Keys: map[string]any{}, Subjects: map[string]string{}, assertions: map[string]bool{}, Lasts: time.Hour, codes: map[string]url.Values{}, refresh: map[string]issued{}, access: map[string]issued{}}
	i.server = httptest.NewServer(i)
	t.Cleanup(i.server.Close)
	return i
}

// URL returns the issuer's identifier.
func (i *Issuer) URL() string { return i.server.URL }

// Change calls fn while no request is answered.
func (i *Issuer) Change(fn func()) {
	i.mu.Lock()
	defer i.mu.Unlock()
	fn()
}

// ServeHTTP implements http.Handler.
func (i *Issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.Requests = append(i.Requests, r.Method+" "+r.URL.Path)
	switch r.URL.Path {
	case "/.well-known/oauth-authorization-server":
		i.serveMetadata(w)
	case "/register":
		id := rand.Text()
		i.Clients[id] = ""
		w.WriteHeader(http.StatusCreated)
		writeJSON(w, map[string]any{"client_id": id, "token_endpoint_auth_method": "none"})
	case "/authorize":
		i.authorize(w, r)
	case "/token":
		i.serveToken(w, r)
	default:
		http.NotFound(w, r)
	}
}

func (i *Issuer) serveMetadata(w http.ResponseWriter) {
	m := map[string]any{
		"issuer": i.URL(), "authorization_endpoint": i.URL() + "/authorize", "token_endpoint": i.URL() + "/token", "registration_endpoint": i.URL() + "/register",
		"response_types_supported": []string{"code"}, "code_challenge_methods_supported": []string{"S256"},
		"token_endpoint_auth_methods_supported":          []string{"client_secret_basic", "none"},
		"authorization_response_iss_parameter_supported": true,
	}
	if i.Metadata != nil {
		i.Metadata(m)
	}
	writeJSON(w, m)
}

// authorize sends the browser of the user in the header X-User back.
func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	_, known := i.Clients[q.Get("client_id")]
	if !known || q.Get("code_challenge_method") != "S256" || q.Get("code_challenge") == "" || q.Get("resource") == "" || q.Get("state") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	q.Set("user", r.Header.Get("X-User"))
	i.codes[code] = q
	back := url.Values{"code": {code}, "state": {q.Get("state")}, "iss": {i.URL()}}
	if i.Redirect != nil {
		i.Redirect(back)
	}
	http.Redirect(w, r, q.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (i *Issuer) serveToken(w http.ResponseWriter, r *http.Request) {
	_ = r.ParseForm()
	if i.Token != nil && i.Token(w, r.PostForm) {
		return
	}
	client, secret, basic := r.BasicAuth()
	if !basic {
		client, secret = r.PostForm.Get("client_id"), r.PostForm.Get("client_secret")
	}
	signed := r.PostForm.Has("client_assertion")
	if want, known := i.Clients[client]; signed && !i.acceptsAssertion(r.PostForm) || !signed && (!known || want != secret) {
		writeError(w, http.StatusUnauthorized, "invalid_client")
		return
	}
	var to issued
	ok := false
	switch r.PostForm.Get("grant_type") {
	case "authorization_code":
		to, ok = i.takeCode(r.PostForm)
		ok = ok && to.client == client
	case "refresh_token":
		to, ok = i.refresh[r.PostForm.Get("refresh_token")]
		ok = ok && to.client == client
		delete(i.refresh, r.PostForm.Get("refresh_token"))
		i.Refreshes++
		i.RefreshesOf[to.user]++
	case "client_credentials":
		to, ok = issued{user: "machine", resource: r.PostForm.Get("resource"), scope: r.PostForm.Get("scope")}, secret != "" || signed
	case exchangeGrant:
		to, ok = i.exchange(r.PostForm)
	}
	if !ok {
		writeError(w, http.StatusBadRequest, "invalid_grant")
		return
	}
	to.client = client
	i.answerToken(w, to)
}

// takeCode returns what a code is for. It is accepted once.
func (i *Issuer) takeCode(form url.Values) (issued, bool) {
	q, ok := i.codes[form.Get("code")]
	delete(i.codes, form.Get("code"))
	challenge := sha256.Sum256([]byte(form.Get("code_verifier")))
	ok = ok && base64.RawURLEncoding.EncodeToString(challenge[:]) == q.Get("code_challenge") &&
		form.Get("redirect_uri") == q.Get("redirect_uri") && form.Get("resource") == q.Get("resource")
	return issued{user: q.Get("user"), client: q.Get("client_id"), resource: q.Get("resource"), scope: q.Get("scope")}, ok
}

func (i *Issuer) answerToken(w http.ResponseWriter, to issued) {
	to.expires = time.Now().Add(i.Lasts)
	access, refresh := "at-"+to.user+"-"+rand.Text(), "rt-"+to.user+"-"+rand.Text()
	i.access[access], i.refresh[refresh] = to, to
	answer := map[string]any{"access_token": access, "token_type": "Bearer", "expires_in": int(i.Lasts / time.Second), "refresh_token": refresh}
	if to.scope != "" {
		answer["scope"] = to.scope
	}
	if to.exchanged {
		answer["issued_token_type"] = "urn:ietf:params:oauth:token-type:access_token"
	}
	if i.Answer != nil {
		i.Answer(answer)
	}
	writeJSON(w, answer)
}

// Revoke makes the access tokens of all users invalid, and their refresh tokens too if both is set.
func (i *Issuer) Revoke(both bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.access)
	if both {
		clear(i.refresh)
	}
}

// find returns what an access token is for.
func (i *Issuer) find(token string) (issued, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	to, ok := i.access[token]
	return to, ok && time.Now().Before(to.expires)
}

// Server is an MCP server that accepts tokens of Issuer. It has two tools: whoami returns the user
// of the token, and needs the scope of Scope[1] if there is one; leak returns the token.
type Server struct {
	*Issuer
	server *httptest.Server

	mu     sync.Mutex // guards what follows
	issuer string     // that it names
	scopes []string   // that a request needs, and then a call of whoami
	tokens []string   // of all requests, "" for none
	began  int        // connections
}

// NewServer starts a server and its issuer.
func NewServer(t testing.TB) *Server {
	t.Helper()
	s := &Server{Issuer: newIssuer(t)}
	s.issuer = s.Issuer.URL()
	s.server = httptest.NewServer(s.handler())
	t.Cleanup(func() {
		s.server.CloseClientConnections()
		s.server.Close()
	})
	return s
}

// URL returns the address of the server.
func (s *Server) URL() string { return s.server.URL + "/mcp" }

// NameIssuer makes the server name another issuer.
func (s *Server) NameIssuer(url string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issuer = url
}

// NeedScopes sets the scopes that requests need, and those that a call of whoami needs.
func (s *Server) NeedScopes(scopes ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.scopes = scopes
}

// Connections returns how many connections have begun.
func (s *Server) Connections() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.began
}

// Tokens returns the tokens of the requests so far.
func (s *Server) Tokens() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.tokens)
}

func (s *Server) handler() http.Handler {
	server := sdk.NewServer(&sdk.Implementation{Name: "upstream", Version: "1"}, nil)
	add := func(name string, fn func(token string) string) {
		sdk.AddTool(server, &sdk.Tool{Name: name, Description: "does " + name}, func(_ context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
			token := strings.TrimPrefix(r.Extra.Header.Get("Authorization"), "Bearer ")
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fn(token)}}}, nil, nil
		})
	}
	add("whoami", func(token string) string { to, _ := s.find(token); return to.user })
	add("leak", func(token string) string { return "your token is " + token })
	mcp := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/.well-known/oauth-protected-resource/mcp" {
			s.mu.Lock()
			issuer := s.issuer
			s.mu.Unlock()
			writeJSON(w, map[string]any{"resource": s.URL(), "authorization_servers": []string{issuer}})
			return
		}
		if s.admits(w, r) {
			mcp.ServeHTTP(w, r)
		}
	})
}

// admits reports whether the token of a request is accepted; else it answers.
func (s *Server) admits(w http.ResponseWriter, r *http.Request) bool {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	to, ok := s.find(token)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = append(s.tokens, token)
	needs := ""
	if len(s.scopes) > 0 {
		needs = s.scopes[0]
	}
	body, _ := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(body))
	if ok && bytes.Contains(body, []byte(`"method":"server/discover"`)) {
		s.began++
	}
	if len(s.scopes) > 1 && bytes.Contains(body, []byte(`"name":"whoami"`)) {
		needs = s.scopes[1]
	}
	meta := `resource_metadata="` + s.server.URL + `/.well-known/oauth-protected-resource/mcp"`
	if needs != "" {
		meta += `, scope="` + needs + `"`
	}
	switch {
	case !ok || to.resource != s.URL():
		w.Header().Set("WWW-Authenticate", "Bearer "+meta)
		w.WriteHeader(http.StatusUnauthorized)
		return false
	case needs != "" && !slices.Contains(strings.Fields(to.scope), needs):
		w.Header().Set("WWW-Authenticate", `Bearer error="insufficient_scope", `+meta)
		w.WriteHeader(http.StatusForbidden)
		return false
	}
	return true
}

// LogIn opens an authorization URL as a user and returns the query with which the issuer sends the
// browser back. It does not follow that.
func LogIn(t testing.TB, authorization, user string) url.Values {
	t.Helper()
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, authorization, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("X-User", user)
	response, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	back, err := response.Location()
	if err != nil {
		t.Fatalf("the issuer answered %s", response.Status)
	}
	return back.Query()
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func writeError(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]string{"error": code})
}
