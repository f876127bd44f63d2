package oidc_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	gooidc "github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/oidc"
)

// issuer is an OpenID Connect server on loopback whose key can be replaced.
type issuer struct {
	url     string
	keys    *oidctest.Server
	signer  *rsa.PrivateKey
	kid     string
	down    atomic.Bool
	fetched atomic.Int64 // how often the keys were fetched

	introspect http.HandlerFunc                 // answers /introspect
	keySet     atomic.Pointer[http.HandlerFunc] // answers in place of keys; nil is keys
}

func newIssuer(t *testing.T) *issuer {
	t.Helper()
	i := &issuer{keys: &oidctest.Server{}}
	server := httptest.NewServer(i)
	t.Cleanup(server.Close)
	i.url = server.URL
	i.keys.SetIssuer(i.url)
	i.rotate(t, "one")
	return i
}

// rotate replaces the issuer's key with a new one named kid.
func (i *issuer) rotate(t *testing.T, kid string) {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	i.signer, i.kid = key, kid
	i.keys.PublicKeys = []oidctest.PublicKey{{PublicKey: key.Public(), KeyID: kid, Algorithm: gooidc.RS256}}
}

func (i *issuer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case i.down.Load():
		http.Error(w, "down", http.StatusServiceUnavailable)
	case r.URL.Path == "/introspect" && i.introspect != nil:
		i.introspect(w, r)
	default:
		if strings.Contains(r.URL.Path, "keys") {
			i.fetched.Add(1)
			if answer := i.keySet.Load(); answer != nil {
				(*answer)(w, r)
				return
			}
		}
		i.keys.ServeHTTP(w, r)
	}
}

// clock is the clock of a Service, which a test advances.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.now.Store(time.Now().Unix())
	return c
}

func (c *clock) time() time.Time         { return time.Unix(c.now.Load(), 0) }
func (c *clock) advance(d time.Duration) { c.now.Add(int64(d / time.Second)) }

// claims returns the claims of a valid token with changes; nil removes a claim.
func (i *issuer) claims(c *clock, changes map[string]any) string {
	all := map[string]any{"iss": i.url, "aud": "orders", "sub": "ann", "exp": c.now.Load() + 600, "scope": "read write"}
	for name, value := range changes {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	data, err := json.Marshal(all)
	if err != nil {
		panic(err)
	}
	return string(data)
}

// token returns a token with these claims, signed by the current key.
func (i *issuer) token(c *clock, changes map[string]any) string {
	return oidctest.SignIDToken(i.signer, i.kid, gooidc.RS256, i.claims(c, changes))
}

// service returns a Service for i; change may adapt its configuration.
func service(t *testing.T, i *issuer, c *clock, change func(*oidc.Config)) *oidc.Service {
	t.Helper()
	config := oidc.Config{Name: "my-auth", Issuer: i.url, Audience: []string{"orders", "billing"}, Now: c.time}
	if change != nil {
		change(&config)
	}
	s, err := oidc.New(config)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestService_VerifiesClaims(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, func(config *oidc.Config) { config.Scopes = []string{"read"} })
	now := c.now.Load()
	for name, tt := range map[string]struct {
		changes map[string]any
		good    bool
	}{
		"valid":                   {nil, true},
		"the other audience":      {map[string]any{"aud": "billing"}, true},
		"list with an audience":   {map[string]any{"aud": []string{"x", "orders"}}, true},
		"expired within the skew": {map[string]any{"exp": now - 20}, true},
		"valid within the skew":   {map[string]any{"nbf": now + 20}, true},
		"scopes as a list":        {map[string]any{"scope": nil, "scp": []string{"read"}}, true},
		"another audience":        {map[string]any{"aud": "others"}, false},
		"no audience":             {map[string]any{"aud": nil}, false},
		"another issuer":          {map[string]any{"iss": "https://evil.example"}, false},
		"no issuer":               {map[string]any{"iss": nil}, false},
		"expired":                 {map[string]any{"exp": now - 60}, false},
		"no expiry":               {map[string]any{"exp": nil}, false},
		"not valid yet":           {map[string]any{"nbf": now + 60}, false},
		"nbf is a string":         {map[string]any{"nbf": "0"}, false},
		"missing scope":           {map[string]any{"scope": "write"}, false},
		"scope with this prefix":  {map[string]any{"scope": "reading"}, false},
		"no scope":                {map[string]any{"scope": nil}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claims, err := s.Verify(t.Context(), i.token(c, tt.changes))
			switch sub, ok := claims.Field("sub"); {
			case tt.good && (err != nil || !ok || string(sub) != `"ann"`):
				t.Errorf("got %s %v, want the claims", claims, err)
			case !tt.good && errcode.CodeOf(err) != errcode.Unauthenticated:
				t.Errorf("got %s %v, want unauthenticated", claims, err)
			}
		})
	}
}

