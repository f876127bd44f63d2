package mcpserver_test

import (
	"context"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

type teamModel = func(context.Context, model.Request) model.Answer

// greetingTeam is a root agent that passes on what its worker reports: the answer to the question of greet.
func greetingTeam(_ context.Context, r model.Request) model.Answer {
	got := toolResults(r)
	switch {
	case r.Self.Parent != "" && len(got) == 0:
		return toolCallAnswer("greet", obj{"text": ""})
	case r.Self.Parent != "":
		return model.Answer{Finish: model.FinishEnd, Text: got[0]}
	case len(got) == 0:
		return toolCallAnswer("create_role", obj{"name": "greeter", "rolePrompt": "p", "toolGroups": []string{"ask"}})
	case len(got) == 1:
		brief := obj{"objective": "o", "constraints": []string{}, "inputs": "i", "outputs": "o", "completion_criteria": "c"}
		return toolCallAnswer("spawn_agent_with_task", obj{"roleId": "greeter", "taskBrief": brief, "initialMessage": "go"})
	}
	for _, item := range r.Items {
		if item.Message != nil && item.Message.FromRole == "greeter" {
			return model.Answer{Finish: model.FinishEnd, Value: item.Message.Payload}
		}
	}
	return model.Answer{Finish: model.FinishWait}
}

// greetingTeamThatWaits is greetingTeam whose worker reports once goOn is closed.
func greetingTeamThatWaits(goOn <-chan struct{}) teamModel {
	return func(ctx context.Context, r model.Request) model.Answer {
		if r.Self.Parent != "" && len(toolResults(r)) > 0 {
			select {
			case <-goOn:
			case <-ctx.Done():
			}
		}
		return greetingTeam(ctx, r)
	}
}

// openGreetingTeam serves the role boss, whose tasks ask for a name.
func openGreetingTeam(t *testing.T, m teamModel) *fixture {
	t.Helper()
	f := fixtureConfig{model: m}.open(t)
	f.register(t, toolgroups.Group{ID: "ask", Tools: new(askTools).tools(t)})
	f.role(t, "host", "org_management", "ask")
	return f
}

// answered waits until a question has ended on record, and returns its end.
func (f *fixture) answered(t *testing.T) journal.QuestionAnswered {
	t.Helper()
	for e, err := range f.rt.JournalStore().FollowEvents(t.Context(), 0, journal.WaitForMore) {
		if err != nil {
			t.Fatal(err)
		}
		if b, ok := e.Body.(journal.QuestionAnswered); ok {
			return b
		}
	}
	return journal.QuestionAnswered{}
}

// beginAsk calls ask_organization with a key. The channel has the text of its result, or its error.
func beginAsk(ctx context.Context, session *sdk.ClientSession) <-chan string {
	done := make(chan string, 1)
	go func() {
		got, err := session.CallTool(ctx, &sdk.CallToolParams{Name: mcpserver.AskName, Arguments: obj{"task": "greet", "idempotencyKey": "k"}})
		if err != nil {
			done <- err.Error()
			return
		}
		done <- textOf(got)
	}()
	return done
}

// The client that waits for a task answers what a tool of the task asks, in the name of its caller.
func TestAskOrganization_RelaysQuestions(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25"} {
		f, message := openGreetingTeam(t, greetingTeam), ""
		session := f.connect(t, "ann@host", "/mcp", version, person(func(_ context.Context, p *sdk.ElicitParams) (*sdk.ElicitResult, error) {
			message = p.Message
			return &sdk.ElicitResult{Action: "accept", Content: obj{"name": "Ann"}}, nil
		}))
		if got := <-beginAsk(t.Context(), session); !strings.Contains(got, "accept") || !strings.Contains(got, "Ann") {
			t.Errorf("%s: %s", version, got)
		}
		if got := f.answered(t); !strings.HasPrefix(message, "greet asks: ") || got.By != identity.ByCaller("ann", f.roles["host"]).String() {
			t.Errorf("%s: asked %q, answered %+v", version, message, got)
		}
	}
}

