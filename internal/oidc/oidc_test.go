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

// issuer is a real OpenID Connect server on loopback with keys that rotate.
type issuer struct {
	url     string
	keys    *oidctest.Server
	signer  *rsa.PrivateKey
	kid     string
	down    atomic.Bool
	fetched atomic.Int64 // key sets
	inspect http.HandlerFunc
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

// rotate replaces the issuer's key.
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
	case r.URL.Path == "/introspect" && i.inspect != nil:
		i.inspect(w, r)
	default:
		if strings.Contains(r.URL.Path, "keys") {
			i.fetched.Add(1)
		}
		i.keys.ServeHTTP(w, r)
	}
}

// clock is the time of a test.
type clock struct{ now atomic.Int64 }

func newClock() *clock {
	c := &clock{}
	c.now.Store(time.Now().Unix())
	return c
}

func (c *clock) time() time.Time         { return time.Unix(c.now.Load(), 0) }
func (c *clock) advance(d time.Duration) { c.now.Add(int64(d / time.Second)) }

// claims gives those of a good token, changed: nil takes one away.
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

func (i *issuer) token(c *clock, changes map[string]any) string {
	return oidctest.SignIDToken(i.signer, i.kid, gooidc.RS256, i.claims(c, changes))
}

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

func TestTokensAreVerified(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, func(config *oidc.Config) { config.Scopes = []string{"read"} })
	now := c.now.Load()
	for name, tt := range map[string]struct {
		changes map[string]any
		good    bool
	}{
		"as it should be":        {nil, true},
		"the other audience":     {map[string]any{"aud": "billing"}, true},
		"one of its audiences":   {map[string]any{"aud": []string{"x", "orders"}}, true},
		"expired a moment ago":   {map[string]any{"exp": now - 20}, true},
		"valid in a moment":      {map[string]any{"nbf": now + 20}, true},
		"scopes as a list":       {map[string]any{"scope": nil, "scp": []string{"read"}}, true},
		"another audience":       {map[string]any{"aud": "others"}, false},
		"no audience":            {map[string]any{"aud": nil}, false},
		"another issuer":         {map[string]any{"iss": "https://evil.example"}, false},
		"no issuer":              {map[string]any{"iss": nil}, false},
		"expired":                {map[string]any{"exp": now - 60}, false},
		"no expiry":              {map[string]any{"exp": nil}, false},
		"not valid yet":          {map[string]any{"nbf": now + 60}, false},
		"nbf is a text":          {map[string]any{"nbf": "0"}, false},
		"without the scope":      {map[string]any{"scope": "write"}, false},
		"a scope that begins so": {map[string]any{"scope": "reading"}, false},
		"no scope":               {map[string]any{"scope": nil}, false},
	} {
		t.Run(name, func(t *testing.T) {
			claims, err := s.Verify(t.Context(), i.token(c, tt.changes))
			switch sub, ok := claims.Field("sub"); {
			case tt.good && (err != nil || !ok || string(sub) != `"ann"`):
				t.Errorf("got %s %v, want the claims", claims, err)
			case !tt.good && errcode.Of(err) != errcode.Unauthenticated:
				t.Errorf("got %s %v, want unauthenticated", claims, err)
			}
		})
	}
}

