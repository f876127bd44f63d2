package app

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/internal/test/oidctest"
)

// The operator is told, without -v and before anybody calls, that a database
// cannot be had, and why; once, however often it is tried.
func TestADatabaseThatIsAwayIsTold(t *testing.T) {
	db, w := dbtest.Postgres(t), openWorkshop(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close() // nobody listens there
	wrong, away := db, db
	wrong.User, away.Port = "nobody_of_that_name", port
	docs := []string{"{kind: role, name: reader, toolGroups: all}", postgresSource(db, 1)}
	for name, at := range map[string]dbtest.Database{"wrong": wrong, "away": away} {
		docs = append(docs, strings.Replace(postgresSource(at, 1), "name: pg", "name: "+name, 1),
			"{kind: tool, name: ask_"+name+", type: postgres-sql, source: "+name+", description: d, statement: SELECT 1}")
	}
	if err := w.Configure(t.Context(), w.read(docs...), nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		w.pools.Ping(t.Context())
		for _, name := range []string{"ask_wrong", "ask_away"} {
			if code, text := w.invoke(t.Context(), name, `{}`); code != string(errcode.ToolUnavailable) {
				t.Errorf("%s: %s %s", name, code, text)
			}
		}
	}
	said := w.said.String()
	for _, want := range []string{"source=wrong", "source=away", "nobody_of_that_name", fmt.Sprint(port)} {
		if !strings.Contains(said, want) {
			t.Errorf("nothing of %q in:\n%s", want, said)
		}
	}
	if n := strings.Count(said, "\n"); n != 2 || strings.Contains(said, "source=pg") {
		t.Errorf("%d lines, want one for each that is away:\n%s", n, said)
	}
}

// The log says, with -v, why a token is refused, and without, once, that an
// issuer cannot be asked; never the token.
func TestWhyATokenIsRefusedIsLogged(t *testing.T) {
	w, idp, away := openWorkshop(t), oidctest.New(t), httptest.NewServer(http.NotFoundHandler())
	away.Close()
	service := func(name, issuer string) string {
		return "{kind: authService, name: " + name + ", type: generic, audience: orders, authorizationServer: '" + issuer + "'}"
	}
	if err := w.Configure(t.Context(), w.read(reader1, service("there", idp.URL), service("away", away.URL)), nil); err != nil {
		t.Fatal(err)
	}
	token := idp.Token(fmt.Sprintf(`{"iss":%q,"aud":"others","exp":99999999999}`, idp.URL))
	ask := func() {
		for _, name := range []string{"there", "away", "nowhere", "there", "away"} {
			if _, err := w.services.Verify(t.Context(), name, token); err == nil {
				t.Errorf("%s vouches", name)
			}
		}
	}
	ask()
	said := w.said.String()
	if strings.Count(said, "\n") != 1 || !strings.Contains(said, "authService=away") || !strings.Contains(said, strings.TrimPrefix(away.URL, "http://")) {
		t.Errorf("want one line of the issuer that is away, got:\n%s", said)
	}
	var all output
	w.services.log = slog.New(slog.NewTextHandler(&all, &slog.HandlerOptions{Level: slog.LevelDebug}))
	ask()
	if said := all.String(); strings.Count(said, "another audience") != 2 || strings.Contains(said, token[:20]) {
		t.Errorf("got:\n%s", said)
	}
}
