package main

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// What both sides of the comparison say to each other.
const (
	rolePrompt = "You tell people the weather of their city."
	question   = "What is the weather in Vienna?"
	verdict    = "It is sunny in Vienna."
	toolName   = "forecast"
	toolText   = "Tell the weather of a city."
	toolArgs   = `{"city":"Vienna"}`
)

type place struct {
	City string `json:"city" jsonschema:"the city's name"`
}

func forecast(_ context.Context, in place) (string, error) { return "sunny in " + in.City, nil }

// chat is a message as chat models take it.
type chat struct {
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

type request struct {
	Model    string `json:"model"`
	Messages []chat `json:"messages"`
}

// complete is the scripted model of both sides: it makes the body of a request
// as a client of a chat model does, with the tools from ready bytes, and
// answers by what the conversation holds.
func complete(messages []chat, tools []byte) chat {
	body, err := json.Marshal(request{"scripted", messages})
	if err != nil {
		panic(err)
	}
	body = append(append(append(body[:len(body)-1], `,"tools":`...), tools...), '}')
	sink.Add(uint64(len(body)))
	if messages[len(messages)-1].Role == "tool" {
		return chat{Role: "assistant", Content: verdict}
	}
	return chat{Role: "assistant", Calls: []chatCall{{"1", toolName, toolArgs}}}
}

// bareLoop is the floor: a model, a tool, and nothing between them.
func bareLoop(ctx context.Context, tools []byte) (string, error) {
	messages := []chat{{Role: "system", Content: rolePrompt}, {Role: "user", Content: question}}
	for {
		answer := complete(messages, tools)
		if len(answer.Calls) == 0 {
			return answer.Content, nil
		}
		messages = append(messages, answer)
		for _, c := range answer.Calls {
			var in place
			if err := json.Unmarshal([]byte(c.Arguments), &in); err != nil {
				return "", err
			}
			result, err := forecast(ctx, in)
			if err != nil {
				return "", err
			}
			messages = append(messages, chat{Role: "tool", Content: result, Call: c.ID})
		}
	}
}

// scripted is complete as a model of rolecall's.
type scripted struct{}

// Generate implements model.Model.
func (scripted) Generate(_ context.Context, r model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		messages := append(make([]chat, 0, len(r.Items)+1), chat{Role: "system", Content: r.System})
		read := 0
		for _, item := range r.Items {
			switch {
			case item.Message != nil:
				read++
				messages = append(messages, chat{Role: "user", Content: string(item.Message.Payload)})
			case item.Answer != nil:
				messages = append(messages, ofAnswer(item.Answer))
			case item.Result != nil:
				messages = append(messages, chat{Role: "tool", Content: string(item.Result.Content), Call: string(item.Result.Call)})
			}
		}
		answer := complete(messages, r.ToolJSON)
		a := &model.Answer{Text: answer.Content, Finish: model.FinishEnd, MessagesRead: read}
		for _, c := range answer.Calls {
			a.Calls, a.Finish = append(a.Calls, model.Call{Provider: c.ID, Name: c.Name, Args: json.RawMessage(c.Arguments)}), model.FinishToolCalls
		}
		yield(model.Delta{Answer: a}, nil)
	}
}

func ofAnswer(a *model.Answer) chat {
	m := chat{Role: "assistant", Content: a.Text}
	for _, c := range a.Calls {
		m.Calls = append(m.Calls, chatCall{string(c.ID), c.Name, string(c.Args)})
	}
	return m
}

// house is a runtime with one tool and one role that may use it.
type house struct {
	*runtime.Runtime
	role  identity.RoleID
	tools []byte // as they are sent to a model
}

func newHouse(store journal.Store, brain model.Model) (*house, error) {
	h, err := openHouse(store, brain)
	if err != nil {
		return nil, err
	}
	use := toolgroups.Of("weather")
	role, err := h.CreateRole(context.Background(), tool.Call{By: operator}, org.RoleSpec{Name: "guide", Prompt: rolePrompt, Use: &use, Grant: &use})
	h.role = role.ID
	return h, err
}

// openHouse is newHouse without the role: a store that is opened again has it.
func openHouse(store journal.Store, brain model.Model) (*house, error) {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := runtime.New(runtime.Config{Store: store, Groups: groups, Model: func(string) (model.Model, error) { return brain, nil }})
	if err != nil {
		return nil, err
	}
	weather, err := tool.New(toolName, toolText, forecast, &tool.Options{Effect: tool.ReadOnly})
	if err != nil {
		return nil, err
	}
	if _, err := rt.RegisterGroup("bench", toolgroups.Group{ID: "weather", Tools: []tool.Tool{weather}}); err != nil {
		return nil, err
	}
	wire, err := tool.MarshalTools([]tool.Definition{weather.Definition()})
	return &house{Runtime: rt, tools: wire}, err
}

var operator = identity.ByOperator("bench")

// taskComparison holds a whole task, from Start to its recorded end, against a
// loop without anything.
func taskComparison() (comparison, error) {
	h, err := newHouse(memory.New(), scripted{})
	if err != nil {
		return comparison{}, err
	}
	return comparison{title: "task in memory: one tool call and a final text", candidates: []candidate{
		{"bare loop: model, tool, model", 3000, func(n int) {
			for range n {
				if text, err := bareLoop(context.Background(), h.tools); err != nil || text != verdict {
					panic(text)
				}
			}
		}},
		{"rolecall: from Start to the recorded end", 1024, func(n int) { tasks(n, 1) }},
		{"the same, 64 tasks at a time", 1024, func(n int) { tasks(n, 64) }},
	}}, nil
}

// tasks runs n tasks to their ends, some at a time, in a house of their own:
// journals grow.
func tasks(n, atATime int) {
	h := made(newHouse(memory.New(), scripted{}))
	defer h.Close()
	ids := make([]identity.TaskID, atATime)
	for range n / atATime {
		for i := range ids {
			ids[i] = made(h.StartTask(context.Background(), org.TaskSpec{Role: string(h.role), Text: question, Caller: operator}))
		}
		for _, id := range ids {
			if task := made(h.WaitTask(context.Background(), id)); string(task.Result) != `"`+verdict+`"` {
				panic(task.Error)
			}
		}
	}
}
