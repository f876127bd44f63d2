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
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/internal/test/oidctest"
)

// An unreachable database is logged as a warning with its cause before the first call, and
// once however often it is tried.
func TestConfigure_LogsUnreachableDatabaseOnce(t *testing.T) {
	db, f := dbtest.NewPostgres(t), newFixture(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close() // the port is free again
	wrong, unreachable := db, db
	wrong.User, unreachable.Port = "no_such_user", port
	docs := []string{"{kind: role, name: reader, toolGroups: all}", postgresSource(db, 1)}
	for name, at := range map[string]dbtest.Database{"wrong": wrong, "unreachable": unreachable} {
		docs = append(docs, strings.Replace(postgresSource(at, 1), "name: pg", "name: "+name, 1),
			"{kind: tool, name: ask_"+name+", type: postgres-sql, source: "+name+", description: d, statement: SELECT 1}")
	}
	if err := f.ApplyConfig(t.Context(), f.read(docs...), nil); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		f.pools.PingServers(t.Context())
		for _, name := range []string{"ask_wrong", "ask_unreachable"} {
			if code, text := f.invoke(t.Context(), name, `{}`); code != string(errcode.ToolUnavailable) {
				t.Errorf("%s: %s %s", name, code, text)
			}
		}
	}
	logs := f.logs.String()
	for _, want := range []string{"source=wrong", "source=unreachable", "no_such_user", fmt.Sprint(port)} {
		if !strings.Contains(logs, want) {
			t.Errorf("no %q in:\n%s", want, logs)
		}
	}
	if n := strings.Count(logs, "\n"); n != 2 || strings.Contains(logs, "source=pg") {
		t.Errorf("%d lines, want one for each unreachable source:\n%s", n, logs)
	}
}

// The debug log has the reason why a token is rejected, and an unreachable issuer is
// logged once as a warning. The token itself is never logged.
func TestAuthServices_LogRejectedTokens(t *testing.T) {
	f, idp, closed := newFixture(t), oidctest.NewIssuer(t), httptest.NewServer(http.NotFoundHandler())
	closed.Close()
	service := func(name, issuer string) string {
		return "{kind: authService, name: " + name + ", type: generic, audience: orders, authorizationServer: '" + issuer + "'}"
	}
	if err := f.ApplyConfig(t.Context(), f.read(readerOfAll, service("reachable", idp.URL), service("closed", closed.URL)), nil); err != nil {
		t.Fatal(err)
	}
	token := idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"others","exp":99999999999}`, idp.URL))
	verify := func() {
		for _, name := range []string{"reachable", "closed", "unknown", "reachable", "closed"} {
			if _, err := f.services.VerifyToken(t.Context(), name, token); err == nil {
				t.Errorf("%s accepts the token", name)
			}
		}
	}
	verify()
	logs := f.logs.String()
	if strings.Count(logs, "\n") != 1 || !strings.Contains(logs, "authService=closed") || !strings.Contains(logs, strings.TrimPrefix(closed.URL, "http://")) {
		t.Errorf("want one line about the unreachable issuer, got:\n%s", logs)
	}
	var all buffer.SyncBuffer
	f.services.log = slog.New(slog.NewTextHandler(&all, &slog.HandlerOptions{Level: slog.LevelDebug}))
	verify()
	if logs := all.String(); strings.Count(logs, "another audience") != 2 || strings.Contains(logs, token[:20]) {
		t.Errorf("got:\n%s", logs)
	}
}
