package mcpserver

import (
	"context"
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

// unknownPromptName is the name under which the gate denies a prompt that is not the caller's.
// It is no valid name of a tool.
const unknownPromptName = "prompts/get"

// listPrompts answers prompts/list with the declared prompts, and the prompts that tools of the
// caller get. Of prompts with one name, the first is listed.
func (s *Server) listPrompts(ctx context.Context, sc *clientScope, req *sdk.ListPromptsRequest) (sdk.Result, error) {
	cursor := ""
	if req.Params != nil {
		cursor = req.Params.Cursor
	}
	page, err := s.listCatalogs(ctx, sc, tool.ListPrompts, cursor, headerOf(req.Extra))
	if err != nil {
		return nil, err
	}
	result := &sdk.ListPromptsResult{Prompts: []*sdk.Prompt{}, NextCursor: page.Next, Cacheable: privateCache}
	declared := map[string]bool{}
	for _, p := range s.prompts(sc) {
		declared[p.Name()] = true
		if cursor == "" {
			result.Prompts = append(result.Prompts, &sdk.Prompt{Name: p.Name(), Description: p.Description(), Arguments: promptArguments(p)})
		}
	}
	for _, p := range page.Prompts {
		if !declared[p.Name] {
			result.Prompts = append(result.Prompts, sdkPrompt(p))
		}
	}
	return result, nil
}

// sdkPrompt converts a prompt to the SDK's type.
func sdkPrompt(p tool.Prompt) *sdk.Prompt {
	out := &sdk.Prompt{Name: p.Name, Title: p.Title, Description: p.Description}
	for _, a := range p.Arguments {
		out.Arguments = append(out.Arguments, &sdk.PromptArgument{Name: a.Name, Description: a.Description, Required: a.Required})
	}
	return out
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
func (s *Server) getPrompt(ctx context.Context, sc *clientScope, req *sdk.GetPromptRequest) (sdk.Result, error) {
	name := req.Params.Name
	list := s.prompts(sc)
	i := slices.IndexFunc(list, func(p toolgroups.Prompt) bool { return p.Name() == name })
	if i < 0 {
		return s.getPromptByTool(ctx, sc, req)
	}
	arguments, questions := s.promptInput(list[i], req)
	if questions != nil {
		return encodedResult{&sdk.GetPromptResult{}, questions.encode(s.info)}, nil
	}
	messages, err := list[i].Messages(arguments)
	if err != nil {
		return nil, newRPCError(jsonrpc.CodeInvalidParams, errcode.Message(err))
	}
	if err := s.rt.RecordPrompt(ctx, sc.caller, name, arguments); err != nil {
		return nil, newRPCError(jsonrpc.CodeInternalError, errcode.Message(err))
	}
	result := &sdk.GetPromptResult{Description: list[i].Description(), Messages: []*sdk.PromptMessage{}}
	for _, m := range messages {
		result.Messages = append(result.Messages, &sdk.PromptMessage{Role: sdk.Role(m.Role), Content: &sdk.TextContent{Text: m.Text}})
	}
	return completeResultOf(result, req.ProtocolVersion()), nil
}

// getPromptByTool answers prompts/get by a call of the tool that gets the prompt. If there is none,
// the gate denies the request, so that it is on record.
func (s *Server) getPromptByTool(ctx context.Context, sc *clientScope, req *sdk.GetPromptRequest) (sdk.Result, error) {
	name := req.Params.Name
	call := findCatalog(s.listableCatalogs(sc), tool.CatalogRequest{Kind: tool.GetPrompt, Name: name, Arguments: req.Params.Arguments})
	if call.catalog == nil {
		call.tool, call.args = unknownPromptName, marshal(map[string]string{"name": textutil.Truncate(name, tool.MaxName)})
	}
	answer, err := s.answerCatalog(ctx, sc, call, headerOf(req.Extra))
	switch code := errcode.CodeOf(err); {
	case code == errcode.ToolNotAvailable || code == errcode.UnknownTool:
		return nil, unknownPrompt(name)
	case code == errcode.InvalidArguments:
		return nil, newRPCError(jsonrpc.CodeInvalidParams, errcode.Message(err))
	case err != nil:
		return nil, newRPCError(jsonrpc.CodeInternalError, errcode.Message(err))
	}
	result := &sdk.GetPromptResult{Description: answer.Description, Messages: []*sdk.PromptMessage{}}
	for _, m := range answer.Messages {
		result.Messages = append(result.Messages, &sdk.PromptMessage{Role: sdk.Role(m.Role), Content: sdkContent(checkContent(m.Content))})
	}
	return completeResultOf(result, req.ProtocolVersion()), nil
}

// checkContent returns a content of a catalog as the gate checks the contents of results. One that a
// call has returned was checked then, and stays as it is.
func checkContent(c tool.Content) tool.Content {
	if c.Note != "" {
		return c
	}
	return tool.CheckContents([]tool.Content{c})[0]
}

// unknownPrompt returns the error for a prompt that the caller is not offered.
// It is the same whether or not the prompt exists.
func unknownPrompt(name string) *jsonrpc.Error {
	return newRPCError(jsonrpc.CodeInvalidParams, "Unknown prompt: "+textutil.Truncate(name, tool.MaxName))
}
