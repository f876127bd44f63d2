package config_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/test/configtest"
	"github.com/rolecall/rolecall/internal/test/short"
)

// ReloadFiles returns what LoadFiles returns, including positions and errors, after any change.
func TestReloadFiles_EqualsLoad(t *testing.T) {
	dir := t.TempDir()
	one, two := filepath.Join(dir, "a.yaml"), filepath.Join(dir, "b.yaml")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	random := rand.New(rand.NewPCG(1, 7))
	env := map[string]string{"X": "x"}
	lookup := func(name string) (string, bool) { v, ok := env[name]; return v, ok }
	current := new(config.Config)
	accepted := 0
	steps := short.Count(120, 400)
	for step := range steps {
		write(one, randomDocuments(random))
		if random.IntN(2) == 0 || step == 0 {
			write(two, []string{"{kind: role, name: other}", "# nothing", "{kind: toolset, name: more, tools: [a]}", "{kind: role, name: r}"}[random.IntN(4)])
		}
		env["X"] = fmt.Sprint(random.IntN(2))
		want, wantErr := config.LoadFiles([]string{dir}, lookup)
		got, err := current.ReloadFiles([]string{dir}, lookup)
		if diff := cmp.Diff(fmt.Sprint(wantErr), fmt.Sprint(err)); diff != "" {
			t.Fatalf("step %d: different errors (-load +reload):\n%s", step, diff)
		}
		if diff := cmp.Diff(want, got, sameConfig()); diff != "" {
			t.Fatalf("step %d: different configuration (-load +reload):\n%s", step, diff)
		}
		if err == nil {
			accepted++
		}
		current = got
	}
	if accepted < steps/8 {
		t.Errorf("only %d configurations were accepted", accepted)
	}
}

// randomDocuments returns a file of some documents in random order, a few of them
// invalid.
func randomDocuments(random *rand.Rand) string {
	known := []string{
		[]string{"{kind: source, name: db, type: sqlite, database: x.db}", "{kind: source, name: db, type: sqlite, database: x.db, group: [], state: s, effect: readOnly}"}[random.IntN(2)],
		[]string{"{kind: mcpServer, name: fs, command: fs, group: [g]}", "{kind: mcpServer, name: fs, command: fs, available_in_states: [x]}"}[random.IntN(2)],
		"{kind: tool, name: l, type: mcp-tool, description: d, mcp_tool_id: fs/read}",
		"{kind: tool, of: fs/write, group: [a]}",
		"tool: {m: {type: mcp-tool, name: M, description: d}}",
		"{kind: source, name: pg, type: postgres, host: h, port: 1, user: u, database: d}",
		"kind: tool\nname: a\ntype: sqlite-sql\nsource: db\ndescription: d\nstatement: SELECT 1",
		"# about b\n\nkind: tool\nname: b\ntype: sqlite-sql\nsource: db\ndescription: ${X}\nstatement: SELECT 1",
		"name: c\nkind: tools\ntype: sqlite-sql\nsource: db\ndescription: d\nstatement: |\n  SELECT 1\n  --- 1",
		"  {kind: tool, name: e, type: sqlite-sql, source: db, description: d, statement: SELECT 1, authRequired: [s]}",
		"kind: tool\nname: f\ntype: sqlite-sql\nsource: db\ndescription: d\nstatement: SELECT ?1\nparameters: [{name: p, type: string, description: d, authServices: [{name: s, field: sub}]}]",
		"{kind: authService, name: s, type: google, clientId: x}",
		"tools: {g: {kind: sqlite-sql, source: db, description: d, statement: SELECT 1}}\ntoolsets: {t: [g]}",
		"{kind: role, name: r}",
		"# nothing",
	}
	wrong := []string{
		"{kind: toolset, name: u, tools: [a, b]}",
		"{kind: tool, name: a, type: sqlite-sql, source: db, description: d, statement: SELECT 3}",
		"---name: c\nkind: tool",
		"kind: tool\nname: h\ntype: postgres-sql\nsource: db\ndescription: d\nstatement: SELECT 1",
		"kind: tool\nname: i\ntype: sqlite-sql\nsource: nowhere\ndescription: d\nstatement: SELECT 1",
		"kind: tool\nname: j\ntype: sqlite-sql\nsource: db\ndescription: d\nstatement: 'SELECT {{.x}}'\ntemplateParameters: [{name: p, type: string, description: d}]",
		"{kind: tool, of: fs/write, state: b}", "{kind: toolset, name: v, tools: [fs/read, sf/read]}",
		"...\n# end", "%YAML 1.2", "{", "---x",
	}
	var docs []string
	for _, doc := range known {
		if random.IntN(8) > 0 {
			docs = append(docs, doc)
		}
	}
	if random.IntN(3) == 0 {
		docs = append(docs, wrong[random.IntN(len(wrong))])
	}
	if kind := []string{"http", "http", "sqlite"}[random.IntN(3)]; random.IntN(2) == 0 { // a tool and a source that may not fit it
		docs = append(docs, "{kind: tool, name: k, type: http, source: api, description: d, method: POST, path: /x}",
			fmt.Sprintf("{kind: source, name: api, type: %s, %s: 'https://a.example', readOnly: %t}", kind, map[string]string{"http": "baseUrl", "sqlite": "database"}[kind], random.IntN(3) == 0))
	}
	random.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
	return strings.Repeat("\n", random.IntN(3)) + strings.Join(docs, "\n---\n") + "\n"
}

