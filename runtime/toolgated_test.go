package runtime_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// server is a module that brings APIs; it counts how often each ran.
type server struct {
	name string
	apis []string
	runs map[string]*atomic.Int64 // by server/api
	act  func()                   // what an API does, if set
}

// Name implements modules.Module.
func (s *server) Name() string { return s.name }

// Groups implements modules.Module.
func (s *server) Groups() []toolgroups.Group {
	var list []tool.Tool
	for _, api := range s.apis {
		runs := s.runs[s.name+"/"+api]
		t, err := tool.New(api, "For tests.", func(context.Context, obj) (string, error) {
			if runs.Add(1); s.act != nil {
				s.act()
			}
			return "42 from " + s.name + "/" + api, nil
		}, nil)
		if err != nil {
			panic(err)
		}
		list = append(list, t)
	}
	groups, err := modules.Server(s.name, "The APIs of "+s.name+".", list)
	if err != nil {
		panic(err)
	}
	return groups
}

// language is a language model that is a brain, and keeps what it was asked.
type language struct {
	brain
	mu       sync.Mutex
	requests []model.Request // guarded by mu
}

// Window implements model.LanguageModel.
func (l *language) Window() int { return 100_000 }

// Generate implements model.Model.
func (l *language) Generate(ctx context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	l.mu.Lock()
	l.requests = append(l.requests, r)
	l.mu.Unlock()
	return l.brain.Generate(ctx, r)
}

func (l *language) asked() []model.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// lines is a log handler that keeps level and message of what is logged; not
// of the request log, which all agents have.
type lines struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "agent request" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, r.Level.String()+" "+r.Message)
	return nil
}

func (l *lines) read() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// bazaar is a house with the servers magpie and uniswap.
type bazaar struct {
	*house
	loader  *modules.Loader
	model   *language
	log     *lines
	runs    map[string]*atomic.Int64
	servers map[string]*server
}

