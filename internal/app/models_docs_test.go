package app

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model/catalog"
	"github.com/rolecall/rolecall/model/providertest"
)

// docModels returns the models in the YAML blocks of a section of docs/models.md.
func docModels(t *testing.T, section string) (models []config.Model) {
	t.Helper()
	text, err := os.ReadFile("../../docs/models.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "\n## "+section+"\n")
	if !found {
		t.Fatalf("docs/models.md has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var documents []string
	for i, part := range strings.Split(rest, "```") {
		if block, ok := strings.CutPrefix(part, "yaml\n"); ok && i%2 == 1 {
			documents = append(documents, block)
		}
	}
	env := func(name string) (string, bool) { return "value-of-" + name, true }
	cfg, err := config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(strings.Join(documents, "---\n"))}}, env)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range cfg.Models {
		if d.Type != config.ModelFirstAvailable {
			models = append(models, d)
		}
	}
	return models
}

// sentRequest returns the address, the headers and the fields of a model's request that
// offers a tool. The conversation and the tools are left out.
func sentRequest(t *testing.T, d config.Model) (address string, header http.Header, fields map[string]any) {
	t.Helper()
	p, ok := catalog.FindProvider(d.Type)
	if !ok {
		t.Fatalf("%s is of type %s", d.Name, d.Type)
	}
	if d.KeyCommand != nil {
		d.Key = printedKey(d.KeyCommand.Args)
	}
	c := d.ProviderConfig()
	answer := providertest.Client(func(url, body string) string {
		address = url
		if err := json.Unmarshal([]byte(body), &fields); err != nil {
			t.Fatal(err)
		}
		return `{}`
	})
	c.Client = &http.Client{Transport: headerRecorder{answer.Transport, &header}}
	r := providertest.HelloRequest()
	r.ToolJSON = providertest.ToolsJSON(t, "read_file")
	providertest.Collect(t, p.New(c), r)
	for _, name := range []string{"messages", "contents", "input", "tools", "toolConfig", "stream_options"} {
		delete(fields, name)
	}
	return address, header, fields
}

// printedKey returns the key that a command prints. That of az is in the form of a JWT.
func printedKey(args []string) yamldoc.Secret {
	if args[0] == "az" {
		return "eyJ0.az account.tsv"
	}
	return yamldoc.Secret("printed by " + strings.Join(args, " "))
}

// headerRecorder records the headers of the last request.
type headerRecorder struct {
	http.RoundTripper
	header *http.Header
}

// RoundTrip implements http.RoundTripper.
func (h headerRecorder) RoundTrip(r *http.Request) (*http.Response, error) {
	*h.header = r.Header
	return h.RoundTripper.RoundTrip(r)
}

