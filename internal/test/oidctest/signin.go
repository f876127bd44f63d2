package oidctest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

// SignInIssuer is an Issuer with which users sign in: the authorization code flow with PKCE. A
// code is accepted once, with the verifier and the address of its request. Each request to its
// authorization endpoint signs in the user of Claims. The fields may be changed between
// requests.
type SignInIssuer struct {
	*Issuer
	Client, Secret string
	Lasts          time.Duration

	NamesIssuer bool                        // the answer has iss, and the discovery document says so
	Break       func(claims map[string]any) // changes the claims of ID tokens; nil for none
	Sign        func(claims string) string  // signs ID tokens; nil is SignToken

	mu    sync.Mutex
	codes map[string]url.Values // requests by code
}

// NewSignInIssuer starts an issuer with the client "gw" and a secret. Without the secret the client is public.
func NewSignInIssuer(t testing.TB) *SignInIssuer {
	t.Helper()
	s := &SignInIssuer{Issuer: &Issuer{t: t}, Client: "gw", Secret: "s3cret&", Lasts: time.Hour, codes: map[string]url.Values{}}
	s.Issuer.start(s)
	return s
}

// ServeHTTP implements http.Handler.
func (s *SignInIssuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.URL.Path {
	case "/auth":
		s.authorize(w, r)
	case "/token":
		s.answerCode(w, r)
	case "/.well-known/openid-configuration":
		s.discovery(w, r)
	default:
		s.Issuer.ServeHTTP(w, r)
	}
}

// discovery answers with the document of the issuer.
func (s *SignInIssuer) discovery(w http.ResponseWriter, r *http.Request) {
	recorded := httptest.NewRecorder()
	s.Issuer.ServeHTTP(recorded, r)
	var document map[string]any
	_ = json.Unmarshal(recorded.Body.Bytes(), &document)
	document["authorization_endpoint"], document["token_endpoint"] = s.URL+"/auth", s.URL+"/token"
	document["authorization_response_iss_parameter_supported"] = s.NamesIssuer
	_ = json.NewEncoder(w).Encode(document)
}

// authorize signs a user in and sends the browser back.
func (s *SignInIssuer) authorize(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("client_id") != s.Client || q.Get("response_type") != "code" || q.Get("code_challenge_method") != "S256" || q.Get("scope") != "openid" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	code := rand.Text()
	s.mu.Lock()
	s.codes[code] = q
	s.mu.Unlock()
	back := url.Values{"code": {code}, "state": {q.Get("state")}}
	if s.NamesIssuer {
		back.Set("iss", s.URL)
	}
	to, mark := q.Get("redirect_uri"), "?"
	if strings.Contains(to, "?") { // the query stays (RFC 6749, section 3.1.2)
		mark = "&"
	}
	http.Redirect(w, r, to+mark+back.Encode(), http.StatusFound)
}

// answerCode answers the token request.
func (s *SignInIssuer) answerCode(w http.ResponseWriter, r *http.Request) {
	id, secret, _ := r.BasicAuth()
	s.mu.Lock()
	asked, ok := s.codes[r.PostFormValue("code")]
	delete(s.codes, r.PostFormValue("code"))
	s.mu.Unlock()
	challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	if s.Secret == "" {
		id = url.QueryEscape(r.PostFormValue("client_id"))
	}
	if !ok || id != url.QueryEscape(s.Client) || secret != url.QueryEscape(s.Secret) || r.PostFormValue("redirect_uri") != asked.Get("redirect_uri") ||
		base64.RawURLEncoding.EncodeToString(challenge[:]) != asked.Get("code_challenge") {
		http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
		return
	}
	claims := map[string]any{
		"iss": s.URL, "aud": s.Client, "sub": "ann", "groups": []string{"staff"}, "nonce": asked.Get("nonce"), "exp": time.Now().Add(s.Lasts).Unix(),
	}
	if s.Break != nil {
		s.Break(claims)
	}
	sign := s.SignToken
	if s.Sign != nil {
		sign = s.Sign
	}
	text, _ := json.Marshal(claims)
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"access_token":"at","token_type":"Bearer","id_token":%q}`, sign(string(text)))
}
