// Package prompts tests the texts that language models read: system prompts and tool lists,
// and how many tokens they have.
package prompts

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/tiktoken-go/tokenizer"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

var update = flag.Bool("update", false, "write the golden files")

// maxTokens are the lengths that no change may exceed, in tokens of o200k.
var maxTokens = map[string]int{"root": 1350, "worker": 400, "all": 2500}

var operator = identity.ByOperator("test")

// leadModel leads as root: it hires a counter and ends. It keeps the first request of each
// role.
type leadModel struct {
	mu       sync.Mutex
	requests map[string]model.Request
}

// Window implements model.LanguageModel.
func (m *leadModel) Window() int { return 128_000 }

// Generate implements model.Model.
func (m *leadModel) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	m.mu.Lock()
	_, asked := m.requests[r.Self.Role]
	if !asked {
		m.requests[r.Self.Role] = r
	}
	m.mu.Unlock()
	answer := &model.Answer{Text: "done", Finish: model.FinishEnd}
	if r.Self.Role == "root" && !asked {
		answer = &model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: "spawn_agent_with_task", Args: json.RawMessage(hire)}}}
	}
	return func(yield func(model.AnswerDelta, error) bool) { yield(model.AnswerDelta{Answer: answer}, nil) }
}

const hire = `{"roleId":"counter","initialMessage":"Add up the amounts of each region.",
	"taskBrief":{"objective":"Total revenue per region","constraints":[],"inputs":"sales.csv","outputs":"totals","completion_criteria":"all lines read"}}`

// firstRequests runs a task and returns the first request of root and of a worker.
func firstRequests(t *testing.T) map[string]model.Request {
	t.Helper()
	lead := &leadModel{requests: map[string]model.Request{}}
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{Store: memory.New(), Groups: groups, Workspaces: t.TempDir(), Model: func(string) (model.Model, error) { return lead, nil }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = rt.Close() })
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{}); err != nil {
		t.Fatal(err)
	}
	createRole(t, rt, "counter", "You read the file you are told to read and answer with the totals asked for.", toolgroups.Workspace)
	createRole(t, rt, "writer", "You write a report about the figures you are given.", toolgroups.Workspace, toolgroups.Artifact)
	createRole(t, rt, "all", "You do everything.", toolgroups.ReservedIDs()...)
	for _, role := range []string{"root", "all"} {
		runTask(t, rt, role)
	}
	return lead.requests
}

// runTask runs a task whose first agent has a role.
func runTask(t *testing.T, rt *runtime.Runtime, role string) {
	t.Helper()
	spec := org.TaskSpec{Text: "What was the revenue of each region? The sales are in sales.csv.", Role: role, Caller: operator}
	if role == "root" {
		spec.Role = ""
	}
	id, err := rt.StartTask(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rt.WaitTask(t.Context(), id); err != nil {
		t.Fatal(err)
	}
}

func createRole(t *testing.T, rt *runtime.Runtime, name, prompt string, groups ...toolgroups.GroupID) {
	t.Helper()
	use := toolgroups.SetOf(groups...)
	spec := org.RoleSpec{Name: name, Description: prompt, Prompt: prompt, Use: &use}
	if _, err := rt.CreateRole(t.Context(), tool.Call{ID: identity.CallID(name), By: operator}, spec); err != nil {
		t.Fatal(err)
	}
}

// The first requests of root and of a worker are what they were, and as short as promised.
func TestPrompts_StayShort(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	requests := firstRequests(t)
	for name, role := range map[string]string{"root": "root", "worker": "counter", "all": "all"} {
		t.Run(name, func(t *testing.T) {
			r := requests[role]
			prompt, opening := sameIDs(r.System), sameIDs(r.Opening)
			system, tools, first := count(t, codec, prompt), count(t, codec, string(r.ToolJSON)), count(t, codec, opening)
			var list bytes.Buffer
			if err := json.Indent(&list, r.ToolJSON, "", "  "); err != nil {
				t.Fatal(err)
			}
			checkGolden(t, name+".txt", fmt.Sprintf("%d tokens: %d of the system prompt, %d of the tools, %d of the opening\n\n%s\n%s\n\n%s\n", system+tools+first, system, tools, first, prompt, &list, opening))
			if system+tools+first > maxTokens[name] {
				t.Errorf("%d tokens, want at most %d", system+tools+first, maxTokens[name])
			}
		})
	}
}

func count(t *testing.T, codec tokenizer.Codec, text string) int {
	t.Helper()
	n, err := codec.Count(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

var uuid = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f-]{27}`)

// sameIDs replaces all ids by one, because the length of an id in tokens varies.
func sameIDs(text string) string {
	return uuid.ReplaceAllString(text, "01a20941-094e-7423-84ab-e3a22b75c8fa")
}

// checkGolden compares a text with a file of testdata, or writes the file.
func checkGolden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(want)) != strings.TrimSpace(got) {
		t.Errorf("%s has changed; run go test -update if that is intended. It is now:\n%s", path, got)
	}
}