// A question that is answered elsewhere is withdrawn from the client. One that the client cannot be asked stays
// open.
func TestAskOrganization_QuestionAnsweredElsewhere(t *testing.T) {
	asked, withdrawn := make(chan struct{}), make(chan struct{})
	f := openGreetingTeam(t, greetingTeamThatWaits(withdrawn)) // the end of the task would withdraw it, too
	waiting := beginAsk(t.Context(), f.connect(t, "ann@host", "/mcp", "2025-11-25", person(func(ctx context.Context, _ *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		close(asked)
		select {
		case <-ctx.Done():
			close(withdrawn)
		case <-t.Context().Done():
		}
		return nil, context.Canceled
	})))
	waitFor(t, "the client is asked", asked)
	silent := beginAsk(t.Context(), f.connect(t, "ann@host", "/mcp", "2025-11-25", nil))
	task := f.rt.Org().ListTasks()[0].ID
	open := f.rt.ListQuestions(task)
	if len(open) != 1 {
		t.Fatalf("%d open questions", len(open))
	}
	if err := f.rt.AnswerQuestion(operator, task, open[0].ID, tool.Answer{Action: tool.Accept, Content: raw(`{"name":"Eve"}`)}); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the question is withdrawn", withdrawn)
	for _, done := range []<-chan string{waiting, silent} {
		if got := <-done; !strings.Contains(got, "accept") || !strings.Contains(got, "Eve") {
			t.Errorf("got %s", got)
		}
	}
}

// A client that can be asked still cancels its task by cancelling the call, also one with a key.
func TestAskOrganization_CancelledWhileAsked(t *testing.T) {
	f := openGreetingTeam(t, greetingTeam)
	asked, late := make(chan struct{}), make(chan struct{})
	session := f.connect(t, "ann@host", "/mcp", "2025-11-25", person(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		close(asked)
		select {
		case <-late:
		case <-t.Context().Done():
		}
		return &sdk.ElicitResult{Action: "accept", Content: obj{"name": "Ann"}}, nil
	}))
	ctx, cancel := context.WithCancel(t.Context())
	done := beginAsk(ctx, session)
	waitFor(t, "the client is asked", asked)
	cancel()
	<-done
	limited, stop := context.WithTimeout(t.Context(), 20*time.Second)
	defer stop()
	if task, err := f.rt.WaitTask(limited, f.rt.Org().ListTasks()[0].ID); err != nil || task.Status != org.Cancelled {
		t.Fatalf("the task is %s, %v", task.Status, err)
	}
	if got := f.answered(t); got.Action != tool.Cancel || got.By != "" {
		t.Errorf("answered %+v", got)
	}
	close(late) // what the client says now has no effect
}

// An answer that does not fit is none: the question stays open for its caller.
func TestAskOrganization_AnswerThatDoesNotFit(t *testing.T) {
	f := openGreetingTeam(t, greetingTeam)
	asked := make(chan struct{}, 1)
	done := beginAsk(t.Context(), f.connect(t, "ann@host", "/mcp", "2025-11-25", person(func(context.Context, *sdk.ElicitParams) (*sdk.ElicitResult, error) {
		asked <- struct{}{}
		return &sdk.ElicitResult{Action: "accept", Content: obj{"name": strings.Repeat("x", 21)}}, nil
	})))
	waitFor(t, "the client is asked", asked)
	task := f.rt.Org().ListTasks()[0].ID
	if err := f.rt.AnswerQuestion(operator, task, f.rt.ListQuestions(task)[0].ID, tool.Answer{Action: tool.Decline}); err != nil {
		t.Fatal(err)
	}
	if got := <-done; !strings.Contains(got, "decline") {
		t.Errorf("got %s", got)
	}
}
