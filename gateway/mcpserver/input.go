//lint:file-ignore SA1019 the SDK marks sampling and roots as deprecated; clients have them

package mcpserver

import (
	"encoding/json"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// This file and the other input files let tools ask the client of a call (tool.Ask). A client with a
// session is sent requests during the call (input_session.go). A call of a client without a session
// ends with the questions, and the client repeats it with the answers (input_rounds.go). Both kinds
// of clients are asked only for what they have declared.

// abilities are the kinds of input that a client has declared. The zero abilities mean no
// abilities.
type abilities struct {
	form     bool // elicitation with a form
	url      bool // elicitation with a URL
	sampling bool
	roots    bool
}

// abilitiesOf returns what the capabilities of a client declare.
func abilitiesOf(c *sdk.ClientCapabilities) abilities {
	if c == nil {
		return abilities{}
	}
	a := abilities{sampling: c.Sampling != nil, roots: c.RootsV2 != nil || c.Roots.ListChanged}
	if e := c.Elicitation; e != nil {
		a.url = e.URL != nil
		a.form = e.Form != nil || !a.url
	}
	return a
}

// capabilities returns capabilities that declare the same, and nothing else; nil if that is nothing.
func (a abilities) capabilities() *sdk.ClientCapabilities {
	if !a.any() {
		return nil
	}
	c := new(sdk.ClientCapabilities)
	if a.form || a.url {
		c.Elicitation = new(sdk.ElicitationCapabilities)
	}
	if a.form {
		c.Elicitation.Form = new(sdk.FormElicitationCapabilities)
	}
	if a.url {
		c.Elicitation.URL = new(sdk.URLElicitationCapabilities)
	}
	if a.sampling {
		c.Sampling = new(sdk.SamplingCapabilities)
	}
	if a.roots {
		c.RootsV2 = new(sdk.RootCapabilities)
	}
	return c
}

// any reports whether the client has declared anything that tools may ask for.
func (a abilities) any() bool { return a.form || a.url || a.sampling || a.roots }

// supports reports whether requests of a kind can be sent.
func (a abilities) supports(kind tool.InputKind) bool {
	switch kind {
	case tool.PersonInput:
		return a.form || a.url
	case tool.ModelInput:
		return a.sampling
	case tool.RootsInput:
		return a.roots
	}
	return false
}

// allows reports whether one request can be sent.
func (a abilities) allows(r tool.InputRequest) bool {
	if r.Question == nil {
		return a.supports(r.Kind())
	}
	return a.url && r.Question.URL != "" || a.form && r.Question.URL == ""
}

// lacking returns the capabilities of the requests that a client has not declared, as the protocol
// names them, or nil.
func (a abilities) lacking(requests []tool.InputRequest) *sdk.ClientCapabilities {
	var c sdk.ClientCapabilities
	found := false
	for _, r := range requests {
		if a.allows(r) {
			continue
		}
		found = true
		switch {
		case r.Question != nil && r.Question.URL != "":
			c.Elicitation = &sdk.ElicitationCapabilities{URL: &sdk.URLElicitationCapabilities{}}
		case r.Question != nil:
			c.Elicitation = &sdk.ElicitationCapabilities{Form: &sdk.FormElicitationCapabilities{}}
		case r.Model != nil:
			c.Sampling = &sdk.SamplingCapabilities{}
		default:
			c.RootsV2 = &sdk.RootCapabilities{}
		}
	}
	if !found {
		return nil
	}
	return &c
}

// lackingError is the error that a tool gets if its client has not declared what it asks for.
func lackingError(call tool.Call) error {
	return errcode.New(errcode.InputUnavailable, "%s asks for input that this client has not declared as a capability", call.Name)
}

// missingCapability returns the JSON-RPC error for a call that needs undeclared capabilities.
func missingCapability(name string, need *sdk.ClientCapabilities) *jsonrpc.Error {
	e := newRPCError(sdk.CodeMissingRequiredClientCapabilities, "the tool "+textutil.Truncate(name, tool.MaxName)+" asks for input that the client has not declared as a capability")
	e.Data = marshal(sdk.MissingRequiredClientCapabilityData{RequiredCapabilities: need})
	return e
}

// elicitParams returns the parameters of elicitation/create. The message says who asks.
func elicitParams(toolName string, q *tool.Question, id string) *sdk.ElicitParams {
	p := &sdk.ElicitParams{Mode: "form", Message: q.Attributed(toolName)}
	if q.URL != "" {
		p.Mode, p.URL, p.ElicitationID = "url", q.URL, id
		return p
	}
	p.RequestedSchema = q.AnswerSchema()
	return p
}

// samplingParams returns the parameters of sampling/createMessage.
func samplingParams(m *tool.ModelRequest) *sdk.CreateMessageParams {
	p := &sdk.CreateMessageParams{SystemPrompt: m.System, MaxTokens: int64(m.MaxTokens)}
	for _, message := range m.Messages {
		p.Messages = append(p.Messages, &sdk.SamplingMessage{Role: sdk.Role(message.Role), Content: &sdk.TextContent{Text: message.Text}})
	}
	return p
}

// errWrongResponse is the error for a response of another kind than its request.
func errWrongResponse(name string) error {
	return errcode.New(errcode.InvalidArguments, "the response to %.80s is not what was asked for", name).With("field", name)
}

// answerOf converts the answer of a person.
func answerOf(r *sdk.ElicitResult) (tool.InputResponse, error) {
	a := &tool.Answer{Action: tool.Action(r.Action)}
	if r.Content != nil {
		content, err := json.Marshal(r.Content)
		if err != nil {
			return tool.InputResponse{}, err
		}
		a.Content = content
	}
	return tool.InputResponse{Answer: a}, nil
}

// rootsOf converts the roots of a client.
func rootsOf(list []*sdk.Root) tool.InputResponse {
	roots := []tool.Root{}
	for _, r := range list {
		if r != nil {
			roots = append(roots, tool.Root{URI: r.URI, Name: r.Name})
		}
	}
	return tool.InputResponse{Roots: roots}
}

// replyOf converts the answer of a model. Only texts are accepted.
func replyOf(name string, content []sdk.Content, model, stop string) (tool.InputResponse, error) {
	reply := &tool.ModelReply{Model: textutil.Truncate(model, 200), StopReason: textutil.Truncate(stop, 40)}
	for _, c := range content {
		text, ok := c.(*sdk.TextContent)
		if !ok {
			return tool.InputResponse{}, errWrongResponse(name)
		}
		reply.Text += text.Text
	}
	return tool.InputResponse{Reply: reply}, nil
}

// mayAsk reports whether the caller may call a tool, and the tool may ask.
func (s *Server) mayAsk(sc *clientScope, name string) bool {
	h, ok := s.rt.GroupManager().CurrentSnapshot().LookupTool(name)
	return ok && h.Definition.Asks != tool.AsksNothing && s.rt.Gate().Subject(sc.caller).AuthorizeTool(name).Allowed()
}

// mayAskClient reports whether a call of a session may ask its client.
func (s *Server) mayAskClient(sc *clientScope, session *session, name string) bool {
	a := abilitiesOfSession(session.sdk)
	switch {
	case session.jsonOnly:
		return false
	case name == AskName: // tools of tasks ask people only
		return (a.form || a.url) && s.mayAskOrganization(sc)
	}
	return a.any() && s.mayAsk(sc, name)
}