// foreignKeys returns an RSA and an EC key that no issuer has.
func foreignKeys(t *testing.T) (*rsa.PrivateKey, *ecdsa.PrivateKey) {
	t.Helper()
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return foreign, curve
}

func TestService_RejectsUnsignedTokens(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	good := i.token(c, nil)
	parts := strings.Split(good, ".")
	enc := base64.RawURLEncoding.EncodeToString
	foreign, curve := foreignKeys(t)
	for name, token := range map[string]string{
		"empty":                "",
		"with a scheme":        "Bearer " + good,
		"opaque":               "abc",
		"no signature":         parts[0] + "." + parts[1] + ".",
		"alg none":             enc([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		"other claims":         parts[0] + "." + enc([]byte(i.claims(c, map[string]any{"sub": "root"}))) + "." + parts[2],
		"foreign key":          oidctest.SignIDToken(foreign, i.kid, gooidc.RS256, i.claims(c, nil)),
		"unknown key":          oidctest.SignIDToken(foreign, "two", gooidc.RS256, i.claims(c, nil)),
		"another algorithm":    oidctest.SignIDToken(curve, i.kid, gooidc.ES256, i.claims(c, nil)),
		"line break":           good + "\n",
		"four parts":           good + ".x",
		"too long":             strings.Repeat("a", 1<<20),
		"HMAC with public key": enc([]byte(`{"alg":"HS256","kid":"one"}`)) + "." + parts[1] + "." + enc([]byte("x")),
		"duplicate claim":      sign(i, `{"iss":"`+i.url+`","aud":"orders","sub":"ann","sub":"root","exp":`+fmt.Sprint(c.now.Load()+60)+`}`),
	} {
		t.Run(name, func(t *testing.T) {
			if claims, err := s.Verify(t.Context(), token); errcode.CodeOf(err) != errcode.Unauthenticated || len(claims) > 0 {
				t.Errorf("got %s %v, want unauthenticated", claims, err)
			} else if len(token) > 20 && strings.Contains(err.Error(), token[:20]) {
				t.Errorf("the error contains the token: %v", err)
			}
		})
	}
}

// The error states the reason, without a part of the token.
func TestService_ErrorStatesReason(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s, now := service(t, i, c, nil), c.now.Load()
	foreign, curve := foreignKeys(t)
	for token, want := range map[string]string{
		i.token(c, map[string]any{"iss": "https://evil.example"}):            "another issuer",
		i.token(c, map[string]any{"aud": "others"}):                          "another audience",
		i.token(c, map[string]any{"exp": now - 600}):                         "expired",
		i.token(c, map[string]any{"nbf": now + 600}):                         "not valid yet",
		oidctest.SignIDToken(foreign, i.kid, gooidc.RS256, i.claims(c, nil)): "no key of its issuer",
		oidctest.SignIDToken(curve, i.kid, gooidc.ES256, i.claims(c, nil)):   "does not sign with this algorithm",
		"abc.def.ghi": "not a readable JWT",
	} {
		_, err := s.Verify(t.Context(), token)
		if errcode.CodeOf(err) != errcode.Unauthenticated || !strings.Contains(errcode.Message(err), want) || strings.Contains(err.Error(), "evil") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func sign(i *issuer, claims string) string {
	return oidctest.SignIDToken(crypto.PrivateKey(i.signer), i.kid, gooidc.RS256, claims)
}

func TestService_KeepsDigitsOfNumbers(t *testing.T) {
	i, c := newIssuer(t), newClock()
	claims, err := service(t, i, c, nil).Verify(t.Context(), i.token(c, map[string]any{"tenant": json.RawMessage("9007199254740993")}))
	if got, _ := claims.Field("tenant"); err != nil || string(got) != "9007199254740993" {
		t.Errorf("got %s %v", got, err)
	}
}

func TestService_AcceptsRotatedKey(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	old := i.token(c, nil)
	if _, err := s.Verify(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	i.rotate(t, "two")
	c.advance(2 * time.Second)
	if _, err := s.Verify(t.Context(), i.token(c, nil)); err != nil {
		t.Errorf("token of the new key: %v", err)
	}
	eventually(t, "a token of the old key is rejected", func() bool {
		_, err := s.Verify(t.Context(), old)
		return errcode.CodeOf(err) == errcode.Unauthenticated
	})
}

func TestService_CachesKeys(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	for range 60 {
		if _, err := s.Verify(t.Context(), i.token(c, nil)); err != nil {
			t.Fatal(err)
		}
		c.advance(time.Second)
	}
	if got := i.fetched.Load(); got != 1 {
		t.Errorf("the keys were fetched %d times within a minute, want once", got)
	}
}

func TestService_UnknownKeysDoNotFloodIssuer(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		if _, err := s.Verify(t.Context(), oidctest.SignIDToken(foreign, fmt.Sprint("k", n), gooidc.RS256, i.claims(c, nil))); err == nil {
			t.Fatal("a token with an unknown key was accepted")
		}
	}
	if got := i.fetched.Load(); got > 1 {
		t.Errorf("the keys were fetched %d times within a second, want once", got)
	}
}

func TestService_RetriesUnreachableIssuerAfterBackoff(t *testing.T) {
	i, c := newIssuer(t), newClock()
	i.down.Store(true)
	s := service(t, i, c, nil)
	for range 2 {
		if _, err := s.Verify(t.Context(), i.token(c, nil)); errcode.CodeOf(err) != errcode.ToolUnavailable {
			t.Fatalf("got %v, want tool_unavailable", err)
		}
	}
	i.down.Store(false)
	if _, err := s.Verify(t.Context(), i.token(c, nil)); errcode.CodeOf(err) != errcode.ToolUnavailable {
		t.Errorf("got %v, want no discovery before the delay has passed", err)
	}
	c.advance(3 * time.Second)
	if _, err := s.Verify(t.Context(), i.token(c, nil)); err != nil {
		t.Errorf("the issuer is reachable again: %v", err)
	}
}

func TestService_WaitEndsWithContext(t *testing.T) {
	arrived, release := make(chan struct{}), make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(arrived)
		<-release
	}))
	defer server.Close()
	defer close(release)
	s, err := oidc.New(oidc.Config{Name: "slow", Issuer: server.URL, Audience: []string{"a"}})
	if err != nil {
		t.Fatal(err)
	}
	firstCtx, cancelFirst := context.WithCancel(t.Context())
	defer cancelFirst()
	first := make(chan error, 1)
	go func() {
		_, err := s.Verify(firstCtx, "a.b.c")
		first <- err
	}()
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Verify(ctx, "a.b.c"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	cancelFirst()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller that started the discovery got %v", err)
	}
}

func TestService_Introspects(t *testing.T) {
	i, c := newIssuer(t), newClock()
	exp := c.now.Load() + 60
	answers := map[string]string{
		"good":             fmt.Sprintf(`{"active":true,"iss":%q,"aud":"orders","sub":"ann","scope":"read","exp":%d}`, i.url, exp),
		"inactive":         `{"active":false}`,
		"active as string": fmt.Sprintf(`{"active":"true","aud":"orders","exp":%d}`, exp),
		"other issuer":     fmt.Sprintf(`{"active":true,"iss":"x","aud":"orders","exp":%d}`, exp),
		"other audience":   fmt.Sprintf(`{"active":true,"aud":["x"],"exp":%d}`, exp),
		"expired":          fmt.Sprintf(`{"active":true,"aud":"orders","exp":%d}`, exp-600),
	}
	i.introspect = func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, answers[r.FormValue("tok")])
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		s := service(t, i, c, func(config *oidc.Config) {
			config.Introspection = &oidc.Introspection{Endpoint: i.url + "/introspect", Method: method, Parameter: "tok"}
		})
		for token := range answers {
			name := strings.ReplaceAll(token, " ", "_")
			answers[name] = answers[token]
			claims, err := s.Verify(t.Context(), name)
			if sub, _ := claims.Field("sub"); token == "good" && (err != nil || string(sub) != `"ann"`) {
				t.Errorf("%s: got %s %v", method, claims, err)
			} else if token != "good" && errcode.CodeOf(err) != errcode.Unauthenticated {
				t.Errorf("%s, %s: got %v, want unauthenticated", method, token, err)
			}
		}
		if _, err := s.Verify(t.Context(), "unknown"); errcode.CodeOf(err) != errcode.ToolUnavailable {
			t.Errorf("%s, empty answer: %v", method, err)
		}
		if _, err := s.Verify(t.Context(), i.token(c, nil)); err != nil {
			t.Errorf("%s, JWT: %v", method, err)
		}
	}
}

