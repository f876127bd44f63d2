package mcpserver_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

// toolCallAnswer returns an answer that calls one tool.
func toolCallAnswer(name string, args any) model.Answer {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: name, Args: text}}}
}

// toolResults returns the contents of the tool results so far.
func toolResults(r model.Request) []string {
	var list []string
	for _, item := range r.Items {
		if item.Result != nil {
			list = append(list, string(item.Result.Content))
		}
	}
	return list
}

// escalatingModel is a root agent that tries to create a role with more
// permissions than its task's caller has. Its answer holds both results.
func escalatingModel(_ context.Context, r model.Request) model.Answer {
	got := toolResults(r)
	switch len(got) {
	case 0:
		return toolCallAnswer("create_role", obj{"name": "thief", "rolePrompt": "p", "toolGroups": []string{"command"}})
	case 1:
		return toolCallAnswer("create_role", obj{"name": "helper", "rolePrompt": "p", "toolGroups": []string{"workspace"}})
	}
	return model.Answer{Finish: model.FinishEnd, Value: json.RawMessage(`{"thief":` + got[0] + `,"helper":` + got[1] + `}`)}
}

// askParams returns the parameters of a call of ask_organization.
func askParams(task string) *sdk.CallToolParams {
	return &sdk.CallToolParams{Name: mcpserver.AskName, Arguments: map[string]any{"task": task}}
}

func TestAsk_RunsTaskWithinCallersPermissions(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			f := fixtureConfig{model: escalatingModel}.open(t)
			lines := make(chan string, 100)
			session := f.connect(t, "ann@boss", "/mcp", version, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					lines <- r.Params.Message
				},
			})
			if got := toolNames(t, session); !strings.HasPrefix(got, "advance ask_organization count") {
				t.Errorf("tools: %s", got)
			}
			params := askParams("steal")
			params.SetProgressToken(1)
			got, err := session.CallTool(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			text := textOf(got)
			if got.IsError || !strings.Contains(text, "insufficient_permissions") || !strings.Contains(text, `"name":"helper"`) {
				t.Errorf("the task is not bounded by its caller's permissions: %s", text)
			}
			awaitLine(t, lines, "root calls create_role")
		})
	}
}

// awaitLine waits for a line of progress. The client may handle a notification after
// it has returned the result.
func awaitLine(t *testing.T, lines <-chan string, want string) {
	t.Helper()
	late := time.After(time.Minute)
	for {
		select {
		case line := <-lines:
			if line == want {
				return
			}
		case <-late:
			t.Fatalf("no line %q of progress came", want)
		}
	}
}

func TestAsk_HiddenWithoutOrgManagement(t *testing.T) {
	f := openFixture(t)
	for _, path := range []string{"/mcp", "/mcp/probe"} {
		session := f.connect(t, "ann@tester", path, "", nil)
		if strings.Contains(toolNames(t, session), mcpserver.AskName) {
			t.Errorf("the tool is listed at %s", path)
		}
		if _, err := session.CallTool(t.Context(), askParams("x")); err == nil || !strings.Contains(err.Error(), "Unknown tool: "+mcpserver.AskName) {
			t.Errorf("at %s: %v", path, err)
		}
	}
	narrowed := f.connect(t, "ann@boss", "/mcp/workspace", "", nil)
	if _, err := narrowed.CallTool(t.Context(), askParams("x")); err == nil {
		t.Error("the tool can be called at another group")
	}
	session := f.connect(t, "ann@boss", "/mcp", "", nil)
	f.setGroups(t, "boss", "probe")
	if _, err := session.CallTool(t.Context(), askParams("x")); err == nil || !strings.Contains(err.Error(), "Unknown tool") {
		t.Errorf("after it was revoked: %v", err)
	}
	if tasks := f.rt.Org().ListTasks(); len(tasks) != 0 {
		t.Errorf("a task was started: %+v", tasks)
	}
}

