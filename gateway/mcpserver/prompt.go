package mcpserver

import (
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// prompts returns the prompts offered to the caller now, narrowed to the
// endpoint's group.
func (s *Server) prompts(sc *clientScope) []toolgroups.Prompt {
	return s.rt.Gate().Subject(sc.caller).ListPrompts(sc.endpoint.toolset)
}

// listPrompts answers prompts/list.
func (s *Server) listPrompts(sc *clientScope, req *sdk.ListPromptsRequest) (sdk.Result, error) {
	if req.Params != nil && req.Params.Cursor != "" {
		return nil, newRPCError(jsonrpc.CodeInvalidParams, "invalid cursor: the list has a single page")
	}
	result := &sdk.ListPromptsResult{Prompts: []*sdk.Prompt{}, Cacheable: private}
	for _, p := range s.prompts(sc) {
		result.Prompts = append(result.Prompts, &sdk.Prompt{Name: p.Name(), Description: p.Description(), Arguments: promptArguments(p)})
	}
	return result, nil
}

// promptArguments converts the arguments of a prompt to the protocol's type.
func promptArguments(p toolgroups.Prompt) []*sdk.PromptArgument {
	list := []*sdk.PromptArgument{}
	for _, a := range p.Arguments() {
		list = append(list, &sdk.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
	}
	return list
}

// getPrompt answers prompts/get. Arguments are strings and are inserted as
// text; they are never parsed as templates.
func (s *Server) getPrompt(sc *clientScope, req *sdk.GetPromptRequest) (sdk.Result, error) {
	name := req.Params.Name
	list := s.prompts(sc)
	i := slices.IndexFunc(list, func(p toolgroups.Prompt) bool { return p.Name() == name })
	if i < 0 {
		return nil, unknownPrompt(name)
	}
	messages, err := list[i].Messages(req.Params.Arguments)
	if err != nil {
		return nil, newRPCError(jsonrpc.CodeInvalidParams, errcode.Message(err))
	}
	result := &sdk.GetPromptResult{Description: list[i].Description(), Messages: []*sdk.PromptMessage{}}
	for _, m := range messages {
		result.Messages = append(result.Messages, &sdk.PromptMessage{Role: sdk.Role(m.Role), Content: &sdk.TextContent{Text: m.Text}})
	}
	return completed(result, req.ProtocolVersion()), nil
}

// unknownPrompt returns the error for a prompt that the caller is not offered.
// It is the same whether or not the prompt exists.
func unknownPrompt(name string) *jsonrpc.Error {
	return newRPCError(jsonrpc.CodeInvalidParams, "Unknown prompt: "+textutil.Truncate(name, tool.MaxName))
}
