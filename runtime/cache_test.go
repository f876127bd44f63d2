package runtime_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/anthropic"
	"github.com/rolecall/rolecall/model/bedrock"
	"github.com/rolecall/rolecall/model/chat"
	"github.com/rolecall/rolecall/model/gemini"
	"github.com/rolecall/rolecall/model/openai"
	"github.com/rolecall/rolecall/model/openai/responses"
	"github.com/rolecall/rolecall/model/provider"
	"github.com/rolecall/rolecall/model/providertest"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// encodedRequest is a request as a provider is sent it, without cache marks.
type encodedRequest struct{ system, tools, messages string }

// text returns the request in the order in which models read it.
func (e encodedRequest) text() string { return e.system + e.tools + e.messages }

// cacheMark is where Anthropic caches a request. It is not part of what is cached.
const cacheMark = `,"cache_control":{"type":"ephemeral"}`

// encodings encodes a request as each provider does.
var encodings = map[string]func(t *testing.T, r model.Request) encodedRequest{
	"openai": func(t *testing.T, r model.Request) encodedRequest {
		doc := sentBody(t, openai.New, r)
		list := doc.Get("messages").Array()
		messages := doc.Get("messages").Raw
		if list[0].Get("role").Str == "system" {
			messages = "[" + strings.TrimPrefix(messages[len("[")+len(list[0].Raw):], ",")
		}
		return encodedRequest{list[0].Raw, doc.Get("tools").Raw, messages}
	},
	"anthropic": func(t *testing.T, r model.Request) encodedRequest {
		doc := sentBody(t, anthropic.New, r)
		return encodedRequest{doc.Get("system").Raw, doc.Get("tools").Raw, doc.Get("messages").Raw}
	},
	"gemini": func(t *testing.T, r model.Request) encodedRequest {
		doc := sentBody(t, gemini.New, r)
		return encodedRequest{doc.Get("systemInstruction").Raw, doc.Get("tools").Raw, doc.Get("contents").Raw}
	},
	"openai-responses": func(t *testing.T, r model.Request) encodedRequest {
		doc := sentBody(t, responses.New, r)
		return encodedRequest{doc.Get("instructions").Raw, doc.Get("tools").Raw, doc.Get("input").Raw}
	},
	"bedrock": func(t *testing.T, r model.Request) encodedRequest {
		doc := sentBody(t, bedrock.New, r)
		return encodedRequest{doc.Get("system").Raw, doc.Get("toolConfig").Raw, doc.Get("messages").Raw}
	},
}

// sentBody returns the document that a client sends for a request.
func sentBody(t *testing.T, client func(provider.Config) *provider.Model, r model.Request) gjson.Result {
	t.Helper()
	var sent string
	m := client(provider.Config{Model: "m", Key: "test-key", Client: providertest.Client(func(_, body string) string {
		sent = body
		return `{}`
	})})
	for _, err := range m.Generate(t.Context(), r) {
		if err != nil {
			break // the answer is of no interest
		}
	}
	if sent == "" {
		t.Fatal("no request was sent")
	}
	return gjson.Parse(strings.ReplaceAll(sent, cacheMark, ""))
}

// commonPrefix returns how many bytes two texts begin with in common.
func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Of the first request of a second task, at least 95 % is the beginning of that of the first
// task, for root and for the worker that it hires.
func TestCache_SecondTaskBeginsAsTheFirst(t *testing.T) {
	first := map[string][]model.Request{}
	var asked modelRequests
	fx := fixtureConfig{model: withWindow(100_000, asked.model(func(_ context.Context, r model.Request, _ int) (model.Answer, error) {
		if answerCount(r) == 0 {
			first[r.Self.Role] = append(first[r.Self.Role], r)
		}
		switch {
		case r.Self.Role == "worker":
			return endWith("done " + string(r.Self.ID)), nil
		case answerCount(r) == 0:
			return callTools("create_role", obj{"name": "extra " + string(r.Self.Task), "rolePrompt": "p", "toolGroups": []string{"console"}},
				"spawn_agent_with_task", obj{"roleId": "worker", "taskBrief": taskBrief(), "initialMessage": "go"}), nil
		case len(messages(r)) == 1:
			return waitForMessage(), nil
		}
		return endWith("done"), nil
	}))}.open(t)
	fx.declare(t, org.RoleSpec{Name: "worker", Prompt: "You work.", Use: groupSet("workspace", "org_management")})
	for _, text := range []string{"count the lines", "write a report"} {
		fx.wantResult(t, fx.run(t, org.TaskSpec{Text: text}), `"done"`, "")
	}
	for provider, encode := range encodings {
		for role, list := range first {
			if len(list) != 2 {
				t.Fatalf("%s has %d first requests", role, len(list))
			}
			one, two := encode(t, list[0]), encode(t, list[1])
			if share := float64(commonPrefix(one.text(), two.text())) / float64(len(two.text())); share < 0.95 {
				t.Errorf("%s, %s: %.3f of the second request is cached\n%s\n%s", provider, role, share, one.text(), two.text())
			}
			if one.system != two.system || one.tools != two.tools {
				t.Errorf("%s, %s: the system prompt or the tools differ:\n%s\n%s", provider, role, one.system, two.system)
			}
		}
	}
}

