package app

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/internal/test/oidctest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// invoke calls a tool as a caller in the role reader.
func (f *fixture) invoke(ctx context.Context, name, args string) (code, text string) {
	f.t.Helper()
	role, ok := f.Runtime.Org().RoleByName("reader")
	if !ok {
		return "no reader", ""
	}
	a, err := f.Runtime.InvokeTool(ctx, identity.ByCaller("ann", role.ID), name, json.RawMessage(args))
	if err != nil {
		return err.Error(), ""
	}
	return string(a.Code()), string(a.Result.JSON())
}

// postgresSource returns the document of a source; conns makes one that differs.
func postgresSource(db dbtest.Database, conns int) string {
	password, _ := json.Marshal(db.Password) // a text always marshals
	return fmt.Sprintf("{kind: source, name: pg, type: postgres, host: %s, port: %d, user: %s, password: %s, database: %s, maxConnections: %d}",
		db.Host, db.Port, db.User, password, db.Name, conns)
}

// No call fails and no connection leaks during a hundred changes of tools, of their source
// and of nothing.
func TestReconfigure_LosesNoCallAndNoConnection(t *testing.T) {
	db := dbtest.NewPostgres(t)
	f, watch := newFixture(t), dbtest.OpenPostgres(t, db)
	with := func(n int) *config.Config {
		return f.read("{kind: role, name: reader, toolGroups: [set]}", "{kind: toolset, name: set, tools: [now, same]}",
			postgresSource(db, 2+n/2%2), // changes every second time
			"{kind: tool, name: same, type: postgres-sql, source: pg, description: d, statement: SELECT 1 AS one}",
			fmt.Sprintf("{kind: tool, name: now, type: postgres-sql, source: pg, description: d, statement: 'SELECT %d AS n'}", n/4))
	}
	if err := f.ApplyConfig(t.Context(), with(0), nil); err != nil {
		t.Fatal(err)
	}
	f.callDuring(func(made func() int64) {
		for n := range 100 {
			for made() < int64(n) && !t.Failed() { // wait for a call between two changes
			}
			if _, err := f.reconfigure(t.Context(), with(n)); err != nil {
				t.Errorf("reload %d: %v", n, err)
			}
		}
	})
	if n := f.pools.CountOpen(); n != 1 {
		t.Errorf("%d pools are open, want that of one source", n)
	}
	left := func() (n int) {
		if err := watch.QueryRow("SELECT count(*) FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid()", db.Name).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	// The server ends a connection a moment after its peer has closed it.
	for end := time.Now().Add(10 * time.Second); left() > 3 && time.Now().Before(end); {
	}
	if n := left(); n > 3 {
		t.Errorf("%d connections are open after 100 reloads; the source has at most 3", n)
	}
}

// callDuring calls tools as long as do runs. No call may fail.
func (f *fixture) callDuring(do func(made func() int64)) {
	f.t.Helper()
	var over atomic.Bool
	var calls atomic.Int64
	var all sync.WaitGroup
	for _, name := range []string{"now", "same", "now", "same"} {
		all.Go(func() {
			for !over.Load() {
				if code, text := f.invoke(context.Background(), name, `{}`); code != "" {
					f.t.Errorf("%s: %s %s", name, code, text)
					return
				}
				calls.Add(1)
			}
		})
	}
	do(calls.Load)
	over.Store(true)
	all.Wait()
}

// A source keeps its connections when other documents change. A changed tool replaces the
// module of its source, on the same connections.
func TestReconfigure_TouchesOnlyChangedSources(t *testing.T) {
	f := newFixture(t)
	source := func(name string) string {
		return "{kind: source, name: " + name + ", type: sqlite, database: " + t.TempDir() + "/x.db}"
	}
	declared := func(name, source, more string) string {
		return "{kind: tool, name: " + name + ", type: sqlite-sql, source: " + source + ", description: d, statement: SELECT 1, " + more + "}"
	}
	one, two := source("one"), source("two")
	first := []string{readerOfAll, one, two, declared("x", "one", ""), declared("y", "two", "")}
	if err := f.ApplyConfig(t.Context(), f.read(first...), nil); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		name    string
		docs    []string
		summary string
	}{
		{"same documents, another order", []string{declared("y", "two", ""), one, declared("x", "one", ""), readerOfAll, two}, ""},
		{"tool changed", []string{readerOfAll, one, two, declared("x", "one", "maxRows: 5"), declared("y", "two", "")}, "module one is reloaded"},
		{"tool restored, another added", append(first, declared("z", "two", "")), "module one is reloaded, module two is reloaded"},
		{"source changed", []string{readerOfAll, one, source("two"), declared("x", "one", ""), declared("y", "two", "")}, "module two is reloaded"},
		{"source removed", []string{readerOfAll, one, declared("x", "one", "")}, "module two is unloaded"},
	}
	for _, s := range steps {
		summary, err := f.reconfigure(t.Context(), f.read(s.docs...))
		if got := strings.Join(summary, ", "); err != nil || got != s.summary {
			t.Errorf("%s: %q, %v; want %q", s.name, got, err, s.summary)
		}
	}
	if n := f.pools.CountOpen(); n != 1 {
		t.Errorf("%d pools are open, want 1", n)
	}
}