// Each model of the documents sends the request that its provider's API describes.
func TestDocument_RequestsOfModels(t *testing.T) {
	for section, want := range map[string][]struct{ address, header, fields string }{
		"Options of requests": {
			{"https://api.anthropic.com/v1/messages", "X-Api-Key: value-of-ANTHROPIC_API_KEY, Anthropic-Beta: interleaved-thinking-2025-05-14, X-Tenant: value-of-TENANT",
				`{"model":"claude-sonnet-4-5","max_tokens":16384,"stream":true,"metadata":{"user_id":"mine"},"thinking":{"type":"enabled","budget_tokens":8192},"tool_choice":{"type":"auto","disable_parallel_tool_use":true}}`},
			{"http://127.0.0.1:8000/v1/chat/completions", "",
				`{"model":"qwen3","stream":true,"chat_template_kwargs":{"enable_thinking":false}}`},
		},
		"The first model with a key": {
			{"https://api.anthropic.com/v1/messages", "", `{"model":"claude-sonnet-4-5","max_tokens":8192,"stream":true}`},
			{"https://api.openai.com/v1/chat/completions", "", `{"model":"gpt-5-mini","stream":true}`},
			{"http://127.0.0.1:11434/v1/chat/completions", "", `{"model":"qwen3","stream":true}`},
		},
		"Ollama": {
			{"http://127.0.0.1:11434/v1/chat/completions", "", `{"model":"qwen3","stream":true}`},
		},
		"vLLM and LM Studio": {
			{"http://127.0.0.1:8000/v1/chat/completions", "Authorization: ", `{"model":"Qwen/Qwen3-8B","stream":true}`},
			{"http://127.0.0.1:1234/v1/chat/completions", "Authorization: ", `{"model":"qwen3-8b","stream":true}`},
		},
		"Azure OpenAI": {
			{"https://mine.openai.azure.com/openai/v1/chat/completions", "Authorization: Bearer value-of-AZURE_OPENAI_API_KEY, Api-Key: ",
				`{"model":"my-gpt-5","stream":true}`},
			{"https://mine.openai.azure.com/openai/deployments/my-gpt-4o/chat/completions?api-version=2024-10-21", "Api-Key: value-of-AZURE_OPENAI_API_KEY, Authorization: ",
				`{"model":"my-gpt-4o","stream":true}`},
			{"https://mine.openai.azure.com/openai/deployments/my-gpt-4o/chat/completions?api-version=2024-10-21", "Authorization: Bearer eyJ0.az account.tsv, Api-Key: ",
				`{"model":"my-gpt-4o","stream":true}`},
		},
		"OpenAI's Responses API": {
			{"https://api.openai.com/v1/responses", "Authorization: Bearer value-of-OPENAI_API_KEY",
				`{"model":"gpt-5-mini","stream":true,"store":false,"include":["reasoning.encrypted_content"]}`},
		},
		"Vertex AI": {
			{"https://aiplatform.googleapis.com/v1/projects/my-project/locations/global/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse",
				"Authorization: Bearer printed by gcloud auth print-access-token, X-Goog-Api-Key: ", `{"generationConfig":{}}`},
			{"https://europe-west1-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict",
				"Authorization: Bearer printed by gcloud auth print-access-token, X-Api-Key: , Anthropic-Version: ", `{"anthropic_version":"vertex-2023-10-16","max_tokens":8192,"stream":true}`},
		},
		"Amazon Bedrock": {
			{"https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.anthropic.claude-sonnet-4-5-20250929-v1%3A0/converse-stream",
				"Authorization: Bearer value-of-AWS_BEARER_TOKEN_BEDROCK", `{"inferenceConfig":{}}`},
			{"https://bedrock-runtime.eu-central-1.amazonaws.com/model/eu.amazon.nova-lite-v1%3A0/converse-stream",
				"X-Amz-Security-Token: value-of-AWS_SESSION_TOKEN", `{"inferenceConfig":{}}`},
		},
		"Keys from a command": {
			{"https://europe-west1-aiplatform.googleapis.com/v1/projects/mine/locations/europe-west1/endpoints/openapi/chat/completions",
				"Authorization: Bearer printed by gcloud auth print-access-token", `{"model":"google/gemini-2.5-flash","stream":true}`},
		},
	} {
		models := docModels(t, section)
		if len(models) != len(want) {
			t.Fatalf("%s: %d models, want %d", section, len(models), len(want))
		}
		for i, d := range models {
			address, header, fields := sentRequest(t, d)
			if address != want[i].address {
				t.Errorf("%s of %q: sent to %s, want %s", d.Name, section, address, want[i].address)
			}
			for pair := range strings.SplitSeq(want[i].header, ", ") {
				if name, value, _ := strings.Cut(pair, ": "); header.Get(name) != value {
					t.Errorf("%s of %q: header %s is %q, want %q", d.Name, section, name, header.Get(name), value)
				}
			}
			got, _ := json.Marshal(fields)
			providertest.EqualJSON(t, string(got), want[i].fields)
		}
	}
}

// The documents have the date of the known prices.
func TestDocument_DateOfPrices(t *testing.T) {
	date, err := time.Parse(time.DateOnly, catalog.FactsDate)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../../docs/models.md")
	if err != nil || !strings.Contains(string(text), "as of "+date.Format("2 January 2006")) {
		t.Errorf("docs/models.md lacks %s: %v", date, err)
	}
}
