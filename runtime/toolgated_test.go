package runtime_test

import (
	"context"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// apiServer is a module with tools named after APIs. It counts the runs of
// each.
type apiServer struct {
	name   string
	apis   []string
	runs   map[string]*atomic.Int64                    // by server/api
	act    func()                                      // called when an API runs; may be nil
	change func([]toolgroups.Group) []toolgroups.Group // what it offers instead of its API groups; nil changes nothing
}

// Name implements modules.Module.
func (s *apiServer) Name() string { return s.name }

// ToolGroups implements modules.Module.
func (s *apiServer) ToolGroups() []toolgroups.Group {
	if s.change != nil {
		return s.change(s.apiGroups())
	}
	return s.apiGroups()
}

// changeGroups makes the server offer other groups and waits until they are registered.
func (s *apiServer) changeGroups(t *testing.T, l *modules.Loader, change func([]toolgroups.Group) []toolgroups.Group) {
	t.Helper()
	s.change = change
	l.NotifyChanged(s.name)
	if err := l.WaitIdle(t.Context()); err != nil {
		t.Error(err)
	}
}

// apiGroups returns a group with a tool for each API.
func (s *apiServer) apiGroups() []toolgroups.Group {
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
	groups, err := modules.ServerGroups(s.name, "The APIs of "+s.name+".", list)
	if err != nil {
		panic(err)
	}
	return groups
}

// recordingModel is a language model that records its requests.
type recordingModel struct {
	answerFunc
	mu       sync.Mutex
	requests []model.Request // guarded by mu
}

// Window implements model.LanguageModel.
func (l *recordingModel) Window() int { return 100_000 }

// Generate implements model.Model.
func (l *recordingModel) Generate(ctx context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	l.mu.Lock()
	l.requests = append(l.requests, r)
	l.mu.Unlock()
	return l.answerFunc.Generate(ctx, r)
}

func (l *recordingModel) asked() []model.Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.requests)
}

// logLines is a slog.Handler that keeps level and message of each record,
// except for those of the request log.
type logLines struct {
	mu   sync.Mutex
	list []string // guarded by mu
}

func (l *logLines) Enabled(context.Context, slog.Level) bool { return true }
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logLines) WithGroup(string) slog.Handler            { return l }
func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "agent request" {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = append(l.list, r.Level.String()+" "+r.Message)
	return nil
}

func (l *logLines) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.list)
}

// gatedFixture is a fixture with the servers magpie and uniswap.
type gatedFixture struct {
	*fixture
	t       *testing.T
	loader  *modules.Loader
	model   *recordingModel
	log     *logLines
	runs    map[string]*atomic.Int64
	servers map[string]*apiServer
}

