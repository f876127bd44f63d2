package toolbox_test

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"database/sql"
	"embed"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"github.com/coreos/go-oidc/v3/oidc/oidctest"
	"github.com/go-jose/go-jose/v4"
	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/tool"
)

//go:embed testdata
var testdata embed.FS

func readTestdata(t *testing.T, name string) string {
	t.Helper()
	data, err := testdata.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// issuer is an OpenID Connect provider on loopback with one key, and a rogue key that
// it does not publish.
type issuer struct {
	url    string
	key    *rsa.PrivateKey
	rogue  *rsa.PrivateKey
	tokens gjson.Result
}

func newIssuer(t *testing.T, tokens gjson.Result) *issuer {
	t.Helper()
	i := &issuer{key: newKey(t), rogue: newKey(t), tokens: tokens}
	provider := &oidctest.Server{PublicKeys: []oidctest.PublicKey{{PublicKey: i.key.Public(), KeyID: "k1", Algorithm: oidc.RS256}}}
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	i.url = server.URL
	provider.SetIssuer(i.url)
	return i
}

func newKey(t *testing.T) *rsa.PrivateKey {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

// token returns the token that a case describes.
func (i *issuer) token(t *testing.T, name string) string {
	t.Helper()
	about := i.tokens.Get(name)
	if raw := about.Get("raw"); raw.Exists() {
		return raw.Str
	}
	claims := i.claims(t, about.Get("claims"))
	switch {
	case about.Get("alg").Str == "none":
		return encode(`{"alg":"none","kid":"k1"}`) + "." + encode(claims) + "."
	case about.Get("alg").Str == "HS256":
		return i.signHS256(t, claims)
	case about.Get("key").Exists():
		return oidctest.SignIDToken(i.rogue, "k1", oidc.RS256, claims)
	}
	return oidctest.SignIDToken(i.key, "k1", oidc.RS256, claims)
}

// claims returns claims with their relative times made absolute.
func (i *issuer) claims(t *testing.T, about gjson.Result) string {
	t.Helper()
	all := map[string]any{}
	about.ForEach(func(name, value gjson.Result) bool {
		all[name.Str] = value.Value()
		if name.Str == "exp" || name.Str == "nbf" {
			n, err := strconv.Atoi(value.Str)
			if err != nil {
				t.Fatal(err)
			}
			all[name.Str] = time.Now().Unix() + int64(n)
		}
		return true
	})
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "__IDP__", i.url)
}

// signHS256 signs claims with the public key as an HMAC secret, a known attack.
func (i *issuer) signHS256(t *testing.T, claims string) string {
	t.Helper()
	public, err := json.Marshal(jose.JSONWebKey{Key: i.key.Public(), KeyID: "k1", Algorithm: "RS256", Use: "sig"})
	if err != nil {
		t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.HS256, Key: jose.JSONWebKey{Key: public, KeyID: "k1"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(claims))
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

// newFlightsDB returns the file of a new SQLite database with flights.
func newFlightsDB(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "fixture.db")
	db, err := sql.Open("sqlite", file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	_, err = db.Exec(`CREATE TABLE flights(id integer primary key, airline text, num text, user_id text, price real);
		INSERT INTO flights VALUES (1,'CY','888','u1',10.5), (2,'DL','1234','u2',20), (3,'AA','1','u1',NULL)`)
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// The recorded calls of MCP Toolbox have the expected result at the gate.
func TestModule_ToolboxCalls(t *testing.T) {
	all := gjson.Parse(readTestdata(t, "invoke.json"))
	idp := newIssuer(t, all.Get("tokens"))
	all.Get("cases").ForEach(func(_, c gjson.Result) bool {
		t.Run(fmt.Sprint(c.Get("id").Int(), " ", c.Get("tool").Str), func(t *testing.T) { runCase(t, idp, c) })
		return true
	})
}

// configuration returns the source, the auth services and one tool.
func configuration(t *testing.T, idp *issuer, name string) string {
	t.Helper()
	var kept []string
	for _, doc := range strings.Split(readTestdata(t, "tools.yaml"), "\n---\n") {
		about := gjson.Parse(doc[strings.Index(doc, "{"):])
		if kind := about.Get("kind").Str; kind == "source" || kind == "authService" || kind == "tool" && about.Get("name").Str == name {
			kept = append(kept, doc)
		}
	}
	return strings.NewReplacer("__DB__", newFlightsDB(t), "__IDP__", idp.url).Replace(strings.Join(kept, "\n---\n"))
}

func runCase(t *testing.T, idp *issuer, c gjson.Result) {
	parsed, err := read(configuration(t, idp, c.Get("tool").Str))
	switch must := c.Get("ours.load").Str == "refused"; {
	case must && err == nil:
		t.Error("the configuration was accepted")
	case must, err != nil && c.Get("ours.http.outcome").Str == "refused":
		return
	case err != nil:
		t.Fatal(err)
	}
	w := newFixture(t, parsed)
	w.load(parsed)
	body := c.Get("body").Str
	if strings.TrimSpace(body) == "null" { // as the protocols read it
		body = "{}"
	}
	a := w.call(withTokens(t, idp, c), c.Get("tool").Str, body)
	want := c.Get("ours.http")
	if want.Str == "same" || c.Get("ours").Str == "same" {
		want = c.Get("observed.http")
	}
	wantOutcome(t, a, want)
	if not := c.Get("ours.text_not").Str; not != "" && strings.Contains(resultText(a.Result), not) {
		t.Errorf("%s contains %q", resultText(a.Result), not)
	}
}

// withTokens returns a context with the tokens of a case's headers.
func withTokens(t *testing.T, idp *issuer, c gjson.Result) context.Context {
	t.Helper()
	tokens := map[string]string{}
	c.Get("headers").ForEach(func(header, value gjson.Result) bool {
		text := value.Str
		if before, name, ok := strings.Cut(text, "{token:"); ok {
			text = before + idp.token(t, strings.TrimSuffix(name, "}"))
		}
		if service, ok := strings.CutSuffix(header.Str, "_token"); ok {
			tokens[service] = text
		}
		return true
	})
	return tool.WithCredentials(t.Context(), tool.Credentials{Tokens: tokens})
}

func wantOutcome(t *testing.T, a *gate.Admission, want gjson.Result) {
	t.Helper()
	code := a.Code()
	switch outcome := want.Get("outcome").Str; outcome {
	case "rows":
		if a.Result.IsError || !rowsFit(resultText(a.Result), want) {
			t.Errorf("got %s, want %s", resultText(a.Result), want.Raw)
		}
	case "tool_error", "bad_request":
		if code != errcode.InvalidArguments && code != errcode.ToolExecutionFailed {
			t.Errorf("got %q %s, want %s", code, resultText(a.Result), outcome)
		}
	case "unauthenticated":
		wantCode(t, a, errcode.Unauthenticated)
	case "not_found":
		wantCode(t, a, errcode.UnknownTool)
	case "refused":
		if !a.Result.IsError {
			t.Errorf("got %s, want an error", resultText(a.Result))
		}
	default:
		t.Errorf("unknown outcome %q", outcome)
	}
}

func rowsFit(got string, want gjson.Result) bool {
	either := want.Get("rows_any").Array()
	if len(either) == 0 {
		either = []gjson.Result{want.Get("rows")}
	}
	for _, rows := range either {
		if canonical(got) == canonical(rows.Str) {
			return true
		}
	}
	return false
}

// canonical returns JSON in a canonical form that keeps the order of members and
// duplicate names, and compares numbers by value.
func canonical(doc string) string {
	v := gjson.Parse(doc)
	switch {
	case v.IsArray() || v.IsObject():
		var parts []string
		v.ForEach(func(key, value gjson.Result) bool {
			parts = append(parts, key.String()+":"+canonical(value.Raw))
			return true
		})
		return fmt.Sprint(v.IsArray(), len(parts), parts)
	case v.Type == gjson.Number:
		if strings.ContainsAny(v.Raw, ".eE") {
			return fmt.Sprint(v.Num)
		}
		return v.Raw
	case v.Type == gjson.String:
		return strconv.Quote(v.Str)
	}
	return v.Raw
}