// strangers makes keys that no issuer has.
func strangers(t *testing.T) (*rsa.PrivateKey, *ecdsa.PrivateKey) {
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

func TestWhatNobodySignedIsRefused(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	good := i.token(c, nil)
	parts := strings.Split(good, ".")
	enc := base64.RawURLEncoding.EncodeToString
	foreign, curve := strangers(t)
	for name, token := range map[string]string{
		"empty":                 "",
		"with Bearer":           "Bearer " + good,
		"opaque":                "abc",
		"no signature":          parts[0] + "." + parts[1] + ".",
		"alg none":              enc([]byte(`{"alg":"none"}`)) + "." + parts[1] + ".",
		"other claims":          parts[0] + "." + enc([]byte(i.claims(c, map[string]any{"sub": "root"}))) + "." + parts[2],
		"another's key":         oidctest.SignIDToken(foreign, i.kid, gooidc.RS256, i.claims(c, nil)),
		"unknown key":           oidctest.SignIDToken(foreign, "two", gooidc.RS256, i.claims(c, nil)),
		"another algorithm":     oidctest.SignIDToken(curve, i.kid, gooidc.ES256, i.claims(c, nil)),
		"a line break":          good + "\n",
		"four parts":            good + ".x",
		"over the limit":        strings.Repeat("a", 1<<20),
		"keyed with public":     enc([]byte(`{"alg":"HS256","kid":"one"}`)) + "." + parts[1] + "." + enc([]byte("x")),
		"a claim that is twice": sign(i, `{"iss":"`+i.url+`","aud":"orders","sub":"ann","sub":"root","exp":`+fmt.Sprint(c.now.Load()+60)+`}`),
	} {
		t.Run(name, func(t *testing.T) {
			if claims, err := s.Verify(t.Context(), token); errcode.Of(err) != errcode.Unauthenticated || len(claims) > 0 {
				t.Errorf("got %s %v, want unauthenticated", claims, err)
			} else if len(token) > 20 && strings.Contains(err.Error(), token[:20]) {
				t.Errorf("the error holds the token: %v", err)
			}
		})
	}
}

// The reason is in the error, for the log, in our own words.
func TestTheReasonIsSaid(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s, now := service(t, i, c, nil), c.now.Load()
	foreign, curve := strangers(t)
	for token, want := range map[string]string{
		i.token(c, map[string]any{"iss": "https://evil.example"}):            "another issuer",
		i.token(c, map[string]any{"aud": "others"}):                          "another audience",
		i.token(c, map[string]any{"exp": now - 600}):                         "expired",
		i.token(c, map[string]any{"nbf": now + 600}):                         "not valid yet",
		oidctest.SignIDToken(foreign, i.kid, gooidc.RS256, i.claims(c, nil)): "no key of its issuer",
		oidctest.SignIDToken(curve, i.kid, gooidc.ES256, i.claims(c, nil)):   "does not sign so",
		"abc.def.ghi": "can be read",
	} {
		_, err := s.Verify(t.Context(), token)
		if errcode.Of(err) != errcode.Unauthenticated || !strings.Contains(errcode.Message(err), want) || strings.Contains(err.Error(), "evil") {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func sign(i *issuer, claims string) string {
	return oidctest.SignIDToken(crypto.PrivateKey(i.signer), i.kid, gooidc.RS256, claims)
}

func TestNumbersAreExact(t *testing.T) {
	i, c := newIssuer(t), newClock()
	claims, err := service(t, i, c, nil).Verify(t.Context(), i.token(c, map[string]any{"tenant": json.RawMessage("9007199254740993")}))
	if got, _ := claims.Field("tenant"); err != nil || string(got) != "9007199254740993" {
		t.Errorf("got %s %v", got, err)
	}
}

func TestKeysRotate(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	old := i.token(c, nil)
	if _, err := s.Verify(t.Context(), old); err != nil {
		t.Fatal(err)
	}
	i.rotate(t, "two")
	c.advance(2 * time.Second)
	if _, err := s.Verify(t.Context(), i.token(c, nil)); err != nil {
		t.Errorf("a token of the new key: %v", err)
	}
	soon(t, "a token of the key that is gone is refused", func() bool {
		_, err := s.Verify(t.Context(), old)
		return errcode.Of(err) == errcode.Unauthenticated
	})
}

func TestKeysAreKept(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	for range 60 {
		if _, err := s.Verify(t.Context(), i.token(c, nil)); err != nil {
			t.Fatal(err)
		}
		c.advance(time.Second)
	}
	if got := i.fetched.Load(); got != 1 {
		t.Errorf("the keys were asked for %d times within a minute", got)
	}
}

func TestUnknownKeysDoNotFloodTheIssuer(t *testing.T) {
	i, c := newIssuer(t), newClock()
	s := service(t, i, c, nil)
	foreign, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for n := range 50 {
		if _, err := s.Verify(t.Context(), oidctest.SignIDToken(foreign, fmt.Sprint("k", n), gooidc.RS256, i.claims(c, nil))); err == nil {
			t.Fatal("it passed")
		}
	}
	if got := i.fetched.Load(); got > 1 {
		t.Errorf("the keys were asked for %d times within a second", got)
	}
}

func TestAnIssuerThatIsDownVerifiesNothingAndIsAskedAgain(t *testing.T) {
	i, c := newIssuer(t), newClock()
	i.down.Store(true)
	s := service(t, i, c, nil)
	for range 2 {
		if _, err := s.Verify(t.Context(), i.token(c, nil)); errcode.Of(err) != errcode.ToolUnavailable {
			t.Fatalf("got %v, want tool_unavailable", err)
		}
	}
	i.down.Store(false)
	if _, err := s.Verify(t.Context(), i.token(c, nil)); errcode.Of(err) != errcode.ToolUnavailable {
		t.Errorf("got %v, want it not to be asked at once", err)
	}
	c.advance(3 * time.Second)
	if _, err := s.Verify(t.Context(), i.token(c, nil)); err != nil {
		t.Errorf("it is back: %v", err)
	}
}

func TestWaitingEndsWithTheCaller(t *testing.T) {
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
	began, leave := context.WithCancel(t.Context())
	defer leave()
	first := make(chan error, 1)
	go func() {
		_, err := s.Verify(began, "a.b.c")
		first <- err
	}()
	<-arrived
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Verify(ctx, "a.b.c"); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	leave()
	if err := <-first; !errors.Is(err, context.Canceled) {
		t.Errorf("who began it got %v", err)
	}
}

func TestIntrospection(t *testing.T) {
	i, c := newIssuer(t), newClock()
	exp := c.now.Load() + 60
	answers := map[string]string{
		"good":           fmt.Sprintf(`{"active":true,"iss":%q,"aud":"orders","sub":"ann","scope":"read","exp":%d}`, i.url, exp),
		"inactive":       `{"active":false}`,
		"active as text": fmt.Sprintf(`{"active":"true","aud":"orders","exp":%d}`, exp),
		"other issuer":   fmt.Sprintf(`{"active":true,"iss":"x","aud":"orders","exp":%d}`, exp),
		"other audience": fmt.Sprintf(`{"active":true,"aud":["x"],"exp":%d}`, exp),
		"expired":        fmt.Sprintf(`{"active":true,"aud":"orders","exp":%d}`, exp-600),
	}
	i.inspect = func(w http.ResponseWriter, r *http.Request) {
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
			} else if token != "good" && errcode.Of(err) != errcode.Unauthenticated {
				t.Errorf("%s, %s: got %v, want unauthenticated", method, token, err)
			}
		}
		if _, err := s.Verify(t.Context(), "unknown"); errcode.Of(err) != errcode.ToolUnavailable {
			t.Errorf("%s, an answer that is none: %v", method, err)
		}
		if _, err := s.Verify(t.Context(), i.token(c, nil)); err != nil {
			t.Errorf("%s, a JWT: %v", method, err)
		}
	}
}

func TestConfigurationsThatCheckNothingAreRefused(t *testing.T) {
	for name, c := range map[string]oidc.Config{
		"nothing":        {},
		"no issuer":      {Name: "a", Audience: []string{"b"}},
		"no audience":    {Name: "a", Issuer: "https://x"},
		"empty audience": {Name: "a", Issuer: "https://x", Audience: []string{""}},
		"method":         {Name: "a", Issuer: "https://x", Audience: []string{"b"}, Introspection: &oidc.Introspection{Method: "PUT"}},
	} {
		if _, err := oidc.New(c); errcode.Of(err) != errcode.InvalidConfig {
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
			t.Errorf("%q passed: %s", token, claims)
		}
	})
}
