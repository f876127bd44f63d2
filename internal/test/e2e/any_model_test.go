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
	question   = "What was ordered, by orders.txt?"
	wantAnswer = "5 orders, 12 pieces: lamp 7, chair 4, table 1\nThe figures were printed and not kept (tool_not_available)."
	apiKey     = "sk-canary-7f3a9c51d2"
)

// wantDecisions are the gate's decisions with every model.
const wantDecisions = `root find_role_by_name allowed 
root find_role_by_name allowed 
root spawn_agent_with_task allowed 
analyst read_file allowed 
root spawn_agent_with_task allowed 
reporter console_print allowed 
reporter write_file denied tool_not_available
`

// vendor is a provider whose protocol the mock speaks.
type vendor struct {
	name   string
	model  string // its name in organization.yaml
	env    func(m mock) []string
	header string // header that carries the key; "" without a key
	path   func(streamed bool) string
	change string // of a line of organization.yaml, as OLD -> NEW; "" for none
}

// edits returns the changes of organization.yaml for the vendor.
func (p vendor) edits() map[string]string {
	edits := map[string]string{"model: script": "model: " + p.model}
	if from, to, ok := strings.Cut(p.change, " -> "); ok {
		edits[from] = to
	}
	return edits
}

func providers() []vendor {
	at := func(path string) func(bool) string { return func(bool) string { return path } }
	openAI := func(m mock) []string { return []string{"OPENAI_API_KEY=" + apiKey, "OPENAI_BASE_URL=" + m.openAI()} }
	return []vendor{
		{"openai", "openai", openAI, "authorization", at("/v1/chat/completions"), ""},
		{"openai-responses", "openai", openAI, "authorization", at("/v1/responses"), "type: openai -> type: openai-responses"},
		{"anthropic", "anthropic", func(m mock) []string {
			return []string{"ANTHROPIC_API_KEY=" + apiKey, "ANTHROPIC_BASE_URL=" + m.anthropic()}
		}, "x-api-key", at("/v1/messages"), ""},
		{"gemini", "gemini", func(m mock) []string { return []string{"GEMINI_API_KEY=" + apiKey, "GEMINI_BASE_URL=" + m.gemini()} }, "x-goog-api-key", geminiPath("/v1beta"), ""},
		{"gemini on Vertex AI", "gemini", func(m mock) []string {
			return []string{"GEMINI_API_KEY=" + apiKey, "GEMINI_BASE_URL=" + m.gemini() + vertexPath}
		}, "authorization", geminiPath(vertexPath), ""},
		{"bedrock", "openai", func(m mock) []string { return []string{"OPENAI_API_KEY=" + apiKey, "OPENAI_BASE_URL=" + m.url} }, "authorization", bedrockPath, "type: openai -> type: bedrock"},
		{"local", "local", func(m mock) []string { return []string{"LOCAL_BASE_URL=" + m.openAI()} }, "", at("/v1/chat/completions"), ""},
	}
}

// bedrockPath returns the path of requests to Bedrock.
func bedrockPath(streamed bool) string {
	if streamed {
		return "/model/gpt-5-mini/converse-stream"
	}
	return "/model/gpt-5-mini/converse"
}

// vertexPath is where Vertex AI has Google's models.
const vertexPath = "/v1/projects/mine/locations/global/publishers/google"

// geminiPath returns the path of requests below base.
func geminiPath(base string) func(streamed bool) string {
	return func(streamed bool) string {
		if streamed {
			return base + "/models/gemini-2.5-flash:streamGenerateContent"
		}
		return base + "/models/gemini-2.5-flash:generateContent"
	}
}

// One line of YAML selects the model. What the organization does and may do stays the
// same.
func TestOrganization_RunsOnEveryModel(t *testing.T) {
	t.Run("on a script", func(t *testing.T) {
		fx := newFixture(t, "any-model", []string{"orders.txt"}, nil)
		fx.checkAnswer(t, nil)
	})
	for _, p := range providers() {
		for _, streamed := range []bool{true, false} {
			t.Run(fmt.Sprintf("on %s, streamed %v", p.name, streamed), func(t *testing.T) {
				testProvider(t, p, streamed)
			})
		}
	}
}

// testProvider runs the example on a provider and checks the requests to it.
func testProvider(t *testing.T, p vendor, streamed bool) {
	m := startMock(t, "any-model", requireKey(p))
	edits := p.edits()
	edits["stream: true"] = fmt.Sprintf("stream: %v", streamed)
	fx := newFixture(t, "any-model", []string{"orders.txt"}, edits)
	fx.checkAnswer(t, p.env(m))
	requests := m.requests(t)
	if len(requests) < 16 { // at least four by root and two by each other agent, in two runs
		t.Errorf("the mock received %d requests", len(requests))
	}
	for _, r := range requests {
		r.check(t, p, streamed)
	}
	fx.checkNoSecret(t, apiKey)
}