const readerOfAll = "{kind: role, name: reader, toolGroups: all}"

// A change of the configuration is one change of the registry: tools move between
// toolsets and roles at the same moment.
func TestInstall_ChangesToolsetsAndRolesTogether(t *testing.T) {
	f := newFixture(t)
	with := func(sets ...string) *config.Config {
		docs := []string{"{kind: source, name: db, type: sqlite, database: " + t.TempDir() + "/x.db}"}
		for _, name := range []string{"x", "y", "z"} {
			docs = append(docs, "{kind: tool, name: "+name+", type: sqlite-sql, source: db, description: d, statement: SELECT 1}")
		}
		return f.read(append(docs, sets...)...)
	}
	if err := f.ApplyConfig(t.Context(), with("{kind: toolset, name: old, tools: [x, y]}", "{kind: role, name: reader, toolGroups: [old]}"), nil); err != nil {
		t.Fatal(err)
	}
	var changes int
	f.groups.WatchGroups(func([]toolgroups.GroupID) { changes++ })
	seq := f.LastSeq()
	next := with("{kind: toolset, name: old, tools: [y, z]}", "{kind: toolset, name: new, tools: [x]}", "{kind: role, name: reader, toolGroups: [new, old]}")
	if _, err := f.reconfigure(t.Context(), next); err != nil {
		t.Fatal(err)
	}
	if got := f.allowedTools("x", "y", "z"); got != "x y z" || changes != 1 {
		t.Errorf("the reader may call %q after %d changes, want x y z after 1", got, changes)
	}
	epochs := map[float64]bool{}
	for e, err := range f.store.FollowEvents(t.Context(), seq, false) {
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(e)
		var body struct{ Payload struct{ Epoch float64 } }
		_ = json.Unmarshal(text, &body)
		epochs[body.Payload.Epoch] = true
	}
	if len(epochs) != 1 {
		t.Errorf("the change is recorded in the epochs %v, want one", epochs)
	}
}

