package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tiktoken-go/tokenizer"
	"google.golang.org/adk/agent"
	"google.golang.org/adk/agent/llmagent"
	"google.golang.org/adk/model"
	"google.golang.org/adk/runner"
	"google.golang.org/adk/session"
	"google.golang.org/adk/tool"
	"google.golang.org/adk/tool/agenttool"
	"google.golang.org/adk/tool/functiontool"
	"google.golang.org/genai"
)

// A task of the shape of rolecall demo on adk-go: a first agent hires an analyst and a clerk
// at once, then a writer, and answers. An agent is hired as a tool. The texts are those of
// TestCost_OfDemo in internal/test/prompts, and the log is the same, so that the rows compare.
func TestCost_OfADK(t *testing.T) {
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		t.Fatal(err)
	}
	d := &desk{codec: codec}
	if result := d.run(t); !strings.Contains(result, "report.md") {
		t.Fatalf("the result is %q", result)
	}
	if d.requests != 11 {
		t.Errorf("%d requests, want 11", d.requests)
	}
	t.Logf("\n| adk-go | %d | %d | %d %% | %d |", d.requests, d.in, 100*d.cached/d.in, d.out)
}

// desk is the model of all agents, and counts what they cost.
type desk struct {
	codec tokenizer.Codec

	mu                        sync.Mutex // guards the rest
	requests, in, cached, out int
	earlier                   [][]uint // the requests so far, in tokens
}

// run runs the task and returns its answer.
func (d *desk) run(t *testing.T) string {
	ctx := t.Context()
	sessions := session.InMemoryService()
	r, err := runner.New(runner.Config{AppName: app, Agent: d.team(t), SessionService: sessions})
	if err != nil {
		t.Fatal(err)
	}
	made, err := sessions.Create(ctx, &session.CreateRequest{AppName: app, UserID: "user"})
	if err != nil {
		t.Fatal(err)
	}
	said := ""
	for e, err := range r.Run(ctx, "user", made.Session.ID(), genai.NewContentFromText("Find out what went wrong in access.log.", genai.RoleUser), agent.RunConfig{}) {
		if err != nil {
			t.Fatal(err)
		}
		if e.IsFinalResponse() {
			said = e.Content.Parts[0].Text
		}
	}
	return said
}

type (
	pathInput struct {
		Path string `json:"path"`
	}
	textInput struct {
		Text string `json:"text"`
	}
	fileInput     struct{ Path, Content string }
	artifactInput struct{ Type, Content string }
	report        struct {
		Text string `json:"text"`
	}
)

// team returns the first agent, with the others as its tools.
func (d *desk) team(t *testing.T) agent.Agent {
	line := `203.0.113.7 - - [17/Mar/2026:14:03:11 +0000] "GET /cart HTTP/1.1" 503 512 "-" "curl/8"` + "\n"
	list := newTool(t, "list_files", "List the files in a directory.", func(_ tool.Context, _ pathInput) (report, error) { return report{"access.log"}, nil })
	read := newTool(t, "read_file", "Read a text file.", func(_ tool.Context, _ pathInput) (report, error) { return report{strings.Repeat(line, 40)}, nil })
	show := newTool(t, "console_print", "Print a text for the user.", func(_ tool.Context, _ textInput) (report, error) { return report{"printed"}, nil })
	write := newTool(t, "write_file", "Write a text file.", func(_ tool.Context, _ fileInput) (report, error) { return report{"written"}, nil })
	put := newTool(t, "put_artifact", "Keep a result of the task.", func(_ tool.Context, _ artifactInput) (report, error) { return report{"kept"}, nil })

	return d.agent(t, "root", "You lead an incident desk.", "You lead an incident desk. Give the work to your agents, and answer with what they found.",
		agenttool.New(d.agent(t, "analyst", "Reads access logs.", "You read access logs. Count, never estimate. Say how many lines you could not read.", list, read), nil),
		agenttool.New(d.agent(t, "clerk", "Keeps the console.", "You keep the desk's console. Report what you could not do, with the reason you were given.", show), nil),
		agenttool.New(d.agent(t, "writer", "Writes incident reports.", "You write incident reports for people who were not there. What happened comes first, then the figures.", put, write), nil))
}

