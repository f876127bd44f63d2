package mcpauth_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/oauthtest"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
)

// exchangeFixture is a fixture whose persons have no login. Each authenticates with a token.
type exchangeFixture struct {
	*fixture
	known map[mcpauth.Subject]mcpauth.SubjectToken
}

func newExchangeFixture(t *testing.T) *exchangeFixture {
	fx := &exchangeFixture{newFixture(t), map[mcpauth.Subject]mcpauth.SubjectToken{}}
	fx.upstream.Clients["rolecall"] = "secret-of-rolecall"
	fx.config.Grant, fx.config.ClientID, fx.config.ClientSecret, fx.config.Issuer = mcpauth.ClientCredentials, "rolecall", "secret-of-rolecall", fx.upstream.Issuer.URL()
	fx.config.Exchange = &mcpauth.Exchange{Proof: func(s mcpauth.Subject) (mcpauth.SubjectToken, bool) { known, ok := fx.known[s]; return known, ok }}
	return fx
}

// signIn stores a token of a user for a subject, which lasts for a time.
func (fx *exchangeFixture) signIn(subject mcpauth.Subject, user string, lasts time.Duration) string {
	token := "subject-token-of-" + user
	fx.upstream.Change(func() { fx.upstream.Subjects[token] = user })
	fx.known[subject] = mcpauth.SubjectToken{Token: token, Expires: time.Now().Add(lasts)}
	return token
}

// sent returns the token that an Authorizer sends now; "" for none.
func (fx *exchangeFixture) sent(a mcpauth.Authorizer) string {
	fx.Helper()
	source, err := a.TokenSource(fx.Context())
	if err != nil || source == nil {
		return ""
	}
	token, err := source.Token()
	if err != nil {
		fx.Fatal(err)
	}
	return token.AccessToken
}

