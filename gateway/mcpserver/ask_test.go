package mcpserver_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
)

type obj = map[string]any

// do is an answer that calls one tool.
func do(name string, args any) model.Answer {
	text, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return model.Answer{Finish: model.FinishToolCalls, Calls: []model.Call{{Name: name, Args: text}}}
}

// results gives what the calls so far came to.
func results(r model.Request) []string {
	var list []string
	for _, item := range r.Items {
		if item.Result != nil {
			list = append(list, string(item.Result.Content))
		}
	}
	return list
}

// greedy is a root that tries to give an agent more than its task's caller has,
// and says what came of it.
func greedy(_ context.Context, r model.Request) model.Answer {
	got := results(r)
	switch len(got) {
	case 0:
		return do("create_role", obj{"name": "thief", "rolePrompt": "p", "toolGroups": []string{"command"}})
	case 1:
		return do("create_role", obj{"name": "helper", "rolePrompt": "p", "toolGroups": []string{"workspace"}})
	}
	return model.Answer{Finish: model.FinishEnd, Value: json.RawMessage(`{"thief":` + got[0] + `,"helper":` + got[1] + `}`)}
}

func ask(task string) *sdk.CallToolParams {
	return &sdk.CallToolParams{Name: mcpserver.AskName, Arguments: map[string]any{"task": task}}
}

func TestAnOrganizationIsATool(t *testing.T) {
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			h := plan{brain: greedy}.open(t)
			var mu sync.Mutex
			var lines []string
			session := h.connect(t, "ann@boss", "/mcp", version, &sdk.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, r *sdk.ProgressNotificationClientRequest) {
					mu.Lock()
					defer mu.Unlock()
					lines = append(lines, r.Params.Message)
				},
			})
			if got := names(t, session); !strings.HasPrefix(got, "advance ask_organization count") {
				t.Errorf("the list has %s", got)
			}
			params := ask("steal")
			params.SetProgressToken(1)
			got, err := session.CallTool(t.Context(), params)
			if err != nil {
				t.Fatal(err)
			}
			text := said(got)
			if got.IsError || !strings.Contains(text, "insufficient_permissions") || !strings.Contains(text, `"name":"helper"`) {
				t.Errorf("the task has another ceiling than its caller: %s", text)
			}
			mu.Lock()
			defer mu.Unlock()
			if !slices.Contains(lines, "root calls create_role") {
				t.Errorf("its progress was %q", lines)
			}
		})
	}
}

func TestWhoMayNotMakeOthersWorkHasNoOrganization(t *testing.T) {
	h := open(t)
	for _, path := range []string{"/mcp", "/mcp/probe"} {
		session := h.connect(t, "ann@tester", path, "", nil)
		if strings.Contains(names(t, session), mcpserver.AskName) {
			t.Errorf("it is listed at %s", path)
		}
		if _, err := session.CallTool(t.Context(), ask("x")); err == nil || !strings.Contains(err.Error(), "Unknown tool: "+mcpserver.AskName) {
			t.Errorf("at %s: %v", path, err)
		}
	}
	narrowed := h.connect(t, "ann@boss", "/mcp/workspace", "", nil)
	if _, err := narrowed.CallTool(t.Context(), ask("x")); err == nil {
		t.Error("it can be called through another group")
	}
	session := h.connect(t, "ann@boss", "/mcp", "", nil)
	h.give(t, "boss", "probe")
	if _, err := session.CallTool(t.Context(), ask("x")); err == nil || !strings.Contains(err.Error(), "Unknown tool") {
		t.Errorf("after it was revoked: %v", err)
	}
	if tasks := h.rt.Org().Tasks(); len(tasks) != 0 {
		t.Errorf("a task was begun: %+v", tasks)
	}
}

func TestATaskIsAskedForInWords(t *testing.T) {
	h := open(t)
	session := h.connect(t, "ann@boss", "/mcp", "", nil)
	for _, args := range []any{raw(`{}`), raw(`{"task":""}`), raw(`{"task":7}`), raw(`{"task":"x","role":"root"}`), raw(`{"Task":"x"}`)} {
		got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: mcpserver.AskName, Arguments: args})
		if err != nil || !got.IsError || !strings.Contains(said(got), "invalid_arguments") {
			t.Errorf("%s: %+v %v", args, got, err)
		}
	}
	got, err := session.CallTool(t.Context(), ask("x"))
	if err != nil || said(got) != "done" {
		t.Errorf("%+v %v", got, err)
	}
}

func TestATaskEndsWithTheCallThatAskedForIt(t *testing.T) {
	thinking := make(chan struct{}, 1)
	h := plan{brain: func(ctx context.Context, _ model.Request) model.Answer {
		thinking <- struct{}{}
		<-ctx.Done()
		return model.Answer{}
	}}.open(t)
	for _, version := range versions {
		t.Run(version, func(t *testing.T) {
			session := h.connect(t, "ann@boss", "/mcp", version, nil)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan struct{})
			go func() {
				defer close(done)
				_, _ = session.CallTool(ctx, ask("think"))
			}()
			soon(t, "the root thinks", thinking)
			tasks := h.rt.Org().Tasks()
			task := tasks[len(tasks)-1]
			cancel()
			ended, err := h.rt.Wait(t.Context(), task.ID)
			if err != nil || ended.Status != org.Cancelled {
				t.Errorf("the task is %s: %v", ended.Status, err)
			}
			if want := identity.ByCaller("ann", h.roles["boss"]).String(); task.Caller != want {
				t.Errorf("the task is of %s, want %s", task.Caller, want)
			}
			soon(t, "the client goes on", done)
		})
	}
}

func TestATaskStaysWhenTheServerCloses(t *testing.T) {
	thinking := make(chan struct{}, 1)
	h := plan{brain: func(ctx context.Context, _ model.Request) model.Answer {
		thinking <- struct{}{}
		<-ctx.Done()
		return model.Answer{}
	}}.open(t)
	session := h.connect(t, "ann@boss", "/mcp", "", nil)
	answered := make(chan *sdk.CallToolResult, 1)
	go func() {
		got, _ := session.CallTool(t.Context(), ask("think"))
		answered <- got
	}()
	soon(t, "the root thinks", thinking)
	if err := h.mcp.Close(); err != nil {
		t.Fatal(err)
	}
	got := <-answered
	if got == nil || !got.IsError || !strings.Contains(said(got), "goes on when it is resumed") {
		t.Errorf("%+v", got)
	}
	if task := h.rt.Org().Tasks()[0]; task.Status != org.Running {
		t.Errorf("the task is %s", task.Status)
	}
}
