package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"

	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolbox/prompt"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// addAskTools adds the tools of the conformance suite that ask their client.
func addAskTools(s *suite) {
	name := askPerson("user_name", "What is your name?", `{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}`)
	confirm := askPerson("confirm", "Please confirm", `{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}`)
	greeting := askModel("greeting", "Generate a greeting", 50)
	roots := tool.InputRequest{Name: "client_roots"}

	addAsking(s, "test_sampling", tool.ReadOnly, func(ctx context.Context, in struct {
		Prompt string `json:"prompt"`
	}) (string, error) {
		return requestInput(ctx, askModel("prompt", in.Prompt, 100))
	})
	addAsking(s, "test_elicitation", tool.ReadOnly, func(ctx context.Context, in struct {
		Message string `json:"message"`
	}) (string, error) {
		return requestInput(ctx, askPerson("user", in.Message, schemaUser))
	})
	addAsking(s, "test_elicitation_sep1034_defaults", tool.ReadOnly, asks(askPerson("defaults", "Please review", schemaSEP1034)))
	addAsking(s, "test_elicitation_sep1330_enums", tool.ReadOnly, asks(askPerson("enums", "Please choose", schemaSEP1330)))
	addAsking(s, "test_missing_capability", tool.ReadOnly, asks(askModel("needed", "anything", 10)))
	addAsking(s, "test_input_required_result_elicitation", tool.ReadOnly, asks(name))
	addAsking(s, "test_input_required_result_sampling", tool.ReadOnly, asks(askModel("capital_question", "What is the capital of France?", 100)))
	addAsking(s, "test_input_required_result_list_roots", tool.ReadOnly, asks(roots))
	addAsking(s, "test_input_required_result_request_state", tool.Mutating, asks(confirm))
	addAsking(s, "test_input_required_result_tampered_state", tool.Mutating, asks(confirm))
	addAsking(s, "test_input_required_result_multiple_inputs", tool.Mutating, asks(name, greeting, roots))
	addAsking(s, "test_input_required_result_multi_round", tool.Mutating, askTwice)
	addAsking(s, "test_input_required_result_capabilities", tool.Mutating, askSupported(name, greeting, roots))
}

// addAsking adds a tool that asks before it acts, or sets s.err.
func addAsking[In any](s *suite, name string, effect tool.Effect, fn func(context.Context, In) (string, error)) {
	made, err := tool.New(name, "A tool of the conformance suite.", fn, &tool.Options{Effect: effect, Asks: tool.AsksFirst})
	s.tools, s.err = append(s.tools, made), cmp.Or(s.err, err)
}

// askPrompt returns the prompt of the suite whose argument is asked for.
func askPrompt() (toolgroups.Prompt, error) {
	set, problems := parameter.CompileSet(parameter.Options{}, []parameter.Spec{{Name: "context", Type: "string", Description: "What context should the prompt use?"}}, nil)
	if problems != nil {
		return nil, fmt.Errorf("make the prompt: %v", problems)
	}
	const name, text = "test_input_required_result_prompt", "{{.context}}"
	return prompt.NewTemplate(name, "A prompt of the conformance suite.", text, set, []toolgroups.PromptMessage{{Role: "user", Text: text}})
}

func askPerson(name, message, schema string) tool.InputRequest {
	return tool.InputRequest{Name: name, Question: &tool.Question{Message: message, Schema: json.RawMessage(schema)}}
}

func askModel(name, text string, tokens int) tool.InputRequest {
	return tool.InputRequest{Name: name, Model: &tool.ModelRequest{Messages: []tool.ModelMessage{{Role: "user", Text: text}}, MaxTokens: tokens}}
}

// asks returns a function that asks for several things at once.
func asks(list ...tool.InputRequest) func(context.Context, noArgs) (string, error) {
	return func(ctx context.Context, _ noArgs) (string, error) { return requestInput(ctx, list...) }
}

// askSupported returns a function that asks for what its client has declared.
func askSupported(all ...tool.InputRequest) func(context.Context, noArgs) (string, error) {
	return func(ctx context.Context, _ noArgs) (string, error) {
		var list []tool.InputRequest
		for _, r := range all {
			if tool.SupportsInput(ctx, r.Kind()) {
				list = append(list, r)
			}
		}
		return requestInput(ctx, list...)
	}
}

// requestInput asks, and returns what the client answered. The suite looks for state-ok.
func requestInput(ctx context.Context, list ...tool.InputRequest) (string, error) {
	all, err := tool.RequestInput(ctx, nil, list...)
	if err != nil {
		return "", err
	}
	text, err := json.Marshal(all)
	return "state-ok " + string(text), err
}

// askTwice asks a second question when the first is answered.
func askTwice(ctx context.Context, _ noArgs) (string, error) {
	var all []tool.Answer
	for _, field := range []string{"name", "color"} {
		schema := `{"type":"object","properties":{"` + field + `":{"type":"string"}},"required":["` + field + `"]}`
		a, err := tool.Ask(ctx, tool.Question{Message: "What is your " + field + "?", Schema: json.RawMessage(schema)})
		if err != nil {
			return "", err
		}
		all = append(all, a)
	}
	return fmt.Sprintf("%s %s", all[0].Content, all[1].Content), nil
}

// The schemas of three scenarios: texts, defaults of all types, and all forms of choices.
const (
	schemaUser    = `{"type":"object","properties":{"username":{"type":"string","description":"User's response"},"email":{"type":"string","description":"User's email address"}},"required":["username","email"]}`
	schemaSEP1034 = `{"type":"object","properties":{
		"name": {"type":"string","default":"John Doe"}, "age": {"type":"integer","default":30}, "score": {"type":"number","default":95.5},
		"status": {"type":"string","enum":["active","inactive","pending"],"default":"active"}, "verified": {"type":"boolean","default":true}}}`
	schemaSEP1330 = `{"type":"object","properties":{
		"untitledSingle": {"type":"string","enum":["option1","option2","option3"]},
		"titledSingle": {"type":"string","oneOf":[{"const":"value1","title":"First Option"},{"const":"value2","title":"Second Option"},{"const":"value3","title":"Third Option"}]},
		"legacyEnum": {"type":"string","enum":["opt1","opt2","opt3"],"enumNames":["Option One","Option Two","Option Three"]},
		"untitledMulti": {"type":"array","items":{"type":"string","enum":["option1","option2","option3"]}},
		"titledMulti": {"type":"array","items":{"anyOf":[{"const":"value1","title":"First Choice"},{"const":"value2","title":"Second Choice"},{"const":"value3","title":"Third Choice"}]}}}}`
)
