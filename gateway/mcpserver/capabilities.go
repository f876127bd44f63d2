package mcpserver

import (
	"context"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/tool"
)

// withCapabilities wraps next to declare what the caller is offered besides tools, in the
// answers to initialize and server/discover. That is prompts, completion of their
// arguments, and resources if a tool of the caller reads resources. Clients are not
// notified when that changes. The instructions for the client are the description of the
// role.
func (s *Server) withCapabilities(sc *clientScope, next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		result, err := next(ctx, method, req)
		if err != nil {
			return result, err
		}
		role, _ := s.rt.Org().RoleByID(sc.caller.Role)
		var offers *sdk.ServerCapabilities
		switch result := result.(type) {
		case *sdk.InitializeResult:
			offers, result.Instructions = result.Capabilities, role.Description
		case *sdk.DiscoverResult:
			offers, result.Instructions = result.Capabilities, role.Description
		}
		if offers == nil {
			return result, nil
		}
		tools := s.listableCatalogs(sc)
		if len(s.prompts(sc)) > 0 || answersKind(tools, tool.GetPrompt, "") {
			offers.Prompts = &sdk.PromptCapabilities{}
		}
		if offers.Prompts != nil || answersKind(tools, tool.Complete, "") {
			offers.Completions = &sdk.CompletionCapabilities{}
		}
		if !answersKind(tools, tool.ReadResource, "") {
			offers.Resources = nil
		}
		return result, nil
	}
}