// A role with tasks.as is offered the tool without org_management, while the role that it
// names exists. The task is bounded by that role. Clients are told of changes.
func TestAsk_OfferedWithTasksAs(t *testing.T) {
	f := fixtureConfig{model: escalatingModel}.open(t)
	f.role(t, "ops", "workspace", "org_management")
	set := func(r org.RoleSpec) {
		t.Helper()
		if _, _, err := f.rt.UpdateRole(operator, f.roles["tester"], r, false); err != nil {
			t.Fatal(err)
		}
	}
	changed := make(chan struct{}, 10)
	session := f.connect(t, "ann@tester", "/mcp", versions[0], &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	plain := toolNames(t, session)
	set(org.RoleSpec{TasksAs: new("ops")})
	waitFor(t, "the client is told of the tool", changed)
	if got := toolNames(t, session); !strings.Contains(got, mcpserver.AskName) {
		t.Errorf("tools: %s", got)
	}
	if got := toolNames(t, f.connect(t, "ann@tester", "/mcp/probe", "", nil)); strings.Contains(got, mcpserver.AskName) {
		t.Errorf("tools of a group: %s", got)
	}
	got, err := session.CallTool(t.Context(), askParams("steal"))
	if err != nil || got.IsError {
		t.Fatalf("%+v %v", got, err)
	}
	if text := textOf(got); !strings.Contains(text, "insufficient_permissions") || !strings.Contains(text, `"name":"helper"`) {
		t.Errorf("the task is not bounded by ops: %s", text)
	}
	if _, err := f.rt.DeleteRole(operator, f.roles["ops"], false); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the client is told that the tool is gone", changed)
	if got := toolNames(t, session); got != plain {
		t.Errorf("after ops was deleted: %s", got)
	}
	if _, err := session.CallTool(t.Context(), askParams("x")); err == nil || !strings.Contains(err.Error(), "Unknown tool") {
		t.Errorf("a call after ops was deleted: %v", err)
	}
	set(org.RoleSpec{TasksAs: new("")})
	if tasks := f.rt.Org().ListTasks(); len(tasks) != 1 {
		t.Errorf("%d tasks were started, want one", len(tasks))
	}
}

func TestAsk_ValidatesArguments(t *testing.T) {
	f := openFixture(t)
	session := f.connect(t, "ann@boss", "/mcp", "", nil)
	for _, args := range []any{raw(`{}`), raw(`{"task":""}`), raw(`{"task":7}`), raw(`{"task":"x","role":"root"}`), raw(`{"Task":"x"}`)} {
		got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: mcpserver.AskName, Arguments: args})
		if err != nil || !got.IsError || !strings.Contains(textOf(got), "invalid_arguments") {
			t.Errorf("%s: %+v %v", args, got, err)
		}
	}
	got, err := session.CallTool(t.Context(), askParams("x"))
	if err != nil || textOf(got) != "done" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestAsk_CancelsTaskWithCall(t *testing.T) {
	generating := make(chan struct{}, 1)
	f := fixtureConfig{model: func(ctx context.Context, _ model.Request) model.Answer {
		generating <- struct{}{}
		<-ctx.Done()
		return model.Answer{}
	}}.open(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			session := f.connect(t, "ann@boss", "/mcp", version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = session.CallTool(ctx, askParams("think"))
			}()
			waitFor(t, "the model is called", generating)
			tasks := f.rt.Org().ListTasks()
			task := tasks[len(tasks)-1]
			cancel()
			ended, err := f.rt.WaitTask(t.Context(), task.ID)
			if err != nil || ended.Status != org.Cancelled {
				t.Errorf("the task is %s: %v", ended.Status, err)
			}
			if want := identity.ByCaller("ann", f.roles["boss"]).String(); task.Caller != want {
				t.Errorf("the task's caller is %s, want %s", task.Caller, want)
			}
			waitFor(t, "the client returns", done)
		})
	}
}

func TestAsk_TaskSurvivesClose(t *testing.T) {
	generating := make(chan struct{}, 1)
	f := fixtureConfig{model: func(ctx context.Context, _ model.Request) model.Answer {
		generating <- struct{}{}
		<-ctx.Done()
		return model.Answer{}
	}}.open(t)
	session := f.connect(t, "ann@boss", "/mcp", "", nil)
	answered := make(chan *sdk.CallToolResult, 1)
	go func() {
		got, _ := session.CallTool(t.Context(), askParams("think"))
		answered <- got
	}()
	waitFor(t, "the model is called", generating)
	if err := f.server.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-answered
	if got == nil || !got.IsError || !strings.Contains(textOf(got), "continues when it is resumed") {
		t.Errorf("%+v", got)
	}
	if task := f.rt.Org().ListTasks()[0]; task.Status != org.Running {
		t.Errorf("the task is %s", task.Status)
	}
}

// A client reads that a result is not whole.
func TestAsk_IncompleteResult(t *testing.T) {
	f := fixtureConfig{model: func(context.Context, model.Request) model.Answer {
		return model.Answer{Finish: model.FinishEnd, Text: "So f", Stop: model.ContentFilter}
	}}.open(t)
	got, err := f.connect(t, "ann@boss", "/mcp", "", nil).CallTool(t.Context(), askParams("go"))
	if want := "So f\n\n(This result is incomplete: content_filter.)"; err != nil || got.IsError || textOf(got) != want {
		t.Errorf("%v, got %q, want %q", err, textOf(got), want)
	}
}