// writeManyTools writes a file of n tools and returns its path. The last tool has
// the statement last.
func writeManyTools(tb testing.TB, n int, last string) string {
	var b strings.Builder
	b.WriteString("{kind: source, name: db, type: sqlite, database: x.db}\n")
	for i := range n {
		statement := "SELECT * FROM flights WHERE airline = ?1 AND id > ?2"
		if i == n-1 {
			statement = last
		}
		fmt.Fprintf(&b, "---\nkind: tool\nname: tool_%d\ntype: sqlite-sql\nsource: db\ndescription: Find the flights of airline number %d.\nstatement: %s\n"+
			"parameters:\n  - name: airline\n    type: string\n    description: Two letters\n  - name: after\n    type: integer\n    description: Least id\n    default: %d\n", i, i, statement, i)
	}
	path := filepath.Join(tb.TempDir(), "tools.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

func BenchmarkLoad5000(b *testing.B) {
	path := writeManyTools(b, 5000, "SELECT 1")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := config.LoadFiles([]string{path}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkReload5000(b *testing.B) {
	first, second := writeManyTools(b, 5000, "SELECT 1"), writeManyTools(b, 5000, "SELECT 2")
	cfg, err := config.LoadFiles([]string{first}, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := cfg.ReloadFiles([]string{second}, nil); err != nil {
			b.Fatal(err)
		}
	}
}

const tripFields = "description: Plans a trip.\nmessages: [{content: 'To {{.city}}.'}]\narguments: [{name: city, description: Where to.}]\n"

// ReloadFiles reuses unchanged tools, and still reads prompts and reports their errors.
func TestReloadFiles_ReadsChangedPrompts(t *testing.T) {
	dir := t.TempDir()
	file := dir + "/org.yaml"
	write := func(text string) { writeFile(t, file, configtest.DeclaredTool+"---\n"+text) }
	write("kind: prompt\nname: trip\n" + tripFields + "---\n{kind: group, name: g, prompts: [trip]}\n")
	cfg, err := config.LoadFiles([]string{file}, testEnv)
	if err != nil {
		t.Fatal(err)
	}
	write("kind: prompt\nname: trip\n" + strings.Replace(tripFields, "To ", "From ", 1) + "---\n{kind: group, name: g, prompts: [trip]}\n")
	next, err := cfg.ReloadFiles([]string{file}, testEnv)
	if err != nil || len(next.Prompts) != 1 || next.Prompts[0].Fingerprint == cfg.Prompts[0].Fingerprint || next.Prompts[0].Messages[0].Content != "From {{.city}}." {
		t.Errorf("got %+v, %v", next.Prompts, err)
	}
	write("{kind: group, name: g, prompts: [trip]}\n")
	if _, err := next.ReloadFiles([]string{file}, testEnv); err == nil || !strings.Contains(err.Error(), "no prompt is named") {
		t.Errorf("a prompt that is gone: %v", err)
	}
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// A tool whose document is unchanged is read again when the document changes that decides about it:
// its source, or the addresses that the operator allows.
func TestReloadFiles_ReadsWhatOtherDocumentsDecide(t *testing.T) {
	const tool = "kind: tool\nname: one\ntype: http\nsource: api\ndescription: d\nmethod: GET\npath: /\nqueryParams: [{name: q, type: string, description: d, allowedValues: ['a|b']}]\n"
	const other = "---\nkind: tool\nname: two\ntype: http\nsource: api\ndescription: d\nmethod: GET\npath: /\n"
	text := func(private, profile string) string {
		return tool + other + "---\n{kind: network, name: n, privateAddresses: " + private + "}\n---\n{kind: source, name: api, type: http, baseUrl: 'http://h', allowedIpRanges: [10.0.0.1], profile: " + profile + "}\n"
	}
	path := filepath.Join(t.TempDir(), "tools.yaml")
	write := func(content string) {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(text("[10.0.0.0/8]", "compat"))
	cfg, err := config.LoadFiles([]string{path}, nil)
	if err != nil || len(cfg.ListAnchored()) != 1 {
		t.Fatalf("%v, %v", cfg.ListAnchored(), err)
	}
	for content, want := range map[string]string{
		text("[10.0.0.0/8]", "strict"):   "neither between slashes",
		text("[10.1.0.0/16]", "compat"):  "privateAddresses of kind: network",
		text("[10.0.0.1/32]", "compat"):  "",
		text("[10.0.0.0/8]", "compat\n"): "",
	} {
		write(content)
		again, err := cfg.ReloadFiles([]string{path}, nil)
		if want == "" && (err != nil || len(again.ListAnchored()) != 1) || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v", content, err)
		}
	}
}