// An auth service whose declaration has not changed is reused with its keys. Another one
// of the same name is not, and earlier verifications become invalid.
func TestReconfigure_ReusesUnchangedAuthServices(t *testing.T) {
	f, idp := newFixture(t), oidctest.NewIssuer(t)
	with := func(audience string) *config.Config {
		return f.read(readerOfAll, "{kind: source, name: db, type: sqlite, database: '"+t.TempDir()+"/x.db'}",
			"{kind: authService, name: my, type: generic, audience: "+audience+", authorizationServer: '"+idp.URL+"'}",
			`{kind: tool, name: mine, type: sqlite-sql, source: db, description: d, statement: 'SELECT ?1 AS who', authRequired: [my],
			  parameters: [{name: who, type: string, description: d, authServices: [{name: my, field: sub}]}]}`)
	}
	token := idp.SignToken(fmt.Sprintf(`{"iss":%q,"aud":"orders","sub":"ann","exp":%d}`, idp.URL, time.Now().Add(time.Hour).Unix()))
	withToken := tool.WithCredentials(t.Context(), tool.Credentials{Tokens: map[string]string{"my": token}})
	want := func(ctx context.Context, wantCode, wantText string) {
		t.Helper()
		if code, text := f.invoke(ctx, "mine", `{"who":"eve"}`); code != wantCode || !strings.Contains(text, wantText) {
			t.Errorf("got %s %s, want %s %s", code, text, wantCode, wantText)
		}
	}
	if err := f.ApplyConfig(t.Context(), with("orders"), nil); err != nil {
		t.Fatal(err)
	}
	want(withToken, "", `[{"who":"ann"}]`)
	want(t.Context(), "unauthenticated", "my")
	verified, err := f.services.VerifyToken(t.Context(), "my", token)
	if err != nil || !verified.StillValid() {
		t.Fatalf("the service is not active: %v", err)
	}
	first := f.services.byName()["my"]
	before := first
	for _, audience := range []string{"orders", "others", "orders"} {
		if _, err := f.reconfigure(t.Context(), with(audience)); err != nil {
			t.Fatal(err)
		}
		after := f.services.byName()["my"]
		if same := before.fingerprint == after.fingerprint; (after == before) != same {
			t.Errorf("for %s: unchanged declaration: %v, same service: %v", audience, same, after == before)
		}
		before = after
		if verified.StillValid() != (after == first) {
			t.Errorf("for %s: the verification of the first service is valid: %v", audience, verified.StillValid())
		}
		if audience == "others" {
			want(withToken, "unauthenticated", "my")
		}
	}
	want(withToken, "", `[{"who":"ann"}]`)
	if _, err := f.reconfigure(t.Context(), f.read(readerOfAll)); err != nil || len(f.services.byName()) != 0 {
		t.Errorf("the removed service is active: %v", err)
	}
}

// A source that cannot be replaced rejects the change, so that no toolset of the new
// configuration contains a tool of the old source.
func TestReconfigure_RejectsSourceWithTakenTool(t *testing.T) {
	f := newFixture(t)
	source := "{kind: source, name: db, type: sqlite, database: '" + t.TempDir() + "/x.db'}"
	declared := func(name string) string {
		return "{kind: tool, name: " + name + ", type: sqlite-sql, source: db, description: d, statement: SELECT 1}"
	}
	if err := f.ApplyConfig(t.Context(), f.read(source, declared("x"), declared("y"), "{kind: role, name: reader, toolGroups: [set]}",
		"{kind: toolset, name: set, tools: [x]}"), nil); err != nil {
		t.Fatal(err)
	}
	summary, err := f.reconfigure(t.Context(), f.read(source, declared("x"), declared("y"), declared("z"), "{kind: role, name: reader, toolGroups: [set]}",
		"{kind: toolset, name: set, tools: [x, y, z]}", "{kind: module, name: a, type: fake, settings: {tool: z}}"))
	if err == nil || summary != nil || !strings.Contains(err.Error(), `the tool name "z" belongs to group "a"`) {
		t.Errorf("summary %q, %v", summary, err)
	}
	if got := f.allowedTools("x", "y", "z"); got != "x" {
		t.Errorf("the reader may call %q, want x", got)
	}
	if _, err := f.reconfigure(t.Context(), f.read(source, declared("y"), "{kind: role, name: reader, toolGroups: [set]}", "{kind: toolset, name: set, tools: [y]}")); err != nil || f.allowedTools("x", "y", "z") != "y" {
		t.Errorf("after the fix: %q, %v", f.allowedTools("x", "y", "z"), err)
	}
}