func TestNew_RejectsIncompleteConfig(t *testing.T) {
	for name, c := range map[string]oidc.Config{
		"empty":          {},
		"no issuer":      {Name: "a", Audience: []string{"b"}},
		"no audience":    {Name: "a", Issuer: "https://x"},
		"empty audience": {Name: "a", Issuer: "https://x", Audience: []string{""}},
		"method":         {Name: "a", Issuer: "https://x", Audience: []string{"b"}, Introspection: &oidc.Introspection{Method: "PUT"}},
	} {
		if _, err := oidc.New(c); errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add("a.b.c")
	f.Add("eyJhbGciOiJub25lIn0.e30.")
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	keys := &oidctest.Server{}
	own := httptest.NewServer(keys)
	defer own.Close()
	keys.SetIssuer(own.URL)
	s, err := oidc.New(oidc.Config{Name: "a", Issuer: own.URL, Audience: []string{"b"}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, token string) {
		if claims, err := s.Verify(t.Context(), token); err == nil || len(claims) > 0 {
			t.Errorf("%q was accepted: %s", token, claims)
		}
	})
}

// A token that has expired stays expired when the clock is set back. What is not valid
// yet is judged by the clock itself.
func TestService_ExpiredStaysExpired(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	token, later := i.token(c, nil), i.token(c, map[string]any{"nbf": c.now.Load() + 600, "exp": c.now.Load() + 90_000})
	if _, err := s.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	c.advance(time.Hour)
	if _, err := s.Verify(t.Context(), token); err == nil {
		t.Fatal("the token is valid after an hour")
	}
	c.advance(-time.Hour)
	for name, bad := range map[string]string{"the expired token": token, "a token that is not valid yet": later} {
		if _, err := s.Verify(t.Context(), bad); errcode.CodeOf(err) != errcode.Unauthenticated {
			t.Errorf("%s: got %v, want unauthenticated", name, err)
		}
	}
	if _, err := s.Verify(t.Context(), i.token(c, map[string]any{"exp": c.now.Load() + 90_000})); err != nil {
		t.Errorf("a token that expires later: %v", err)
	}
}
