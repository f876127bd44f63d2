package configured_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/configured"
	"github.com/rolecall/rolecall/errcode"
)

var me = rolecall.Operator("me")

// config has a role with a declared tool and a tool of the program.
const config = `{kind: role, name: reader, prompt: Read., toolGroups: [default, kit]}
---
{kind: source, name: db, type: sqlite, database: "DIR/x.db"}
---
{kind: tool, name: one, type: sqlite-sql, source: db, description: d, statement: SELECT 1 AS one}
`

func write(t *testing.T, text string) (dir, path string) {
	t.Helper()
	dir = t.TempDir()
	path = filepath.Join(dir, "org.yaml")
	if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "DIR", dir)), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, path
}

func open(t *testing.T, o rolecall.Options) *rolecall.Organization {
	t.Helper()
	org, err := rolecall.Open(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := org.Close(); err != nil {
			t.Error(err)
		}
	})
	return org
}

// kit is a module of the program.
type kit struct{ greet rolecall.Tool }

func (k kit) Name() string { return "kit" }
func (k kit) ToolGroups() []rolecall.ToolGroup {
	return []rolecall.ToolGroup{{Tools: []rolecall.Tool{k.greet}}}
}

func newKit(t *testing.T) kit {
	t.Helper()
	greet, err := rolecall.NewTool("greet", "Greet.", func(context.Context, struct{}) (string, error) { return "hello", nil }, nil)
	if err != nil {
		t.Fatal(err)
	}
	return kit{greet}
}

// callBoth calls one and greet, and ends with both results.
func callBoth(_ context.Context, r rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
	var results []json.RawMessage
	for _, item := range r.Items {
		if item.Result != nil {
			results = append(results, item.Result.Content)
		}
	}
	if len(results) == 2 {
		text, err := json.Marshal(results)
		return rolecall.ModelAnswer{Value: text}, err
	}
	return rolecall.ModelAnswer{Calls: []rolecall.ModelCall{{Name: "one", Args: []byte(`{}`)}, {Name: "greet", Args: []byte(`{}`)}}}, nil
}

// The roles and tools of files work next to those of the program, also in the next process.
// A role that the file no longer has is deleted, and one of the program stays.
func TestFiles_ComposeWithProgram(t *testing.T) {
	dir, path := write(t, config)
	o := rolecall.Options{Data: filepath.Join(dir, "data"), Files: configured.Files(path), Modules: []rolecall.Module{newKit(t)}, Model: rolecall.ModelFunc(callBoth)}
	org := open(t, o)
	got, err := rolecall.Run[json.RawMessage](t.Context(), org, rolecall.TaskSpec{As: me, Role: "reader"})
	if err != nil || !strings.Contains(string(got), "hello") || !strings.Contains(string(got), "one") {
		t.Errorf("got %s, %v", got, err)
	}
	if _, err := org.EnsureRole(t.Context(), rolecall.RoleSpec{Name: "guest", ToolGroups: []rolecall.GroupID{"kit"}}); err != nil {
		t.Fatal(err)
	}
	_, err = org.EnsureRole(t.Context(), rolecall.RoleSpec{Name: "reader"})
	if errcode.CodeOf(err) != errcode.Conflict {
		t.Errorf("change a role of a file: %v", err)
	}
	task, err := org.Begin(t.Context(), rolecall.TaskSpec{As: me})
	if err != nil {
		t.Fatal(err)
	}
	if err := org.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{kind: role, name: other, prompt: x}"), 0o600); err != nil {
		t.Fatal(err)
	}
	org = open(t, o)
	if again, err := org.Resume(t.Context(), rolecall.ResumeSpec{As: me, Task: task.ID()}); err != nil {
		t.Error(err)
	} else if err := again.End(t.Context(), 1); err != nil {
		t.Error(err)
	}
	if _, err := org.Tools(rolecall.Subject{Role: "reader"}); errcode.CodeOf(err) != errcode.RoleNotFound {
		t.Errorf("a role that the file no longer has: %v", err)
	}
	if tools, err := org.Tools(rolecall.Subject{Role: "guest"}); err != nil || !slices.Equal(tools, []string{"greet"}) {
		t.Errorf("the role of the program has %v, %v", tools, err)
	}
}

