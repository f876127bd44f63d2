package mcpserver

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// prompts lists what a caller is offered now, of the group it came to. As with
// tools, there are no others for it.
func (s *Server) prompts(d *clientScope) []*toolgroups.Prompt {
	return s.rt.Gate().Subject(d.by).Prompts(d.endpoint.toolset)
}

// declaring says of a server that there are prompts, where there are any for
// who asks. Nobody is told when they change.
func (s *Server) declaring(d *clientScope, next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		if err != nil {
			return result, err
		}
		var offers *sdk.ServerCapabilities
		switch result := result.(type) {
		case *sdk.InitializeResult:
			offers = result.Capabilities
		case *sdk.DiscoverResult:
			offers = result.Capabilities
		}
		if offers != nil && len(s.prompts(d)) > 0 {
			offers.Prompts = &sdk.PromptCapabilities{}
		}
		return result, nil
	}
}

func (s *Server) listPrompts(d *clientScope, req *sdk.ListPromptsRequest) (sdk.Result, error) {
	if req.Params != nil && req.Params.Cursor != "" {
		return nil, protocolError(jsonrpc.CodeInvalidParams, "the list has one page, and no cursor leads to another")
	}
	result := &sdk.ListPromptsResult{Prompts: []*sdk.Prompt{}, Cacheable: private}
	for _, p := range s.prompts(d) {
		result.Prompts = append(result.Prompts, &sdk.Prompt{Name: p.Name, Description: p.Description, Arguments: argumentsOf(p)})
	}
	return result, nil
}

// argumentsOf words what a prompt takes, as far as the protocol has words for
// it.
func argumentsOf(p *toolgroups.Prompt) (list []*sdk.PromptArgument) {
	if json.Unmarshal(p.Arguments.Manifest(), &list) != nil { // it is always such a list
		return nil
	}
	return list
}

// getPrompt gives the messages of a prompt. The arguments are texts, as the
// protocol has them, and become nothing but text again.
func (s *Server) getPrompt(d *clientScope, req *sdk.GetPromptRequest) (sdk.Result, error) {
	name := req.Params.Name
	list := s.prompts(d)
	i := slices.IndexFunc(list, func(p *toolgroups.Prompt) bool { return p.Name == name })
	if i < 0 {
		return nil, unknownPrompt(name)
	}
	messages, err := list[i].Messages(list[i].Arguments.Texts(req.Params.Arguments))
	if err != nil {
		return nil, protocolError(jsonrpc.CodeInvalidParams, errcode.Message(err))
	}
	result := &sdk.GetPromptResult{Description: list[i].Description, Messages: []*sdk.PromptMessage{}}
	for _, m := range messages {
		result.Messages = append(result.Messages, &sdk.PromptMessage{Role: sdk.Role(m.Role), Content: &sdk.TextContent{Text: m.Text}})
	}
	if req.ProtocolVersion() >= stateless {
		return complete{result}, nil
	}
	return result, nil
}

// complete is a prompt of a version without sessions, where results say that
// there is no more to ask of the client.
type complete struct{ *sdk.GetPromptResult }

// MarshalJSON implements json.Marshaler.
func (c complete) MarshalJSON() ([]byte, error) {
	text, err := json.Marshal(c.GetPromptResult)
	if err != nil {
		return nil, err
	}
	return append([]byte(`{"resultType":"complete",`), text[1:]...), nil // there are always messages
}

// unknownPrompt is the one answer to who asks for what is not its own, whether
// it is somebody's or nobody's.
func unknownPrompt(name string) *jsonrpc.Error {
	if len(name) > tool.MaxName {
		name = name[:tool.MaxName] + "…"
	}
	return protocolError(jsonrpc.CodeInvalidParams, "Unknown prompt: "+name)
}
