package e2e_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	question = "What was ordered, by orders.txt?"
	answer   = "5 orders, 12 pieces: lamp 7, chair 4, table 1\nThe figures were printed and not kept (tool_not_available)."
	key      = "sk-canary-7f3a9c51d2"
)

// What the gate says of the calls, whoever thinks.
const decided = `root find_role_by_name allowed 
root find_role_by_name allowed 
root spawn_agent_with_task allowed 
analyst read_file allowed 
root spawn_agent_with_task allowed 
reporter console_print allowed 
reporter write_file denied tool_not_available
`

// vendor is one way to reach the mock.
type vendor struct {
	name   string // of the model in organization.yaml
	env    func(m mock) []string
	header string // that carries the key; "" when there is none
	path   func(streamed bool) string
}

func providers() []vendor {
	chat := func(bool) string { return "/v1/chat/completions" }
	return []vendor{
		{"openai", func(m mock) []string { return []string{"OPENAI_API_KEY=" + key, "OPENAI_BASE_URL=" + m.openAI()} }, "authorization", chat},
		{"anthropic", func(m mock) []string {
			return []string{"ANTHROPIC_API_KEY=" + key, "ANTHROPIC_BASE_URL=" + m.anthropic()}
		}, "x-api-key", func(bool) string { return "/v1/messages" }},
		{"gemini", func(m mock) []string { return []string{"GEMINI_API_KEY=" + key, "GEMINI_BASE_URL=" + m.gemini()} }, "x-goog-api-key", geminiPath},
		{"local", func(m mock) []string { return []string{"LOCAL_BASE_URL=" + m.openAI()} }, "", chat},
	}
}

func geminiPath(streamed bool) string {
	const model = "/v1beta/models/gemini-2.5-flash"
	if streamed {
		return model + ":streamGenerateContent"
	}
	return model + ":generateContent"
}

// One line of YAML decides who thinks; what the organization does, and what it
// is let do, stays the same.
func TestOneOrganizationRunsOnEveryModel(t *testing.T) {
	t.Run("on a script", func(t *testing.T) {
		h := newHouse(t, "any-model", []string{"orders.txt"}, nil)
		h.mustAnswer(t, nil)
	})
	for _, p := range providers() {
		for _, streamed := range []bool{true, false} {
			t.Run(fmt.Sprintf("on %s, streamed %v", p.name, streamed), func(t *testing.T) {
				runsOn(t, p, streamed)
			})
		}
	}
}

func runsOn(t *testing.T, p vendor, streamed bool) {
	m := startMock(t, "any-model", keyed(p))
	h := newHouse(t, "any-model", []string{"orders.txt"}, map[string]string{
		"model: script": "model: " + p.name,
		"stream: true":  fmt.Sprintf("stream: %v", streamed),
	})
	h.mustAnswer(t, p.env(m))
	requests := m.journal(t)
	if len(requests) < 16 { // root four times at least, the others twice, and two runs
		t.Errorf("the mock was asked %d times", len(requests))
	}
	for _, r := range requests {
		r.mustBeWhole(t, p, streamed)
	}
	h.mustNotHold(t, key)
}

// Overload, limits, errors, streams that break off and nonsense cost time. What
// is answered and done, and how often, stays the same.
func TestFaultsChangeNothing(t *testing.T) {
	for _, p := range providers() {
		t.Run("on "+p.name, func(t *testing.T) {
			t.Parallel() // most of it is waiting
			m := startMock(t, "faults", keyed(p))
			h := newHouse(t, "any-model", []string{"orders.txt"}, map[string]string{"model: script": "model: " + p.name})
			h.mustAnswer(t, p.env(m))
			faults := 0
			for _, r := range m.journal(t) {
				if r.Response.Status != 200 || r.Response.ChaosAction != "" || r.Response.Interrupted {
					faults++
				}
			}
			if faults != 6 {
				t.Errorf("%d faults, want 6", faults)
			}
		})
	}
}