// An MCP server of a file is connected, and its tools are called.
func TestFiles_MCPServer(t *testing.T) {
	weather := sdk.NewServer(&sdk.Implementation{Name: "weather", Version: "1"}, nil)
	weather.AddTool(&sdk.Tool{Name: "forecast", InputSchema: json.RawMessage(`{"type": "object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "sunny"}}}, nil
	})
	server := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return weather }, nil))
	t.Cleanup(server.Close)
	dir, path := write(t, "{kind: mcpServer, name: weather, pin: false, url: \""+server.URL+"\"}\n---\n{kind: role, name: guide, toolGroups: [weather]}")
	model := rolecall.ModelFunc(func(_ context.Context, r rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
		if last := r.Items[len(r.Items)-1]; last.Result != nil {
			return rolecall.ModelAnswer{Value: last.Result.Content}, nil
		}
		return rolecall.ModelAnswer{Calls: []rolecall.ModelCall{{Name: "weather__forecast", Args: []byte(`{}`)}}}, nil
	})
	org := open(t, rolecall.Options{Data: filepath.Join(dir, "data"), Files: configured.Files(path), Model: model})
	got, err := rolecall.Run[json.RawMessage](t.Context(), org, rolecall.TaskSpec{As: me, Role: "guide"})
	if err != nil || !strings.Contains(string(got), "sunny") {
		t.Errorf("got %s, %v", got, err)
	}
}

// A file names the model of the organization and of a role. The program's models answer
// where it names none.
func TestFiles_Models(t *testing.T) {
	dir, path := write(t, `{kind: organization, name: o, model: scripted}
---
{kind: model, name: scripted, type: script, file: agents.js}
`)
	if err := os.WriteFile(filepath.Join(dir, "agents.js"), []byte(`role("root", function* () { return "from the script"; });`), 0o600); err != nil {
		t.Fatal(err)
	}
	second := rolecall.ModelFunc(func(context.Context, rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
		return rolecall.ModelAnswer{Text: "from the program"}, nil
	})
	org := open(t, rolecall.Options{Data: filepath.Join(dir, "data"), Files: configured.Files(path), Models: map[string]rolecall.Model{"second": second}})
	if _, err := org.EnsureRole(t.Context(), rolecall.RoleSpec{Name: "clerk", Model: "second"}); err != nil {
		t.Fatal(err)
	}
	for role, want := range map[string]string{"": "from the script", "clerk": "from the program"} {
		got, err := rolecall.Run[string](t.Context(), org, rolecall.TaskSpec{As: me, Role: role})
		if got != want || err != nil {
			t.Errorf("%s answered %q, %v", role, got, err)
		}
	}
}

// Wrong files, no data directory and no model fail Open with all mistakes, and leave no data
// directory behind.
func TestOpen_ReportsWrongFiles(t *testing.T) {
	model := rolecall.ModelFunc(callBoth)
	for name, c := range map[string]struct {
		text string
		o    rolecall.Options
		want []string
	}{
		"not YAML":      {"{", rolecall.Options{Model: model}, []string{"org.yaml"}},
		"two mistakes":  {"{kind: role, name: a, toolGroups: [nothing]}\n---\n{kind: rule}\n", rolecall.Options{Model: model}, []string{"org.yaml:1:", "nothing", "org.yaml:3:", "rule"}},
		"no model":      {"{kind: role, name: a}", rolecall.Options{}, []string{"Options.Model"}},
		"unknown model": {"{kind: role, name: a, model: b}", rolecall.Options{Model: model}, []string{"org.yaml:1:"}},
	} {
		t.Run(name, func(t *testing.T) {
			dir, path := write(t, c.text)
			c.o.Data, c.o.Files = filepath.Join(dir, "data"), configured.Files(path)
			_, err := rolecall.Open(t.Context(), c.o)
			if errcode.CodeOf(err) != errcode.InvalidConfig {
				t.Fatalf("got the error %v", err)
			}
			for _, part := range c.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("the error lacks %q: %v", part, err)
				}
			}
			if _, err := os.Stat(c.o.Data); !os.IsNotExist(err) {
				t.Errorf("a data directory was left behind: %v", err)
			}
		})
	}
	for name, o := range map[string]rolecall.Options{
		"no data": {Model: model, Files: configured.Files("x.yaml")},
		"no file": {Model: model, Files: configured.Files(filepath.Join(t.TempDir(), "x.yaml")), Data: t.TempDir()},
	} {
		if _, err := rolecall.Open(t.Context(), o); errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("%s: got the error %v", name, err)
		}
	}
}