func openBazaar(t *testing.T, b brain) *bazaar {
	t.Helper()
	z := &bazaar{model: &language{brain: b}, log: &lines{}, runs: map[string]*atomic.Int64{}, servers: map[string]*server{}}
	z.house = plan{model: z.model, config: func(c *runtime.Config) { c.Log = slog.New(z.log) }}.open(t)
	z.loader = modules.NewLoader(z.Runtime)
	t.Cleanup(func() { z.loader.Close(context.Background()) })
	for _, s := range []*server{{name: "magpie", apis: []string{"tvl", "liquidity"}}, {name: "uniswap", apis: []string{"swap"}}} {
		for _, api := range s.apis {
			z.runs[s.name+"/"+api] = new(atomic.Int64)
		}
		s.runs, z.servers[s.name] = z.runs, s
		if err := z.loader.Load(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return z
}

// analyst makes a tool-gated role of magpie's.
func (z *bazaar) analyst(t *testing.T, groups ...toolgroups.GroupID) org.Role {
	t.Helper()
	gated, magpie := true, "magpie"
	role, err := z.CreateRole(t.Context(), called(operator), org.RoleSpec{
		Name: "TVL Analyzer", Prompt: "Analyse.", Use: use(groups...), Grant: use(), ToolGated: &gated, Server: &magpie,
	})
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// wantRuns checks which APIs ran, and how often.
func (z *bazaar) wantRuns(t *testing.T, want map[string]int64) {
	t.Helper()
	for id, n := range z.runs {
		if got := n.Load(); got != want[id] {
			t.Errorf("%s ran %d times, want %d", id, got, want[id])
		}
	}
}

func (z *bazaar) wantLog(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, z.log.read()); diff != "" {
		t.Errorf("log, want before got:\n%s", diff)
	}
}

const (
	noTools   = "This agent has no tools configured. Please contact the agent creator to add API access."
	loadedAll = "Tool-gating enabled: Agent can ONLY call these tools: call_magpie_tvl, call_magpie_liquidity"
)

// Test Case 1: "Create agent with availableTools = []. Start chat. Expected:
// Session ends with error message".
func TestAgentWithNoTools(t *testing.T) {
	for _, groups := range [][]toolgroups.GroupID{nil, {"uniswap"}, {"uniswap/swap", "nowhere"}} {
		z := openBazaar(t, func(model.Request) model.Answer { return end("Paris") })
		task := z.run(t, org.TaskSpec{Text: "What's the capital of France?", Role: string(z.analyst(t, groups...).ID)})
		z.want(t, task, "", errcode.NoToolsAvailable)
		if task.Error.Message != noTools {
			t.Errorf("got %q", task.Error.Message)
		}
		failed := said[journal.Failed](t, z.house)
		if len(failed) != 1 || failed[0].Code != errcode.NoToolsAvailable || failed[0].Message != noTools || failed[0].Type() != "error" {
			t.Errorf("got the events %+v", failed)
		}
		if n := len(z.model.asked()); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
		z.wantLog(t, fmt.Sprintf("WARN Agent %s has no tools configured - cannot operate", task.Top))
	}
}

// The same below a root: the agent comes into being, its first turn fails, and
// its parent is told.
func TestASpawnedAgentWithNoToolsTellsItsParent(t *testing.T) {
	var role org.Role
	z := openBazaar(t, func(r model.Request) model.Answer {
		if r.Self.Parent != "" {
			return end("Paris")
		}
		if answers(r) == 0 {
			return do("spawn_agent_with_task", obj{"roleId": role.ID, "taskBrief": brief(), "initialMessage": "go"})
		}
		if got := report(r); got != nil {
			return model.Answer{Finish: model.FinishEnd, Value: got}
		}
		return wait()
	})
	role = z.analyst(t)
	task := z.run(t, org.TaskSpec{Text: "go"})
	got := decode(task.Result)
	if got["errorType"] != string(errcode.NoToolsAvailable) || got["message"] != noTools {
		t.Errorf("the parent was told %s\n%s", task.Result, z.story(t))
	}
	for _, r := range z.model.asked() {
		if r.Self.Parent != "" {
			t.Errorf("the model was asked for agent %s", r.Self.ID)
		}
	}
}

// Test Case 2: "Agent configured with tool magpie/tvl. LLM somehow tries to
// call call_uniswap_swap. Expected: tool_error event, execution skipped". The
// answer is one and the same for whatever is not its own.
func TestUnauthorizedToolCall(t *testing.T) {
	for _, name := range []string{"call_uniswap_swap", "call_magpie_liquidity", "call_nobody_knows", "CALL_MAGPIE_TVL", "create_role", "later", "x\nWARN y"} {
		t.Run(name, func(t *testing.T) {
			z := openBazaar(t, func(r model.Request) model.Answer {
				if answers(r) == 0 {
					return do(name, obj{})
				}
				return end("I was refused.")
			})
			later := probe(t, "later", tool.Options{States: []string{"draft"}}, func(context.Context, obj) (any, error) { return nil, nil })
			if _, err := z.Register(modules.Owner("magpie"), toolgroups.Group{ID: "later", Tools: []tool.Tool{later}}); err != nil {
				t.Fatal(err)
			}
			task := z.run(t, org.TaskSpec{Text: "swap", Role: string(z.analyst(t, "magpie/tvl", "later").ID)})
			z.want(t, task, `"I was refused."`, "")
			z.wantRuns(t, nil)

			message := "Access denied. This agent is not authorized to use the " + name + " tool."
			failed := said[journal.ToolError](t, z.house)
			if len(failed) != 1 || failed[0].Type() != "tool_error" || failed[0].Tool != name || failed[0].Code != errcode.ToolNotAvailable || decode(failed[0].Result)["message"] != message {
				t.Errorf("got the events %+v", failed)
			}
			want := obj{"error": string(errcode.ToolNotAvailable), "toolName": name, "message": message}
			if diff := cmp.Diff(want, last(z.model.asked()[1])); diff != "" {
				t.Errorf("the model was told, want before got:\n%s", diff)
			}
			z.wantLog(t,
				fmt.Sprintf("INFO Agent %s (TVL Analyzer) loaded with 1 tool(s)", task.Top),
				"INFO Tool-gating enabled: Agent can ONLY call these tools: call_magpie_tvl",
				fmt.Sprintf("WARN UNAUTHORIZED TOOL ACCESS: Agent %s attempted to call %s", task.Top, strings.ReplaceAll(name, "\n", " ")))
		})
	}
}

// Test Case 3: "LLM calls call_magpie_tvl with valid inputs. Expected: Tool
// executes successfully".
func TestValidToolCall(t *testing.T) {
	z := openBazaar(t, func(r model.Request) model.Answer {
		if n := answers(r); n < 2 {
			return do("call_magpie_tvl", obj{})
		}
		return end("42, says call_magpie_tvl")
	})
	task := z.run(t, org.TaskSpec{Text: "tvl?", Role: string(z.analyst(t, "magpie/tvl", "magpie/liquidity").ID)})
	z.want(t, task, `"42, says call_magpie_tvl"`, "")
	z.wantRuns(t, map[string]int64{"magpie/tvl": 2})
	if got := said[journal.ToolResult](t, z.house); len(got) != 2 || string(got[0].Result) != `"42 from magpie/tvl"` {
		t.Errorf("got the events %+v", got)
	}
	z.wantLog(t,
		fmt.Sprintf("INFO Agent %s (TVL Analyzer) loaded with 2 tool(s)", task.Top), "INFO "+loadedAll,
		"INFO Tool executed successfully: call_magpie_tvl", "INFO Tool executed successfully: call_magpie_tvl")
}

// seedPrompt is what the seed has a model told, with two tools.
const seedPrompt = `CRITICAL CONSTRAINTS (you must follow these exactly):
1. You MUST call tools to retrieve information - do not use your training knowledge
2. You can ONLY provide information that comes directly from tool execution results
3. Do NOT provide responses based on your internal knowledge or reasoning
4. If a tool fails, respond with: "I was unable to retrieve data from [tool_name]. Please try again."
5. If no tools are available, respond with: "I have no tools configured to help with this request."
6. Always cite which tool provided the data you're reporting
7. Do NOT provide general knowledge, advice, or analysis beyond what the tools return
`

// Test Case 4: "User: What's the capital of France? Expected: Either
// tool-based response or a refusal". What a model answers is its own; that it
// was told, and that nothing was done, is ours.
func TestGeneralKnowledgeQuestion(t *testing.T) {
	const refusal = "I can only provide information from my configured APIs"
	z := openBazaar(t, func(model.Request) model.Answer { return end(refusal) })
	task := z.run(t, org.TaskSpec{Text: "What's the capital of France?", Role: string(z.analyst(t, "magpie").ID)})
	z.want(t, task, `"`+refusal+`"`, "")
	z.wantRuns(t, nil)
	asked := z.model.asked()
	if len(asked) != 1 {
		t.Fatalf("the model was asked %d times", len(asked))
	}
	_, block, found := strings.Cut(asked[0].System, seedPrompt)
	want := "\nYour 2 tool(s): call_magpie_tvl, call_magpie_liquidity\n\n" +
		"Remember: You are strictly tool-gated. Users cannot use you as a general LLM. You only have access to 2 specific API endpoint(s).\n"
	if !found || block != want {
		t.Errorf("the prompt ends in %q, want the constraints and %q\n%s", block, want, asked[0].System)
	}
}

func TestOtherAgentsAreToldNoConstraints(t *testing.T) {
	z := openBazaar(t, func(model.Request) model.Answer { return end("Paris") })
	z.run(t, org.TaskSpec{Text: "What's the capital of France?"})
	if asked := z.model.asked(); len(asked) != 1 || strings.Contains(asked[0].System, "CRITICAL CONSTRAINTS") {
		t.Errorf("got %+v", asked)
	}
	z.wantLog(t)
}

// "Each agent is tied to a specific server and can only call APIs from that
// server", whatever its groups hold: all there are, or a toolset of the
// operator's.
func TestAConfinedAgentHasItsServersToolsOnly(t *testing.T) {
	for _, groups := range [][]toolgroups.GroupID{{"*"}, {"magpie", "uniswap"}, {"kit"}, {"uniswap/swap", "magpie/liquidity", "magpie/tvl"}} {
		z := openBazaar(t, func(r model.Request) model.Answer {
			if answers(r) == 0 {
				return do("call_uniswap_swap", obj{}, "read_file", obj{"path": "x"}, "call_magpie_tvl", obj{})
			}
			return end("done")
		})
		kit := toolgroups.Group{ID: "kit", Refs: []string{"call_uniswap_swap", "call_magpie_tvl", "call_magpie_liquidity"}}
		if _, err := z.Groups().Register(toolgroups.Config, kit); err != nil {
			t.Fatal(err)
		}
		z.want(t, z.run(t, org.TaskSpec{Text: "go", Role: string(z.analyst(t, groups...).ID)}), `"done"`, "")
		z.wantRuns(t, map[string]int64{"magpie/tvl": 1})
		got := slices.Clone(z.model.asked()[0].Tools)
		slices.Sort(got)
		if want := []string{"call_magpie_liquidity", "call_magpie_tvl"}; !slices.Equal(got, want) {
			t.Errorf("of %v it sees %v, want %v", groups, got, want)
		}
	}
}

// Layer 1 holds before every request: tools that go later end the turn.
func TestToolsThatGoEndTheTurn(t *testing.T) {
	tests := []struct {
		name string
		take func(z *bazaar, role org.Role) error
	}{
		{"the group is taken from the role", func(z *bazaar, role org.Role) error {
			_, _, err := z.UpdateRole(operator, role.ID, org.RoleSpec{Use: use("uniswap")}, false)
			return err
		}},
		{"the group is unregistered", func(z *bazaar, _ org.Role) error { return z.Unregister(modules.Owner("magpie"), "magpie") }},
		{"the role is confined to another server", func(z *bazaar, role org.Role) error {
			other := "uniswap"
			_, _, err := z.UpdateRole(operator, role.ID, org.RoleSpec{Server: &other}, false)
			return err
		}},
		{"the role is deleted", func(z *bazaar, role org.Role) error {
			_, err := z.DeleteRole(operator, role.ID, false)
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			z := openBazaar(t, func(model.Request) model.Answer { return do("call_magpie_tvl", obj{}) })
			role := z.analyst(t, "magpie")
			z.servers["magpie"].act = func() {
				if err := tt.take(z, role); err != nil {
					t.Error(err)
				}
			}
			task := z.run(t, org.TaskSpec{Text: "go", Role: string(role.ID)})
			z.want(t, task, "", errcode.NoToolsAvailable)
			z.wantRuns(t, map[string]int64{"magpie/tvl": 1})
			if n := len(z.model.asked()); n != 1 {
				t.Errorf("the model was asked %d times, want once", n)
			}
		})
	}
}