// No request of a conversation changes what the one before said: it begins as that one, up
// to the note.
func TestCache_RequestsOfAConversationOnlyGrow(t *testing.T) {
	look := newTool(t, "look", tool.Options{Effect: tool.ReadOnly}, func(_ context.Context, in obj) (any, error) { return in, nil })
	repeating := func(r model.Request, n int) model.Answer {
		if n < 5 {
			a := callTools("look", obj{"n": 1})
			a.Usage.Input = 20_000 * n // the context gets full
			return a
		}
		return endWith("done")
	}
	planning := func(_ model.Request, n int) model.Answer {
		return []model.Answer{endWith("I will look."), planAnswer("look", "look"), callTools("look", obj{"n": 1}), endWith("no"), planAnswer("look"), callTools("look", obj{"n": 2}), endWith("done")}[min(n, 6)]
	}
	for name, c := range map[string]struct {
		spec   org.RoleSpec
		answer func(r model.Request, n int) model.Answer
	}{
		"repetition and a full context": {org.RoleSpec{Use: groupSet("probe", "context")}, repeating},
		"plan":                          {org.RoleSpec{Use: groupSet("probe", "org_management"), Pattern: org.Plan}, planning},
	} {
		t.Run(name, func(t *testing.T) {
			var asked modelRequests
			fx := fixtureConfig{tools: []tool.Tool{look}, model: withWindow(100_000, asked.model(func(_ context.Context, r model.Request, n int) (model.Answer, error) {
				return c.answer(r, n), nil
			}))}.open(t)
			fx.wantResult(t, fx.run(t, fx.roleTask(t, c.spec)), `"done"`, "")
			list := asked.all()
			if !slices.ContainsFunc(list, func(r model.Request) bool { return r.Note != "" }) {
				t.Fatal("no request has a note")
			}
			for provider, encode := range encodings {
				for i := range list[1:] {
					if problem := grown(encode(t, list[i]), encode(t, list[i+1]), list[i].Note); problem != "" {
						t.Errorf("%s, request %d: %s", provider, i+1, problem)
					}
				}
			}
		})
	}
}

// grown returns how a request changes what the one before said, or "".
func grown(before, after encodedRequest, note string) string {
	const framing = 80 // the ends of the last message, and "Go on." where the model spoke last
	if before.system != after.system || before.tools != after.tools {
		return fmt.Sprintf("the system prompt or the tools changed:\n%s\n%s\n%s\n%s", before.system, after.system, before.tools, after.tools)
	}
	rest := before.messages[commonPrefix(before.messages, after.messages):]
	if len(rest) > len(chat.AppendString(nil, note))+framing {
		return "the next request changes\n" + rest
	}
	return ""
}

// An agent that is hired twice for different work reads the same up to its assignment.
func TestCache_AssignmentComesAfterTheTools(t *testing.T) {
	read := make(chan model.Request, 2)
	fx := fixtureConfig{model: withWindow(100_000, modelFunc(func(ctx context.Context, r model.Request) (model.Answer, error) {
		if r.Self.Role == "root" {
			<-ctx.Done()
			return model.Answer{}, ctx.Err()
		}
		read <- r
		return waitForMessage(), nil
	}))}.open(t)
	role := fx.declare(t, org.RoleSpec{Name: "worker", Use: groupSet("org_management")})
	root := fx.topAgent(t, fx.start(t, org.TaskSpec{}))
	var requests [2]model.Request
	for i, objective := range []string{"count", "write"} {
		brief := org.TaskBrief{Objective: objective, Constraints: org.TextLines{}, Inputs: "i", Outputs: "o", CompletionCriteria: "c"}
		if _, err := fx.SpawnAgent(t.Context(), newCall(identity.ByAgent(root)), org.SpawnSpec{Role: role.ID, Brief: brief}, []byte(`"go"`)); err != nil {
			t.Fatal(err)
		}
		requests[i] = <-read
	}
	one, two := requests[0], requests[1]
	if one.System != two.System || string(one.ToolJSON) != string(two.ToolJSON) || one.Opening == two.Opening {
		t.Errorf("the system prompts are\n%s\n%s\nand the openings\n%s\n%s", one.System, two.System, one.Opening, two.Opening)
	}
	if strings.Contains(one.System, "count") || !strings.Contains(one.Opening, "Objective: count\n") || !strings.Contains(one.Opening, `You are "worker-1"`) || strings.Contains(one.System, "worker-1") {
		t.Errorf("the opening is\n%s", one.Opening)
	}
}