// Overload, limits, errors, interrupted streams and invalid answers only cost time.
// Answers, calls and their numbers stay the same.
func TestOrganization_SurvivesProviderFaults(t *testing.T) {
	for _, p := range providers() {
		t.Run("on "+p.name, func(t *testing.T) {
			t.Parallel() // the test mostly waits
			m := startMock(t, "faults", requireKey(p))
			fx := newFixture(t, "any-model", []string{"orders.txt"}, p.edits())
			fx.checkAnswer(t, p.env(m))
			faults := 0
			for _, r := range m.requests(t) {
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

// A missing or wrong key is reported at once, with what to do.
func TestRun_ReportsMissingOrWrongKey(t *testing.T) {
	for _, p := range providers() {
		if p.header == "" {
			continue
		}
		edits := p.edits()
		t.Run("missing, of "+p.name, func(t *testing.T) {
			m := startMock(t, "any-model", requireKey(p))
			fx := newFixture(t, "any-model", []string{"orders.txt"}, edits)
			env := p.env(m)
			variable, _, _ := strings.Cut(env[0], "=")
			if o := fx.run(t, env[1:], question); o.status != 2 || o.stdout != "" || !strings.Contains(o.stderr, variable) {
				t.Errorf("status %d, stdout %q, want 2 and %s in:\n%s", o.status, o.stdout, variable, o.stderr)
			}
			if asked := m.requests(t); len(asked) > 0 {
				t.Errorf("the mock received a request without a key: %s", asked[0].raw)
			}
		})
		t.Run("wrong, of "+p.name, func(t *testing.T) {
			m := startMock(t, "any-model", map[string]any{"auth": map[string]any{"apiKeys": []string{"sk-another"}}})
			fx := newFixture(t, "any-model", []string{"orders.txt"}, edits)
			o := fx.run(t, p.env(m), question)
			if o.status != 1 || o.stdout != "" || !strings.Contains(o.stderr, "does not accept its key") {
				t.Errorf("status %d, stdout %q; stderr:\n%s", o.status, o.stdout, o.stderr)
			}
			if strings.Contains(o.stderr, apiKey) {
				t.Errorf("the key is printed:\n%s", o.stderr)
			}
			fx.checkNoSecret(t, apiKey)
		})
	}
}

// requireKey makes the mock reject requests without the key, if the provider uses one.
func requireKey(p vendor) map[string]any {
	if p.header == "" {
		return nil
	}
	return map[string]any{"auth": map[string]any{"apiKeys": []string{apiKey}}}
}

// checkAnswer runs the task and compares answer, decisions and effects.
func (fx fixture) checkAnswer(t *testing.T, env []string) {
	t.Helper()
	o := fx.run(t, env, "--json", question)
	if o.status != 0 {
		t.Fatalf("status %d; stderr:\n%s", o.status, o.stderr)
	}
	events := o.events(t)
	if status, text := finalResult(t, events); status != "done" || text != wantAnswer {
		t.Errorf("%s: %q, want done: %q", status, text, wantAnswer)
	}
	if diff := cmp.Diff(wantDecisions, decisions(events)); diff != "" {
		t.Errorf("decisions (- want, + got):\n%s", diff)
	}
	if plain := fx.run(t, env, question); plain.stdout != wantAnswer+"\n" {
		t.Errorf("stdout %q, want %q", plain.stdout, wantAnswer+"\n")
	}
	if files := listFiles(t, fx.path("work")); files != "orders.txt" {
		t.Errorf("the workspace contains %s", files)
	}
	for _, s := range []string{o.stdout, o.stderr} {
		if strings.Contains(s, apiKey) {
			t.Errorf("the key is in the output:\n%s", s)
		}
	}
}

// check reports what is wrong with a request.
func (r request) check(t *testing.T, p vendor, streamed bool) {
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
		t.Errorf("%s has no system prompt, or no other message: %v", path, r.Body.Messages)
	}
	r.checkTools(t, p)
	if strings.Contains(r.raw, apiKey) {
		t.Errorf("%s contains the key outside its header:\n%s", path, r.raw)
	}
}

// toolNamePattern matches the tool names that every provider accepts.
var toolNamePattern = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

// checkTools checks the tools of a request. The mock's journal omits Gemini's
// parametersJsonSchema.
func (r request) checkTools(t *testing.T, p vendor) {
	t.Helper()
	if len(r.Body.Tools) == 0 {
		t.Errorf("%s has no tools", r.Path)
	}
	for _, tool := range r.Body.Tools {
		f := tool.Function
		if !toolNamePattern.MatchString(f.Name) || p.model != "gemini" && f.Parameters.Type != "object" {
			t.Errorf("%s has a tool %q with parameters of type %q", r.Path, f.Name, f.Parameters.Type)
		}
	}
}

// checkNoSecret searches everything a run wrote for a secret.
func (fx fixture) checkNoSecret(t *testing.T, secret string) {
	t.Helper()
	err := filepath.WalkDir(fx.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(path)
		if strings.Contains(string(data), secret) {
			t.Errorf("%s contains the key", path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// listFiles returns the names of the files in a directory.
func listFiles(t *testing.T, dir string) string {
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
