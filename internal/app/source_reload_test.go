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

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/dbtest"
	"github.com/rolecall/rolecall/internal/test/oidctest"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// invoke has somebody in the role reader call a tool.
func (w *workshop) invoke(ctx context.Context, name, args string) (code, text string) {
	w.t.Helper()
	role, ok := w.Runtime.Org().RoleNamed("reader")
	if !ok {
		return "no reader", ""
	}
	a, err := w.Runtime.Invoke(ctx, identity.ByCaller("ann", role.ID), name, json.RawMessage(args))
	if err != nil {
		return err.Error(), ""
	}
	return string(a.Code()), string(a.Result.JSON())
}

// postgresSource is a document of a source, which params make another one.
func postgresSource(db dbtest.Database, conns int) string {
	password, _ := json.Marshal(db.Password) // a text always marshals
	return fmt.Sprintf("{kind: source, name: pg, type: postgres, host: %s, port: %d, user: %s, password: %s, database: %s, maxConnections: %d}",
		db.Host, db.Port, db.User, password, db.Name, conns)
}

// A hundred reloads, of tools, of their source and of nothing, lose no call and
// leave no connection.
func TestReloadsLoseNoCallAndNoConnection(t *testing.T) {
	db := dbtest.Postgres(t)
	w, watch := openWorkshop(t), opened(t, db)
	with := func(n int) *config.Config {
		return w.read("{kind: role, name: reader, toolGroups: [set]}", "{kind: toolset, name: set, tools: [now, same]}",
			postgresSource(db, 2+n/2%2), // every second time another
			"{kind: tool, name: same, type: postgres-sql, source: pg, description: d, statement: SELECT 1 AS one}",
			fmt.Sprintf("{kind: tool, name: now, type: postgres-sql, source: pg, description: d, statement: 'SELECT %d AS n'}", n/4))
	}
	if err := w.Configure(t.Context(), with(0), nil); err != nil {
		t.Fatal(err)
	}
	w.call(func(made func() int64) {
		for n := range 100 {
			for made() < int64(n) && !t.Failed() { // each meets some
			}
			if _, err := w.reconfigure(t.Context(), with(n)); err != nil {
				t.Errorf("reload %d: %v", n, err)
			}
		}
	})
	if n := w.pools.Open(); n != 1 {
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

// call calls tools all the time that do goes on; none of the calls may fail.
func (w *workshop) call(do func(made func() int64)) {
	w.t.Helper()
	var over atomic.Bool
	var calls atomic.Int64
	var all sync.WaitGroup
	for _, name := range []string{"now", "same", "now", "same"} {
		all.Go(func() {
			for !over.Load() {
				if code, text := w.invoke(context.Background(), name, `{}`); code != "" {
					w.t.Errorf("%s: %s %s", name, code, text)
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

// A source stays, with its pool, when other documents change; a tool that
// changes makes its module anew on the same pool.
func TestOnlyChangedSourcesAreTouched(t *testing.T) {
	w := openWorkshop(t)
	source := func(name string) string {
		return "{kind: source, name: " + name + ", type: sqlite, database: " + t.TempDir() + "/x.db}"
	}
	declared := func(name, source, more string) string {
		return "{kind: tool, name: " + name + ", type: sqlite-sql, source: " + source + ", description: d, statement: SELECT 1, " + more + "}"
	}
	one, two := source("one"), source("two")
	first := []string{reader1, one, two, declared("x", "one", ""), declared("y", "two", "")}
	if err := w.Configure(t.Context(), w.read(first...), nil); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		why  string
		docs []string
		told string
	}{
		{"the same, in another order", []string{declared("y", "two", ""), one, declared("x", "one", ""), reader1, two}, ""},
		{"a tool", []string{reader1, one, two, declared("x", "one", "maxRows: 5"), declared("y", "two", "")}, "module one is reloaded"},
		{"a tool back, and one more", append(first, declared("z", "two", "")), "module one is reloaded, module two is reloaded"},
		{"a source", []string{reader1, one, source("two"), declared("x", "one", ""), declared("y", "two", "")}, "module two is reloaded"},
		{"one source less", []string{reader1, one, declared("x", "one", "")}, "module two is unloaded"},
	}
	for _, s := range steps {
		told, err := w.reconfigure(t.Context(), w.read(s.docs...))
		if got := strings.Join(told, ", "); err != nil || got != s.told {
			t.Errorf("%s: %q, %v; want %q", s.why, got, err, s.told)
		}
	}
	if n := w.pools.Open(); n != 1 {
		t.Errorf("%d pools are open, want 1", n)
	}
}

const reader1 = "{kind: role, name: reader, toolGroups: all}"

// While a change is under way a toolset holds what it has in both
// configurations, and no more.
func TestToolsetsNarrowBeforeTheyWiden(t *testing.T) {
	w := openWorkshop(t)
	with := func(sets ...string) *config.Config {
		docs := []string{"{kind: source, name: db, type: sqlite, database: " + t.TempDir() + "/x.db}"}
		for _, name := range []string{"x", "y", "z"} {
			docs = append(docs, "{kind: tool, name: "+name+", type: sqlite-sql, source: db, description: d, statement: SELECT 1}")
		}
		return w.read(append(docs, sets...)...)
	}
	reads := "{kind: role, name: reader, toolGroups: [old]}"
	if err := w.Configure(t.Context(), with("{kind: toolset, name: old, tools: [x, y]}", reads), nil); err != nil {
		t.Fatal(err)
	}
	next := with("{kind: toolset, name: old, tools: [y, z]}", "{kind: toolset, name: new, tools: [x]}", "{kind: role, name: reader, toolGroups: [new, old]}")
	ch := w.prepare(t.Context(), next, setup(next))
	if len(ch.faults)+len(ch.failed) > 0 {
		t.Fatal(ch.faults, ch.failed)
	}
	for _, step := range []struct {
		name string
		do   func() error
		may  string
	}{
		{"before", func() error { return nil }, "x y"},
		{"narrowed", func() error { return w.restrict(ch) }, "y"},
		{"with the new roles", func() error { return w.Runtime.Configure(ch.setup) }, "y"},
		{"widened", func() error { return w.expand(ch) }, "x y z"},
	} {
		if err := step.do(); err != nil {
			t.Fatal(step.name, err)
		}
		if got := w.may("x", "y", "z"); got != step.may {
			t.Errorf("%s: the reader may call %q, want %q", step.name, got, step.may)
		}
	}
	if err := w.discard(t.Context(), ch); err != nil {
		t.Error(err)
	}
}

// An auth service that is declared as before keeps what it knows; another one
// of the same name does not.
func TestAuthServicesStayWhatTheyAre(t *testing.T) {
	w, idp := openWorkshop(t), oidctest.New(t)
	with := func(audience string) *config.Config {
		return w.read(reader1, "{kind: source, name: db, type: sqlite, database: '"+t.TempDir()+"/x.db'}",
			"{kind: authService, name: my, type: generic, audience: "+audience+", authorizationServer: '"+idp.URL+"'}",
			`{kind: tool, name: mine, type: sqlite-sql, source: db, description: d, statement: 'SELECT ?1 AS who', authRequired: [my],
			  parameters: [{name: who, type: string, description: d, authServices: [{name: my, field: sub}]}]}`)
	}
	token := idp.Token(fmt.Sprintf(`{"iss":%q,"aud":"orders","sub":"ann","exp":%d}`, idp.URL, time.Now().Add(time.Hour).Unix()))
	shown := tool.WithCredentials(t.Context(), tool.Credentials{Tokens: map[string]string{"my": token}})
	want := func(ctx context.Context, wantCode, wantText string) {
		t.Helper()
		if code, text := w.invoke(ctx, "mine", `{"who":"eve"}`); code != wantCode || !strings.Contains(text, wantText) {
			t.Errorf("got %s %s, want %s %s", code, text, wantCode, wantText)
		}
	}
	if err := w.Configure(t.Context(), with("orders"), nil); err != nil {
		t.Fatal(err)
	}
	want(shown, "", `[{"who":"ann"}]`)
	want(t.Context(), "unauthenticated", "my")
	vouched, err := w.services.Verify(t.Context(), "my", token)
	if err != nil || !vouched.StillValid() {
		t.Fatalf("the service is not in force: %v", err)
	}
	first := w.services.all()["my"]
	before := first
	for _, audience := range []string{"orders", "others", "orders"} {
		if _, err := w.reconfigure(t.Context(), with(audience)); err != nil {
			t.Fatal(err)
		}
		after := w.services.all()["my"]
		if same := before.print == after.print; (after == before) != same {
			t.Errorf("for %s: declared as before: %v, the same service: %v", audience, same, after == before)
		}
		before = after
		if vouched.StillValid() != (after == first) {
			t.Errorf("for %s: the word of the first service is in force: %v", audience, vouched.StillValid())
		}
		if audience == "others" {
			want(shown, "unauthenticated", "my")
		}
	}
	want(shown, "", `[{"who":"ann"}]`)
	if _, err := w.reconfigure(t.Context(), w.read(reader1)); err != nil || len(w.services.all()) != 0 {
		t.Errorf("a service that is gone is there: %v", err)
	}
}

// A source that cannot be replaced is unloaded: no toolset of the new
// configuration holds a tool of the old.
func TestASourceThatIsNotReplacedGivesNothing(t *testing.T) {
	w := openWorkshop(t)
	source := "{kind: source, name: db, type: sqlite, database: '" + t.TempDir() + "/x.db'}"
	declared := func(name string) string {
		return "{kind: tool, name: " + name + ", type: sqlite-sql, source: db, description: d, statement: SELECT 1}"
	}
	if err := w.Configure(t.Context(), w.read(source, declared("x"), declared("y"), "{kind: role, name: reader, toolGroups: [set]}",
		"{kind: toolset, name: set, tools: [x]}"), nil); err != nil {
		t.Fatal(err)
	}
	told, err := w.reconfigure(t.Context(), w.read(source, declared("x"), declared("y"), declared("z"), "{kind: role, name: reader, toolGroups: [set]}",
		"{kind: toolset, name: set, tools: [x, y, z]}", "{kind: module, name: a, type: lamp, settings: {tool: z}}"))
	if err == nil || !strings.Contains(err.Error(), "the one before is unloaded") {
		t.Errorf("told %q, %v", told, err)
	}
	if got := w.may("x", "y", "z"); got != "" {
		t.Errorf("the reader may call %q, want nothing", got)
	}
	if _, err := w.reconfigure(t.Context(), w.read(source, declared("y"), "{kind: role, name: reader, toolGroups: [set]}", "{kind: toolset, name: set, tools: [y]}")); err != nil || w.may("x", "y", "z") != "y" {
		t.Errorf("after it is mended: %q, %v", w.may("x", "y", "z"), err)
	}
}

// Where toolsets cannot narrow, nothing of the change comes in force: a role
// of the new configuration gets nothing in the stead of its toolsets.
func TestAChangeThatCannotNarrowChangesNothing(t *testing.T) {
	w, dir := openWorkshop(t), t.TempDir()
	with := func(docs ...string) *config.Config {
		docs = append(docs, "{kind: module, name: a, type: lamp}", "{kind: source, name: one, type: sqlite, database: '"+dir+"/1.db'}", "{kind: source, name: two, type: sqlite, database: '"+dir+"/2.db'}",
			"{kind: tool, name: y, type: sqlite-sql, source: one, description: d, statement: SELECT 1}")
		return w.read(docs...)
	}
	declared := func(source string) string {
		return "{kind: tool, name: x, type: sqlite-sql, source: " + source + ", description: d, statement: SELECT 1}"
	}
	if err := w.Configure(t.Context(), with(declared("one"), "{kind: toolset, name: old, tools: [x, y]}", "{kind: role, name: reader, toolGroups: [old]}"), nil); err != nil {
		t.Fatal(err)
	}
	next := with(declared("two"), "{kind: toolset, name: old, tools: [y]}", "{kind: toolset, name: new, tools: [x]}", "{kind: role, name: reader, toolGroups: [new, old]}")
	ch := w.prepare(t.Context(), next, setup(next))
	if len(ch.faults)+len(ch.failed) > 0 {
		t.Fatal(ch.faults, ch.failed)
	}
	own, err := tool.New("danger", "", func(context.Context, struct{}) (string, error) { return "", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Runtime.Register("module/other", toolgroups.Group{ID: "new", Tools: []tool.Tool{own}}); err != nil {
		t.Fatal(err)
	}
	before := w.current
	told, err := w.install(t.Context(), ch)
	if err == nil || !strings.Contains(err.Error(), `toolset "new"`) || told != nil {
		t.Errorf("told %q, %v; want nothing told, and the toolset named", told, err)
	}
	if got := w.may("x", "y", "danger"); got != "x y" || w.current != before {
		t.Errorf("the reader may call %q, want what it could before", got)
	}
	if err := w.Runtime.Unregister("module/other", "new"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconfigure(t.Context(), next); err != nil || w.may("x", "y") != "x y" {
		t.Errorf("when there is no hindrance: %q, %v", w.may("x", "y"), err)
	}
}

// A toolset takes no id of a module that is still there when it is registered.
func TestAToolsetWaitsForTheModuleOfItsName(t *testing.T) {
	w := openWorkshop(t)
	source := "{kind: source, name: db, type: sqlite, database: '" + t.TempDir() + "/x.db'}"
	declared := "{kind: tool, name: x, type: sqlite-sql, source: db, description: d, statement: SELECT 1}"
	if err := w.Configure(t.Context(), w.read("{kind: module, name: a, type: lamp}", "{kind: role, name: reader, toolGroups: []}"), nil); err != nil {
		t.Fatal(err)
	}
	steps := []struct {
		docs []string
		want string
	}{
		{[]string{source, declared, "{kind: toolset, name: a, tools: [x]}", "{kind: role, name: reader, toolGroups: [a]}"}, "take that module out first"},
		{[]string{"{kind: role, name: reader, toolGroups: []}"}, ""},
		{[]string{source, declared, "{kind: toolset, name: a, tools: [x]}", "{kind: role, name: reader, toolGroups: [a]}"}, ""},
	}
	for n, s := range steps {
		told, err := w.reconfigure(t.Context(), w.read(s.docs...))
		if s.want == "" && err != nil || s.want != "" && (err == nil || told != nil || !strings.Contains(err.Error(), s.want)) {
			t.Errorf("step %d: told %q, %v; want %q", n, told, err, s.want)
		}
	}
	if got := w.may("x", "a"); got != "x" {
		t.Errorf("the reader may call %q, want x", got)
	}
}