func TestExchange_EachPersonHasOwnToken(t *testing.T) {
	fx := newExchangeFixture(t)
	from := fx.signIn(ann, "ann", time.Hour)
	fx.signIn(bob, "bob", time.Hour)
	s := fx.server()
	for subject, user := range map[mcpauth.Subject]string{ann: "ann", bob: "bob", mcpauth.Operator: "machine"} {
		a := s.Authorizer(subject)
		if err := fx.connect(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if got := fx.sent(a); !strings.HasPrefix(got, "at-"+user+"-") {
			t.Errorf("%s has the token %q", subject, got)
		}
	}
	for _, token := range fx.upstream.Tokens() {
		if token == from {
			t.Error("the server got the token with which ann authenticates")
		}
	}
	if len(fx.values.values) != 0 {
		t.Errorf("something is stored: %s", fx.values.text())
	}
	request := fx.upstream.Exchanges[0]
	for name, want := range map[string]string{"resource": fx.upstream.URL(), "subject_token_type": "urn:ietf:params:oauth:token-type:access_token", "requested_token_type": "urn:ietf:params:oauth:token-type:access_token"} {
		if got := request.Get(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	_, err := s.BeginLogin(t.Context(), ann, mcpauth.LoginRequest{Redirect: redirect}, fx.connect)
	fx.wantCode(err, errcode.Conflict, "a login of ann")
}

// Without a token of the person nothing is sent to the server, with no token and with none of another.
func TestExchange_NoToken(t *testing.T) {
	fx := newExchangeFixture(t)
	fx.signIn(bob, "bob", time.Hour)
	fx.known["user:old@r1"] = mcpauth.SubjectToken{Token: "subject-token-of-bob", Expires: time.Now().Add(-time.Second)}
	fx.known["user:endless@r1"] = mcpauth.SubjectToken{Token: "subject-token-of-bob"}
	fx.known["user:empty@r1"] = mcpauth.SubjectToken{Expires: time.Now().Add(time.Hour)}
	for _, subject := range []mcpauth.Subject{ann, "user:old@r1", "user:endless@r1", "user:empty@r1", "user:bob@r2", ""} {
		err := fx.connect(t.Context(), fx.server().Authorizer(subject))
		fx.wantCode(err, errcode.AuthorizationRequired, string(subject))
		if !fx.server().NeedsLogin(t.Context(), subject) {
			t.Errorf("%q needs no login", subject)
		}
	}
	if n := len(fx.upstream.Tokens()); n != 0 {
		t.Errorf("%d requests at the server", n)
	}
}

// A token is used no longer than the token that it was exchanged for, and no longer than the person
// has one.
func TestExchange_EndsWithSubjectToken(t *testing.T) {
	fx := newExchangeFixture(t)
	fx.signIn(ann, "ann", 10*time.Minute) // the issuer's tokens last an hour
	s := fx.server()
	a := s.Authorizer(ann)
	if err := fx.connect(t.Context(), a); err != nil {
		t.Fatal(err)
	}
	if fx.sent(a) == "" {
		t.Error("the new token is not used")
	}
	was := fx.known[ann]
	delete(fx.known, ann)
	if got := fx.sent(a); got != "" {
		t.Errorf("after ann has left, the token is %s", got)
	}
	fx.known[ann] = mcpauth.SubjectToken{Token: "a-newer-token", Expires: was.Expires.Add(time.Hour)}
	if fx.sent(a) == "" {
		t.Error("before the end of the first token, its exchanged token is not used")
	}
	mcpauth.SetNow(s, func() time.Time { return was.Expires.Add(-9 * time.Second) })
	if got := fx.sent(a); got != "" {
		t.Errorf("at the end of the first token: %s", got)
	}
}

// What an issuer answers is not believed. The error never has a token.
func TestExchange_HostileIssuer(t *testing.T) {
	const canary = "subject-token-of-ann"
	answers := map[string]func(map[string]any){
		"another type":      func(m map[string]any) { m["issued_token_type"] = "urn:ietf:params:oauth:token-type:saml2" },
		"no type":           func(m map[string]any) { delete(m, "issued_token_type") },
		"not a bearer":      func(m map[string]any) { m["token_type"] = "N_A" },
		"the subject token": func(m map[string]any) { m["access_token"] = canary },
		"another audience":  func(m map[string]any) { m["access_token"] = jwt(`{"aud":"https://other.example"}`) },
		"another issuer":    func(m map[string]any) { m["access_token"] = jwt(`{"iss":"https://other.example"}`) },
		"a broken token":    func(m map[string]any) { m["access_token"] = "a b" },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			fx := newExchangeFixture(t)
			fx.signIn(ann, "ann", time.Hour)
			fx.upstream.Answer = answer
			err := fx.connect(t.Context(), fx.server().Authorizer(ann))
			fx.wantCode(err, errcode.ToolUnavailable, name)
			if err != nil && strings.Contains(err.Error(), canary) {
				t.Errorf("the error has the token: %v", err)
			}
			if tokens := strings.Join(fx.upstream.Tokens(), ""); tokens != "" {
				t.Errorf("the server got %s", tokens)
			}
		})
	}
}

// A token that the issuer does not exchange is not sent to it again in a while; another one is.
func TestExchange_Refused(t *testing.T) {
	for code, want := range map[string]errcode.Code{
		"invalid_grant": errcode.AuthorizationRequired, "invalid_request": errcode.AuthorizationRequired,
		"invalid_client": errcode.ToolUnavailable, "unsupported_grant_type": errcode.ToolUnavailable, "invalid_target": errcode.ToolUnavailable,
	} {
		t.Run(code, func(t *testing.T) {
			fx := newExchangeFixture(t)
			token, asked := fx.signIn(ann, "ann", time.Hour), 0
			fx.upstream.Token = func(w http.ResponseWriter, form url.Values) bool {
				if asked++; form.Get("subject_token") != token {
					return false
				}
				w.Header().Set("Content-Type", "application/json")
				w.WriteHeader(http.StatusBadRequest)
				_, _ = w.Write([]byte(`{"error":"` + code + `","error_description":"` + token + `"}`))
				return true
			}
			a := fx.server().Authorizer(ann)
			for range 3 {
				err := fx.connect(t.Context(), a)
				fx.wantCode(err, want, code)
				if err != nil && strings.Contains(err.Error(), token) {
					t.Errorf("the error has the token: %v", err)
				}
			}
			fx.upstream.Change(func() {
				if asked != 1 {
					t.Errorf("the issuer was asked %d times", asked)
				}
				fx.upstream.Subjects["another-token"] = "ann"
			})
			fx.known[ann] = mcpauth.SubjectToken{Token: "another-token", Expires: time.Now().Add(time.Hour), IDToken: true}
			if err := fx.connect(t.Context(), a); err != nil {
				t.Errorf("with another token: %v", err)
			}
			if got := fx.upstream.Exchanges[0].Get("subject_token_type"); got != "urn:ietf:params:oauth:token-type:id_token" {
				t.Errorf("the type of an ID token is %s", got)
			}
		})
	}
}

// A server that names another issuer gets that issuer no token of a person.
func TestExchange_OtherIssuer(t *testing.T) {
	fx := newExchangeFixture(t)
	fx.signIn(ann, "ann", time.Hour)
	other := oauthtest.NewServer(t)
	fx.upstream.NameIssuer(other.Issuer.URL())
	err := fx.connect(t.Context(), fx.server().Authorizer(ann))
	fx.wantCode(err, errcode.ToolUnavailable, "another issuer")
	if len(other.Requests) != 0 {
		t.Errorf("the other issuer was asked: %v", other.Requests)
	}
}

// A configured endpoint is asked, whatever the server names. It does not redirect.
func TestExchange_Endpoint(t *testing.T) {
	fx := newExchangeFixture(t)
	fx.signIn(ann, "ann", time.Hour)
	fx.config.Exchange.TokenURL = fx.upstream.Issuer.URL() + "/token"
	other := oauthtest.NewServer(t)
	fx.upstream.NameIssuer(other.Issuer.URL())
	if err := fx.connect(t.Context(), fx.server().Authorizer(ann)); err != nil {
		t.Error(err)
	}
	stranger := httptest.NewServer(http.RedirectHandler(other.Issuer.URL()+"/token", http.StatusTemporaryRedirect))
	defer stranger.Close()
	fx.config.Exchange.TokenURL = stranger.URL
	err := fx.connect(t.Context(), fx.server().Authorizer(ann))
	fx.wantCode(err, errcode.ToolUnavailable, "a redirect")
	if len(other.Requests) != 0 {
		t.Errorf("the other issuer was asked: %v", other.Requests)
	}
}

func TestExchange_InvalidConfiguration(t *testing.T) {
	for name, change := range map[string]func(*mcpauth.Config){
		"not per caller":       func(c *mcpauth.Config) { c.PerCaller = false },
		"no issuer":            func(c *mcpauth.Config) { c.Issuer = "" },
		"no secret":            func(c *mcpauth.Config) { c.Grant, c.ClientSecret = mcpauth.AuthorizationCode, "" },
		"no tokens of callers": func(c *mcpauth.Config) { c.Exchange.Proof = nil },
		"endpoint in clear":    func(c *mcpauth.Config) { c.Exchange.TokenURL = "http://id.example.com/token" },
		"no exchange":          func(c *mcpauth.Config) { c.Exchange = nil },
	} {
		t.Run(name, func(t *testing.T) {
			fx := newExchangeFixture(t)
			fx.config.Logins = fx.logins
			change(&fx.config)
			_, err := mcpauth.New(fx.config)
			fx.wantCode(err, errcode.InvalidConfig, name)
		})
	}
}
