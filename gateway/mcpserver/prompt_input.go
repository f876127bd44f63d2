package mcpserver

import (
	"encoding/json"
	"maps"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// argumentsName is the name of the question for the arguments of a prompt.
const argumentsName = "arguments"

// promptInput completes the arguments of a prompt with what the client's user answers. It returns
// questions if required arguments are missing and the client, which has no session, can ask its user
// for them. A prompt changes nothing, so its questions need no state.
func (s *Server) promptInput(p toolgroups.Prompt, req *sdk.GetPromptRequest) (arguments map[string]string, questions *inputResult) {
	arguments = req.Params.Arguments
	q, missing := promptQuestion(p, arguments)
	if !missing || req.ProtocolVersion() < statelessVersion || !abilitiesOf(req.ClientCapabilities()).form || len(q.Fields()) == 0 {
		return arguments, nil
	}
	response, answered := req.Params.InputResponses[argumentsName].(*sdk.ElicitResult)
	if !answered {
		return arguments, &inputResult{requests: sdk.InputRequestMap{argumentsName: elicitParams("prompt "+p.Name(), &q, p.Name())}}
	}
	got, err := answerOf(response)
	if err != nil {
		return arguments, nil
	}
	checked, err := q.CheckAnswer(*got.Answer)
	var more map[string]string
	if err != nil || json.Unmarshal(checked.Content, &more) != nil {
		return arguments, nil // the prompt reports what is missing
	}
	arguments = maps.Clone(arguments)
	if arguments == nil {
		arguments = map[string]string{}
	}
	maps.Copy(arguments, more)
	return arguments, nil
}

// promptQuestion returns the question for the required arguments that are missing, and whether any
// is.
func promptQuestion(p toolgroups.Prompt, arguments map[string]string) (q tool.Question, missing bool) {
	type field struct {
		Type        string `json:"type"`
		Description string `json:"description,omitempty"`
	}
	schema := struct {
		Type       string           `json:"type"`
		Properties map[string]field `json:"properties"`
		Required   []string         `json:"required"`
	}{Type: "object", Properties: map[string]field{}}
	for _, a := range p.Arguments() {
		if _, given := arguments[a.Name]; a.Required && !given {
			schema.Properties[a.Name] = field{"string", a.Description}
			schema.Required = append(schema.Required, a.Name)
		}
	}
	return tool.Question{Name: argumentsName, Message: "Its arguments are missing.", Schema: marshal(schema)}, len(schema.Required) > 0
}