func newGatedFixture(t *testing.T, b answerFunc) *gatedFixture {
	t.Helper()
	fx := &gatedFixture{t: t, model: &recordingModel{answerFunc: b}, log: &logLines{}, runs: map[string]*atomic.Int64{}, servers: map[string]*apiServer{}}
	fx.fixture = fixtureConfig{model: fx.model, configure: func(c *runtime.Config) { c.Log = slog.New(fx.log) }}.open(t)
	fx.loader = modules.NewLoader(fx.GroupManager())
	t.Cleanup(func() { fx.loader.Close(context.Background()) })
	for _, s := range []*apiServer{{name: "magpie", apis: []string{"tvl", "liquidity"}}, {name: "uniswap", apis: []string{"swap"}}} {
		for _, api := range s.apis {
			fx.runs[s.name+"/"+api] = new(atomic.Int64)
		}
		s.runs, fx.servers[s.name] = fx.runs, s
		if err := fx.loader.LoadModule(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	return fx
}

// createAnalyst creates a tool-gated role that is restricted to the server
// magpie.
func (fx *gatedFixture) createAnalyst(t *testing.T, groups ...toolgroups.GroupID) org.Role {
	t.Helper()
	return fx.createGated(t, toolgroups.Gated, groups...)
}

// createGated creates a role that is restricted to the server magpie.
func (fx *gatedFixture) createGated(t *testing.T, gated toolgroups.Gating, groups ...toolgroups.GroupID) org.Role {
	t.Helper()
	magpie := "magpie"
	role, err := fx.CreateRole(t.Context(), newCall(operator), org.RoleSpec{
		Name: "TVL Analyzer", Prompt: "Analyse.", Use: groupSet(groups...), Grant: groupSet(), ToolGated: &gated, Server: &magpie, AllowUnknown: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return role
}

// wantRuns checks which APIs ran, and how often.
func (fx *gatedFixture) wantRuns(t *testing.T, want map[string]int64) {
	t.Helper()
	for id, n := range fx.runs {
		if got := n.Load(); got != want[id] {
			t.Errorf("%s ran %d times, want %d", id, got, want[id])
		}
	}
}

func (fx *gatedFixture) wantLog(t *testing.T, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, fx.log.all()); diff != "" {
		t.Errorf("log (-want +got):\n%s", diff)
	}
}

const (
	noTools   = "This agent has no tools configured. Please contact the agent creator to add API access."
	loadedAll = "Tool-gating enabled: Agent can ONLY call these tools: call_magpie_tvl, call_magpie_liquidity"
)

// An agent without tools: the session ends with an error message.
func TestToolGated_NoTools(t *testing.T) {
	for _, groups := range [][]toolgroups.GroupID{nil, {"uniswap"}, {"uniswap/swap", "nowhere"}} {
		fx := newGatedFixture(t, func(model.Request) model.Answer { return endWith("Paris") })
		task := fx.run(t, org.TaskSpec{Text: "What's the capital of France?", Role: string(fx.createAnalyst(t, groups...).ID)})
		fx.wantResult(t, task, "", errcode.NoToolsAvailable)
		if task.Error.Message != noTools {
			t.Errorf("got %q", task.Error.Message)
		}
		failed := bodiesOf[journal.TurnFailed](t, fx.fixture)
		if len(failed) != 1 || failed[0].Code != errcode.NoToolsAvailable || failed[0].Message != noTools || failed[0].EventType() != "error" {
			t.Errorf("got the events %+v", failed)
		}
		if n := len(fx.model.asked()); n != 0 {
			t.Errorf("the model was asked %d times", n)
		}
		fx.wantLog(t, fmt.Sprintf("WARN Agent %s has no tools configured - cannot operate", task.Top))
	}
}

// A spawned agent without tools is created, its first turn fails, and its
// parent is notified.
func TestToolGated_NoToolsNotifiesParent(t *testing.T) {
	var role org.Role
	fx := newGatedFixture(t, func(r model.Request) model.Answer {
		if r.Self.Parent != "" {
			return endWith("Paris")
		}
		if answerCount(r) == 0 {
			return callTools("spawn_agent_with_task", obj{"roleId": role.ID, "taskBrief": taskBrief(), "initialMessage": "go"})
		}
		if got := lastReport(r); got != nil {
			return model.Answer{Finish: model.FinishEnd, Value: got}
		}
		return waitForMessage()
	})
	role = fx.createAnalyst(t)
	task := fx.run(t, org.TaskSpec{Text: "go"})
	got := decodeObject(task.Result)
	if got["errorType"] != string(errcode.NoToolsAvailable) || got["message"] != noTools {
		t.Errorf("the parent received %s\n%s", task.Result, fx.eventLog(t))
	}
	for _, r := range fx.model.asked() {
		if r.Self.Parent != "" {
			t.Errorf("the model was asked for agent %s", r.Self.ID)
		}
	}
}

// A model that calls a tool of another server: a tool_error event, and the call
// is not executed. The message is the same for every tool that the agent does
// not have.
func TestToolGated_UnauthorizedCall(t *testing.T) {
	for _, name := range []string{"call_uniswap_swap", "call_magpie_liquidity", "call_nobody_knows", "CALL_MAGPIE_TVL", "create_role", "later", "x\nWARN y"} {
		t.Run(name, func(t *testing.T) {
			fx := newGatedFixture(t, func(r model.Request) model.Answer {
				if answerCount(r) == 0 {
					return callTools(name, obj{})
				}
				return endWith("I was refused.")
			})
			later := newTool(t, "later", tool.Options{States: []string{"draft"}}, func(context.Context, obj) (any, error) { return nil, nil })
			fx.servers["magpie"].changeGroups(t, fx.loader, func(groups []toolgroups.Group) []toolgroups.Group {
				return append(groups, toolgroups.Group{ID: "later", Tools: []tool.Tool{later}})
			})
			task := fx.run(t, org.TaskSpec{Text: "swap", Role: string(fx.createAnalyst(t, "magpie/tvl", "later").ID)})
			fx.wantResult(t, task, `"I was refused."`, "")
			fx.wantRuns(t, nil)

			message := "Access denied. This agent is not authorized to use the " + name + " tool."
			failed := bodiesOf[journal.ToolError](t, fx.fixture)
			if len(failed) != 1 || failed[0].EventType() != "tool_error" || failed[0].Tool != name || failed[0].Code != errcode.ToolNotAvailable || decodeObject(failed[0].Result)["message"] != message {
				t.Errorf("got the events %+v", failed)
			}
			want := obj{"error": string(errcode.ToolNotAvailable), "toolName": name, "message": message}
			if diff := cmp.Diff(want, lastResult(fx.model.asked()[1])); diff != "" {
				t.Errorf("the result (-want +got):\n%s", diff)
			}
			fx.wantLog(t,
				fmt.Sprintf("INFO Agent %s (TVL Analyzer) loaded with 1 tool(s)", task.Top),
				"INFO Tool-gating enabled: Agent can ONLY call these tools: call_magpie_tvl",
				fmt.Sprintf("WARN UNAUTHORIZED TOOL ACCESS: Agent %s attempted to call %s", task.Top, strings.ReplaceAll(name, "\n", " ")))
		})
	}
}

// A model that calls its own tool: the tool runs.
func TestToolGated_ValidCall(t *testing.T) {
	fx := newGatedFixture(t, func(r model.Request) model.Answer {
		if n := answerCount(r); n < 2 {
			return callTools("call_magpie_tvl", obj{})
		}
		return endWith("42, says call_magpie_tvl")
	})
	task := fx.run(t, org.TaskSpec{Text: "tvl?", Role: string(fx.createAnalyst(t, "magpie/tvl", "magpie/liquidity").ID)})
	fx.wantResult(t, task, `"42, says call_magpie_tvl"`, "")
	fx.wantRuns(t, map[string]int64{"magpie/tvl": 2})
	if got := bodiesOf[journal.ToolResult](t, fx.fixture); len(got) != 2 || string(got[0].Result) != `"42 from magpie/tvl"` {
		t.Errorf("got the events %+v", got)
	}
	fx.wantLog(t,
		fmt.Sprintf("INFO Agent %s (TVL Analyzer) loaded with 2 tool(s)", task.Top), "INFO "+loadedAll,
		"INFO Tool executed successfully: call_magpie_tvl", "INFO Tool executed successfully: call_magpie_tvl")
}

// constraintsPrompt is the specified prompt of a tool-gated agent.
const constraintsPrompt = `CRITICAL CONSTRAINTS (you must follow these exactly):
1. You MUST call tools to retrieve information - do not use your training knowledge
2. You can ONLY provide information that comes directly from tool execution results
3. Do NOT provide responses based on your internal knowledge or reasoning
4. If a tool fails, respond with: "I was unable to retrieve data from [tool_name]. Please try again."
5. If no tools are available, respond with: "I have no tools configured to help with this request."
6. Always cite which tool provided the data you're reporting
7. Do NOT provide general knowledge, advice, or analysis beyond what the tools return
`

// A question about general knowledge: the answer is up to the model, but the
// prompt has the constraints and no tool runs.
func TestToolGated_GeneralKnowledgeQuestion(t *testing.T) {
	const refusal = "I can only provide information from my configured APIs"
	fx := newGatedFixture(t, func(model.Request) model.Answer { return endWith(refusal) })
	task := fx.run(t, org.TaskSpec{Text: "What's the capital of France?", Role: string(fx.createAnalyst(t, "magpie").ID)})
	fx.wantResult(t, task, `"`+refusal+`"`, "")
	fx.wantRuns(t, nil)
	asked := fx.model.asked()
	if len(asked) != 1 {
		t.Fatalf("the model was asked %d times", len(asked))
	}
	_, block, found := strings.Cut(asked[0].System, constraintsPrompt)
	want := "\nYour 2 tool(s): call_magpie_tvl, call_magpie_liquidity\n\n" +
		"Remember: You are strictly tool-gated. Users cannot use you as a general LLM. You only have access to 2 specific API endpoint(s).\n"
	if !found || block != want {
		t.Errorf("the prompt ends in %q, want the constraints and %q\n%s", block, want, asked[0].System)
	}
}

// A strictly gated agent delivers no answer of a turn without a successful call: not in its
// result, not in the record and not in parts while the model writes.
func TestToolGated_StrictWithholdsUngroundedAnswers(t *testing.T) {
	const refusal = "I can only provide information from my configured APIs"
	call := callTools("call_magpie_tvl", obj{})
	denied := callTools("call_uniswap_swap", obj{})
	cut := endWith("Paris is")
	cut.Stop = model.Length
	for name, tc := range map[string]struct {
		answers  []model.Answer
		want     string
		withheld bool
	}{
		"no call":                  {[]model.Answer{endWith("Paris")}, refusal, true},
		"a denied call":            {[]model.Answer{denied, endWith("Paris")}, refusal, true},
		"an answer cut short":      {[]model.Answer{cut}, refusal, true},
		"a successful call":        {[]model.Answer{call, endWith("42, says call_magpie_tvl")}, "42, says call_magpie_tvl", false},
		"a denied and a good call": {[]model.Answer{denied, call, endWith("42")}, "42", false},
	} {
		t.Run(name, func(t *testing.T) {
			fx := newGatedFixture(t, func(r model.Request) model.Answer { return tc.answers[answerCount(r)] })
			role := fx.createGated(t, toolgroups.StrictlyGated, "magpie/tvl")
			task := fx.run(t, org.TaskSpec{Text: "What's the capital of France?", Role: string(role.ID)})
			fx.wantResult(t, task, strconv.Quote(tc.want), "")
			if got := len(bodiesOf[journal.UngroundedAnswer](t, fx.fixture)) > 0; got != tc.withheld {
				t.Errorf("the event ungrounded_answer is on record: %v", got)
			}
			for _, b := range bodiesOf[journal.ModelAnswered](t, fx.fixture) {
				if tc.withheld && strings.Contains(b.Answer.Text, "Paris") {
					t.Errorf("the record has the answer %+v", b.Answer)
				}
			}
		})
	}
}

// streamingLanguageModel is a streamingModel that is prompted like a language model.
type streamingLanguageModel struct{ streamingModel }

// Window implements model.LanguageModel.
func (streamingLanguageModel) Window() int { return 100_000 }

// Watchers read what a strictly gated agent writes only after a successful call.
func TestToolGated_StrictStreamsNothingUngrounded(t *testing.T) {
	watching := make(chan struct{})
	fx := fixtureConfig{model: streamingLanguageModel{func(_ context.Context, r model.Request, say func(model.AnswerDelta)) (model.Answer, error) {
		<-watching
		if answerCount(r) == 0 {
			say(model.AnswerDelta{Text: "Paris"})
			return callTools("put_artifact", obj{"type": "t", "content": 1}), nil
		}
		say(model.AnswerDelta{Text: "stored"})
		return endWith("stored"), nil
	}}}.open(t)
	strict := toolgroups.StrictlyGated
	id := fx.start(t, fx.roleTask(t, org.RoleSpec{Use: groupSet("artifact"), ToolGated: &strict}))
	var first sync.Once
	var text strings.Builder
	fx.watchAll(t, t.Context(), id, func(e journal.Event) {
		first.Do(func() { close(watching) })
		if d, ok := e.Body.(journal.ModelDelta); ok {
			text.WriteString(d.Text)
		}
	})
	if text.String() != "stored" {
		t.Errorf("watchers read %q", text.String())
	}
}

func TestToolGated_OtherAgentsHaveNoConstraints(t *testing.T) {
	fx := newGatedFixture(t, func(model.Request) model.Answer { return endWith("Paris") })
	fx.run(t, org.TaskSpec{Text: "What's the capital of France?"})
	if asked := fx.model.asked(); len(asked) != 1 || strings.Contains(asked[0].System, "CRITICAL CONSTRAINTS") {
		t.Errorf("got %+v", asked)
	}
	fx.wantLog(t)
}

// An agent that is restricted to a server can only call tools of that server,
// whatever its groups contain: all groups, or a toolset of the operator.
func TestToolGated_OnlyToolsOfServer(t *testing.T) {
	for _, groups := range [][]toolgroups.GroupID{{"*"}, {"magpie", "uniswap"}, {"kit"}, {"uniswap/swap", "magpie/liquidity", "magpie/tvl"}} {
		fx := newGatedFixture(t, func(r model.Request) model.Answer {
			if answerCount(r) == 0 {
				return callTools("call_uniswap_swap", obj{}, "read_file", obj{"path": "x"}, "call_magpie_tvl", obj{})
			}
			return endWith("done")
		})
		kit := toolgroups.Group{ID: "kit", Refs: []string{"call_uniswap_swap", "call_magpie_tvl", "call_magpie_liquidity"}}
		if _, err := grouptest.RegisterGroup(fx.GroupManager(), toolgroups.Config, kit); err != nil {
			t.Fatal(err)
		}
		fx.wantResult(t, fx.run(t, org.TaskSpec{Text: "go", Role: string(fx.createAnalyst(t, groups...).ID)}), `"done"`, "")
		fx.wantRuns(t, map[string]int64{"magpie/tvl": 1})
		got := slices.Clone(fx.model.asked()[0].Tools)
		slices.Sort(got)
		if want := []string{"call_magpie_liquidity", "call_magpie_tvl"}; !slices.Equal(got, want) {
			t.Errorf("with the groups %v it sees %v, want %v", groups, got, want)
		}
	}
}

// The check for tools is done before every request: a turn ends when its tools
// are removed.
func TestToolGated_RemovedToolsEndTurn(t *testing.T) {
	tests := []struct {
		name   string
		remove func(fx *gatedFixture, role org.Role) error
	}{
		{"the role loses the group", func(fx *gatedFixture, role org.Role) error {
			_, _, err := fx.UpdateRole(operator, role.ID, org.RoleSpec{Use: groupSet("uniswap")}, false)
			return err
		}},
		{"the group is unregistered", func(fx *gatedFixture, _ org.Role) error {
			fx.servers["magpie"].changeGroups(fx.t, fx.loader, func([]toolgroups.Group) []toolgroups.Group { return nil })
			return nil
		}},
		{"the role is restricted to another server", func(fx *gatedFixture, role org.Role) error {
			other := "uniswap"
			_, _, err := fx.UpdateRole(operator, role.ID, org.RoleSpec{Server: &other}, false)
			return err
		}},
		{"the role is deleted", func(fx *gatedFixture, role org.Role) error {
			_, err := fx.DeleteRole(operator, role.ID, false)
			return err
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fx := newGatedFixture(t, func(model.Request) model.Answer { return callTools("call_magpie_tvl", obj{}) })
			role := fx.createAnalyst(t, "magpie")
			fx.servers["magpie"].act = func() {
				if err := tt.remove(fx, role); err != nil {
					t.Error(err)
				}
			}
			task := fx.run(t, org.TaskSpec{Text: "go", Role: string(role.ID)})
			fx.wantResult(t, task, "", errcode.NoToolsAvailable)
			fx.wantRuns(t, map[string]int64{"magpie/tvl": 1})
			if n := len(fx.model.asked()); n != 1 {
				t.Errorf("the model was asked %d times, want once", n)
			}
		})
	}
}