// Who has no key, or a wrong one, is told so at once, and what to do.
func TestAKeyThatIsMissingOrWrong(t *testing.T) {
	for _, p := range providers() {
		if p.header == "" {
			continue
		}
		edits := map[string]string{"model: script": "model: " + p.name}
		t.Run("missing, of "+p.name, func(t *testing.T) {
			m := startMock(t, "any-model", keyed(p))
			h := newHouse(t, "any-model", []string{"orders.txt"}, edits)
			env := p.env(m)
			variable, _, _ := strings.Cut(env[0], "=")
			if o := h.run(t, env[1:], question); o.status != 2 || o.stdout != "" || !strings.Contains(o.stderr, variable) {
				t.Errorf("status %d, stdout %q, want 2 and %s in:\n%s", o.status, o.stdout, variable, o.stderr)
			}
			if asked := m.journal(t); len(asked) > 0 {
				t.Errorf("the mock was asked without a key: %s", asked[0].raw)
			}
		})
		t.Run("wrong, of "+p.name, func(t *testing.T) {
			m := startMock(t, "any-model", map[string]any{"auth": map[string]any{"apiKeys": []string{"sk-another"}}})
			h := newHouse(t, "any-model", []string{"orders.txt"}, edits)
			o := h.run(t, p.env(m), question)
			if o.status != 1 || o.stdout != "" || !strings.Contains(o.stderr, "does not accept its key") {
				t.Errorf("status %d, stdout %q; stderr:\n%s", o.status, o.stdout, o.stderr)
			}
			if strings.Contains(o.stderr, key) {
				t.Errorf("the key is told:\n%s", o.stderr)
			}
			h.mustNotHold(t, key)
		})
	}
}

// keyed lets the mock refuse whoever has no key, if the provider does.
func keyed(p vendor) map[string]any {
	if p.header == "" {
		return nil
	}
	return map[string]any{"auth": map[string]any{"apiKeys": []string{key}}}
}

// mustAnswer runs the task and compares answer, decisions and effects.
func (h house) mustAnswer(t *testing.T, env []string) {
	t.Helper()
	o := h.run(t, env, "--json", question)
	if o.status != 0 {
		t.Fatalf("status %d; stderr:\n%s", o.status, o.stderr)
	}
	events := o.events(t)
	if status, text := result(t, events); status != "done" || text != answer {
		t.Errorf("%s: %q, want done: %q", status, text, answer)
	}
	if diff := cmp.Diff(decided, decisions(events)); diff != "" {
		t.Errorf("decisions (- want, + got):\n%s", diff)
	}
	if plain := h.run(t, env, question); plain.stdout != answer+"\n" {
		t.Errorf("stdout %q, want %q", plain.stdout, answer+"\n")
	}
	if files := list(t, h.path("work")); files != "orders.txt" {
		t.Errorf("the workspace holds %s", files)
	}
	for _, s := range []string{o.stdout, o.stderr} {
		if strings.Contains(s, key) {
			t.Errorf("the key is in the output:\n%s", s)
		}
	}
}

// mustBeWhole says what a request lacks.
func (r request) mustBeWhole(t *testing.T, p vendor, streamed bool) {
	t.Helper()
	path, _, _ := strings.Cut(r.Path, "?")
	if r.Method != "POST" || path != p.path(streamed) || r.Response.Status != 200 {
		t.Errorf("%s %s was answered %d, want POST %s and 200", r.Method, r.Path, r.Response.Status, p.path(streamed))
	}
	if p.header != "" && r.Headers[p.header] == "" {
		t.Errorf("%s has no header %s", path, p.header)
	}
	if p.name == "anthropic" && r.Headers["anthropic-version"] == "" {
		t.Errorf("%s has no header anthropic-version", path)
	}
	if r.Body.Stream != streamed || r.Body.Model == "" {
		t.Errorf("%s has model %q and stream %v, want a model and %v", path, r.Body.Model, r.Body.Stream, streamed)
	}
	if len(r.Body.Messages) < 2 || r.Body.Messages[0].Role != "system" {
		t.Errorf("%s has no system prompt, or nothing else: %v", path, r.Body.Messages)
	}
	r.mustHaveTools(t, p)
	if strings.Contains(r.raw, key) {
		t.Errorf("%s holds the key outside its header:\n%s", path, r.raw)
	}
}

// legal are the names that every provider takes.
var legal = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// mustHaveTools looks at the tools. Of Gemini's, the journal leaves out
// parametersJsonSchema.
func (r request) mustHaveTools(t *testing.T, p vendor) {
	t.Helper()
	if len(r.Body.Tools) == 0 {
		t.Errorf("%s has no tools", r.Path)
	}
	for _, tool := range r.Body.Tools {
		f := tool.Function
		if !legal.MatchString(f.Name) || p.name != "gemini" && f.Parameters.Type != "object" {
			t.Errorf("%s has a tool %q with parameters of type %q", r.Path, f.Name, f.Parameters.Type)
		}
	}
}

// mustNotHold looks for a secret in everything a run wrote.
func (h house) mustNotHold(t *testing.T, secret string) {
	t.Helper()
	err := filepath.WalkDir(h.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) {
			t.Errorf("%s holds the key", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// list names the files of a directory.
func list(t *testing.T, dir string) string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return strings.Join(names, " ")
}