func (d *desk) agent(t *testing.T, name, description, instruction string, tools ...tool.Tool) agent.Agent {
	a, err := llmagent.New(llmagent.Config{Name: name, Description: description, Model: d, Instruction: instruction, Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func newTool[In, Out any](t *testing.T, name, description string, f functiontool.Func[In, Out]) tool.Tool {
	made, err := functiontool.New(functiontool.Config{Name: name, Description: description}, f)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

// Name implements model.LLM.
func (*desk) Name() string { return "desk" }

// GenerateContent implements model.LLM.
func (d *desk) GenerateContent(_ context.Context, r *model.LLMRequest, _ bool) iter.Seq2[*model.LLMResponse, error] {
	return func(yield func(*model.LLMResponse, error) bool) {
		parts := answerOf(r)
		d.count(r, parts)
		yield(&model.LLMResponse{Content: genai.NewContentFromParts(parts, genai.RoleModel)}, nil)
	}
}

// answerOf returns what the agent of a request does next.
func answerOf(r *model.LLMRequest) []*genai.Part {
	turns := 0 // answers so far
	for _, c := range r.Contents {
		if c.Role == genai.RoleModel {
			turns++
		}
	}
	name := ""
	for _, role := range []string{"lead an incident desk", "read access logs", "keep the desk's console", "write incident reports"} {
		if strings.Contains(r.Config.SystemInstruction.Parts[0].Text, role) {
			name = role
		}
	}
	report := "# Incident report: access.log\n\n40 of 40 requests failed with a server error, all at 14:03 on 2026-03-17.\n\n## Figures\n\n| path | errors |\n|---|---|\n| /cart | 40 |\n"
	steps := map[string][][]*genai.Part{
		"lead an incident desk": {
			{hire("analyst", "Count what access.log says.", "access.log"), hire("clerk", "Open the case of access.log and check its size.", "access.log")},
			{hire("writer", "Write the report on access.log.", "40 lines, all with status 503, all of /cart. run_command was refused to the clerk.")},
			{genai.NewPartFromText("All 40 requests in access.log failed with status 503. The report is in report.md. The clerk may not run programs.")},
		},
		"read access logs": {
			{genai.NewPartFromFunctionCall("list_files", map[string]any{"path": "."})},
			{genai.NewPartFromFunctionCall("read_file", map[string]any{"path": "access.log"})},
			{genai.NewPartFromText("40 lines, 40 read, 40 with status 503, all of /cart, from 2026-03-17 14:03 to 14:03.")},
		},
		"keep the desk's console": {
			{genai.NewPartFromFunctionCall("console_print", map[string]any{"text": "incident desk: access.log"})},
			{genai.NewPartFromFunctionCall("run_command", map[string]any{"command": "wc -c access.log"})},
			{genai.NewPartFromText("The case is open. The size of access.log was not checked: run_command is not a tool of mine.")},
		},
		"write incident reports": {
			{genai.NewPartFromFunctionCall("put_artifact", map[string]any{"Type": "report", "Content": report}), genai.NewPartFromFunctionCall("write_file", map[string]any{"Path": "report.md", "Content": report})},
			{genai.NewPartFromText("The report is in report.md, and is kept as an artifact.")},
		},
	}
	return steps[name][turns]
}

// hire returns a call of an agent, with the brief that rolecall's root writes.
func hire(role, objective, inputs string) *genai.Part {
	brief, _ := json.Marshal(map[string]any{ // texts always marshal
		"objective": objective, "constraints": []string{"A refusal is reported, not worked around."}, "inputs": inputs,
		"outputs": "The findings in a few lines.", "completion_criteria": "All of it was done or refused.",
	})
	return genai.NewPartFromFunctionCall(role, map[string]any{"request": string(brief)})
}

// count adds a request and its answer to the cost, as TestCost_OfDemo counts: cached is the
// longest beginning of an earlier request, from 1,024 tokens on.
func (d *desk) count(r *model.LLMRequest, answer []*genai.Part) {
	request := d.tokens(toolsText(r.Config.Tools))
	request = append(request, d.tokens("system\n"+partsText(r.Config.SystemInstruction.Parts))...)
	for _, c := range r.Contents {
		request = append(request, d.tokens(c.Role+"\n"+partsText(c.Parts))...)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	cached := 0
	for _, e := range d.earlier {
		n := 0
		for n < min(len(e), len(request)) && e[n] == request[n] {
			n++
		}
		cached = max(cached, n)
	}
	if cached >= 1024 {
		d.cached += cached
	}
	d.earlier = append(d.earlier, request)
	d.requests++
	d.in += len(request)
	d.out += len(d.tokens(partsText(answer)))
}

func (d *desk) tokens(text string) []uint {
	ids, _, err := d.codec.Encode(text)
	if err != nil {
		panic(err) // only without a vocabulary
	}
	return ids
}

// toolsText returns declarations in the shape of OpenAI's protocol, sorted by name.
func toolsText(tools []*genai.Tool) string {
	var all []*genai.FunctionDeclaration
	for _, t := range tools {
		all = append(all, t.FunctionDeclarations...)
	}
	slices.SortFunc(all, func(a, b *genai.FunctionDeclaration) int { return strings.Compare(a.Name, b.Name) })
	var list []any
	for _, f := range all {
		var parameters any = f.Parameters
		if f.Parameters == nil {
			parameters = f.ParametersJsonSchema
		}
		list = append(list, map[string]any{"type": "function", "function": map[string]any{"name": f.Name, "description": f.Description, "parameters": parameters}})
	}
	doc, _ := json.Marshal(list)
	return string(doc)
}

// partsText returns texts, calls and results as OpenAI's protocol writes them.
func partsText(parts []*genai.Part) string {
	var b strings.Builder
	for i, p := range parts {
		switch {
		case p.FunctionCall != nil:
			args, _ := json.Marshal(p.FunctionCall.Args)
			call, _ := json.Marshal(map[string]any{"id": fmt.Sprint("call_", i), "type": "function", "function": map[string]any{"name": p.FunctionCall.Name, "arguments": string(args)}})
			b.Write(call)
		case p.FunctionResponse != nil:
			result, _ := json.Marshal(p.FunctionResponse.Response)
			b.Write(result)
		default:
			b.WriteString(p.Text)
		}
	}
	return b.String()
}
