package main

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/grouptest"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// The conversation that rolecall and the floor have with the model.
const (
	rolePrompt = "You tell people the weather of their city."
	question   = "What is the weather in Vienna?"
	verdict    = "It is sunny in Vienna."
	toolName   = "forecast"
	toolText   = "Tell the weather of a city."
	toolArgs   = `{"city":"Vienna"}`
)

type weatherInput struct {
	City string `json:"city" jsonschema:"the city's name"`
}

func forecast(_ context.Context, in weatherInput) (string, error) { return "sunny in " + in.City, nil }

// chatMessage is a message in the format of chat models.
type chatMessage struct {
	Role    string     `json:"role"`
	Content string     `json:"content,omitempty"`
	Calls   []chatCall `json:"tool_calls,omitempty"`
	Call    string     `json:"tool_call_id,omitempty"`
}

type chatCall struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type chatRequest struct {
	Model    string        `json:"model"`
	Messages []chatMessage `json:"messages"`
}

// scriptedAnswer is the scripted model of both candidates. It builds the request body
// as a chat client does, with the tools from ready bytes, and answers by what the
// conversation contains.
func scriptedAnswer(messages []chatMessage, tools []byte) chatMessage {
	body, err := json.Marshal(chatRequest{"scripted", messages})
	if err != nil {
		panic(err)
	}
	body = append(append(append(body[:len(body)-1], `,"tools":`...), tools...), '}')
	sink.Add(uint64(len(body)))
	if messages[len(messages)-1].Role == "tool" {
		return chatMessage{Role: "assistant", Content: verdict}
	}
	return chatMessage{Role: "assistant", Calls: []chatCall{{"1", toolName, toolArgs}}}
}

// bareLoop is the floor: a model and a tool with nothing in between.
func bareLoop(ctx context.Context, tools []byte) (string, error) {
	messages := []chatMessage{{Role: "system", Content: rolePrompt}, {Role: "user", Content: question}}
	for {
		answer := scriptedAnswer(messages, tools)
		if len(answer.Calls) == 0 {
			return answer.Content, nil
		}
		messages = append(messages, answer)
		for _, c := range answer.Calls {
			var in weatherInput
			if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
				return "", err
			}
			result, err := forecast(ctx, in)
			if err != nil {
				return "", err
			}
			messages = append(messages, chatMessage{Role: "tool", Content: result, Call: c.ID})
		}
	}
}

// scriptedModel implements model.Model with scriptedAnswer.
type scriptedModel struct{}

// Generate implements model.Model.
func (scriptedModel) Generate(_ context.Context, r model.Request) iter.Seq2[model.AnswerDelta, error] {
	return func(yield func(model.AnswerDelta, error) bool) {
		messages := append(make([]chatMessage, 0, len(r.Items)+1), chatMessage{Role: "system", Content: r.System})
		read := 0
		for _, item := range r.Items {
			switch {
			case item.Message != nil:
				read++
				messages = append(messages, chatMessage{Role: "user", Content: string(item.Message.Payload)})
			case item.Answer != nil:
				messages = append(messages, chatAnswer(item.Answer))
			case item.Result != nil:
				messages = append(messages, chatMessage{Role: "tool", Content: string(item.Result.Content), Call: string(item.Result.Call)})
			}
		}
		answer := scriptedAnswer(messages, r.ToolJSON)
		a := &model.Answer{Text: answer.Content, Finish: model.FinishEnd, MessagesRead: read}
		for _, c := range answer.Calls {
			a.Calls, a.Finish = append(a.Calls, model.Call{Provider: c.ID, Name: c.Name, Args: json.RawMessage(c.Arguments)}), model.FinishToolCalls
		}
		yield(model.AnswerDelta{Answer: a}, nil)
	}
}

func chatAnswer(a *model.Answer) chatMessage {
	m := chatMessage{Role: "assistant", Content: a.Text}
	for _, c := range a.Calls {
		m.Calls = append(m.Calls, chatCall{string(c.ID), c.Name, string(c.Args)})
	}
	return m
}

// fixture is a runtime with one tool and one role that may use it.
type fixture struct {
	*runtime.Runtime
	role  identity.RoleID
	tools []byte // JSON as it is sent to a model
}

// unlimited are limits that no workload reaches: some make many agents, or send
// messages that stay unread.
var unlimited = runtime.Limits{TaskLimits: org.TaskLimits{Roles: manyThings, Agents: manyThings, Depth: manyThings}, Mail: manyThings, Turns: manyThings}

const manyThings = 1 << 40

// newFixture returns a runtime on an empty store.
func newFixture(store journal.Store, agentModel model.Model) (*fixture, error) {
	fx, err := openFixture(store, agentModel)
	if err != nil {
		return nil, err
	}
	use := toolgroups.SetOf("weather")
	role, err := fx.CreateRole(context.Background(), tool.Call{By: operator}, org.RoleSpec{Name: "guide", Prompt: rolePrompt, Use: &use, Grant: &use})
	fx.role = role.ID
	return fx, err
}

// openFixture is newFixture without creating the role, for a store that already has
// it.
func openFixture(store journal.Store, agentModel model.Model) (*fixture, error) {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{Store: store, Groups: groups, Limits: unlimited, Model: func(string) (model.Model, error) { return agentModel, nil }})
	if err != nil {
		return nil, err
	}
	weather, err := tool.New(toolName, toolText, forecast, &tool.Options{Effect: tool.ReadOnly})
	if err != nil {
		return nil, err
	}
	if _, err := grouptest.RegisterGroup(rt.GroupManager(), "bench", toolgroups.Group{ID: "weather", Tools: []tool.Tool{weather}}); err != nil {
		return nil, err
	}
	wire, err := tool.MarshalTools([]tool.Definition{weather.Definition()})
	return &fixture{Runtime: rt, tools: wire}, err
}

var operator = identity.ByOperator("bench")

// taskComparison compares a whole task, from StartTask to its recorded end, with a
// bare loop.
func taskComparison() (comparison, error) {
	fx, err := newFixture(memory.New(), scriptedModel{})
	if err != nil {
		return comparison{}, err
	}
	return comparison{title: "task in memory: one tool call and a final text", candidates: []candidate{
		{"bare loop: model, tool, model", 3000, func(n int) {
			for range n {
				if text, err := bareLoop(context.Background(), fx.tools); err != nil || text != verdict {
					panic(text)
				}
			}
		}},
		{"rolecall: from StartTask to the recorded end", 1024, func(n int) { runTasks(n, 1) }},
		{"the same, 64 tasks at a time", 1024, func(n int) { runTasks(n, 64) }},
	}}, nil
}

// runTasks runs n tasks to their ends, atATime concurrently, on a new fixture, because
// journals grow.
func runTasks(n, atATime int) {
	fx := must(newFixture(memory.New(), scriptedModel{}))
	defer fx.Close()
	ids := make([]identity.TaskID, atATime)
	for range n / atATime {
		for i := range ids {
			ids[i] = must(fx.StartTask(context.Background(), org.TaskSpec{Role: string(fx.role), Text: question, Caller: operator}))
		}
		for _, id := range ids {
			if task := must(fx.WaitTask(context.Background(), id)); string(task.Result) != `"`+verdict+`"` {
				panic(task.Error)
			}
		}
	}
}