// If one group of a change cannot be registered, nothing changes: no role of the new
// configuration gets tools that are registered under the id of its toolset.
func TestInstall_RejectsGroupThatWasTaken(t *testing.T) {
	f, dir := newFixture(t), t.TempDir()
	with := func(docs ...string) *config.Config {
		docs = append(docs, "{kind: module, name: a, type: fake}", "{kind: source, name: one, type: sqlite, database: '"+dir+"/1.db'}", "{kind: source, name: two, type: sqlite, database: '"+dir+"/2.db'}",
			"{kind: tool, name: y, type: sqlite-sql, source: one, description: d, statement: SELECT 1}")
		return f.read(docs...)
	}
	declared := func(source string) string {
		return "{kind: tool, name: x, type: sqlite-sql, source: " + source + ", description: d, statement: SELECT 1}"
	}
	if err := f.ApplyConfig(t.Context(), with(declared("one"), "{kind: toolset, name: old, tools: [x, y]}", "{kind: role, name: reader, toolGroups: [old]}"), nil); err != nil {
		t.Fatal(err)
	}
	next := with(declared("two"), "{kind: toolset, name: old, tools: [y]}", "{kind: toolset, name: new, tools: [x]}", "{kind: role, name: reader, toolGroups: [new, old]}")
	ch := f.prepare(t.Context(), next, orgConfig(next))
	if len(ch.problems)+len(ch.moduleErrors) > 0 {
		t.Fatal(ch.problems, ch.moduleErrors)
	}
	own, err := tool.New("danger", "", func(context.Context, struct{}) (string, error) { return "", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := grouptest.RegisterGroup(f.Runtime.GroupManager(), "module/other", toolgroups.Group{ID: "new", Tools: []tool.Tool{own}}); err != nil {
		t.Fatal(err)
	}
	before := f.current
	summary, err := f.install(t.Context(), ch)
	if err == nil || !strings.Contains(err.Error(), `tool group "new"`) || summary != nil {
		t.Errorf("summary %q, %v; want no summary and an error that names the group", summary, err)
	}
	if got := f.allowedTools("x", "y", "danger"); got != "x y" || f.current != before {
		t.Errorf("the reader may call %q, want what it could before", got)
	}
	if err := grouptest.UnregisterGroup(f.Runtime.GroupManager(), "module/other", "new"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.reconfigure(t.Context(), next); err != nil || f.allowedTools("x", "y") != "x y" {
		t.Errorf("after the conflict is gone: %q, %v", f.allowedTools("x", "y"), err)
	}
}

// A toolset cannot have the id of a module. It may take the id of a module that leaves.
func TestReconfigure_RejectsToolsetWithModuleID(t *testing.T) {
	f := newFixture(t)
	source := "{kind: source, name: db, type: sqlite, database: '" + t.TempDir() + "/x.db'}"
	declared := "{kind: tool, name: x, type: sqlite-sql, source: db, description: d, statement: SELECT 1}"
	if err := f.ApplyConfig(t.Context(), f.read("{kind: module, name: a, type: fake}", "{kind: role, name: reader, toolGroups: []}"), nil); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		docs []string
		want string
	}{
		{[]string{"{kind: module, name: a, type: fake}", source, declared, "{kind: toolset, name: a, tools: [x]}"}, "is a tool group of a module"},
		{[]string{source, declared, "{kind: toolset, name: a, tools: [x]}", "{kind: role, name: reader, toolGroups: [a]}"}, ""},
	}
	for n, s := range steps {
		summary, err := f.reconfigure(t.Context(), f.read(s.docs...))
		if s.want == "" && err != nil || s.want != "" && (err == nil || summary != nil || !strings.Contains(err.Error(), s.want)) {
			t.Errorf("step %d: summary %q, %v; want %q", n, summary, err, s.want)
		}
	}
	if got := f.allowedTools("x", "a"); got != "x" {
		t.Errorf("the reader may call %q, want x", got)
	}
}
