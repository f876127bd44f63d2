package mcpserver

import (
	"context"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// maxValues is how many values of an argument a client gets, as the protocol defines.
const maxValues = 100

// unknownCompletion is the name under which the gate denies a completion of what is not the
// caller's. It is no valid name of a tool.
const unknownCompletion = "completion/complete"

// complete answers completion/complete for the arguments of prompts and the variables of
// templates.
func (s *Server) complete(ctx context.Context, sc *clientScope, req *sdk.CompleteRequest) (sdk.Result, error) {
	p := req.Params
	if p.Ref == nil || p.Argument.Name == "" {
		return nil, newRPCError(jsonrpc.CodeInvalidParams, "ref and argument.name are required")
	}
	if p.Ref.Type == "ref/prompt" {
		list := s.prompts(sc)
		if i := slices.IndexFunc(list, func(d toolgroups.Prompt) bool { return d.Name() == p.Ref.Name }); i >= 0 {
			return newCompletion(declaredValues(list[i], p.Argument.Name, p.Argument.Value), 0), nil
		}
	}
	answer, err := s.completeByTool(ctx, sc, req)
	if err != nil {
		return nil, err
	}
	return newCompletion(answer.Values, answer.Total), nil
}

// declaredValues returns the values of an argument of a declared prompt that begin with a text.
func declaredValues(p toolgroups.Prompt, argument, start string) (values []string) {
	for _, a := range p.Arguments() {
		for _, v := range a.Values {
			if a.Name == argument && strings.HasPrefix(strings.ToLower(v), strings.ToLower(start)) {
				values = append(values, v)
			}
		}
	}
	return values
}

// newCompletion returns the answer with the first values.
func newCompletion(values []string, total int) *sdk.CompleteResult {
	list := make([]string, 0, min(len(values), maxValues))
	for _, v := range values[:min(len(values), maxValues)] {
		list = append(list, textutil.Truncate(v, maxURI))
	}
	total = max(total, len(values))
	return &sdk.CompleteResult{Completion: sdk.CompletionResultDetails{Values: list, Total: total, HasMore: total > len(list)}}
}

// completeByTool answers completion/complete by a call of the tool that completes values. If
// there is none, the gate denies the request, so that it is on record. A server that does not
// complete anything has no values.
func (s *Server) completeByTool(ctx context.Context, sc *clientScope, req *sdk.CompleteRequest) (tool.CatalogAnswer, error) {
	p := req.Params
	r := tool.CatalogRequest{Kind: tool.Complete, Argument: p.Argument.Name, Value: p.Argument.Value, Name: p.Ref.Name, URI: p.Ref.URI}
	if p.Context != nil {
		r.Arguments = p.Context.Arguments
	}
	call := findCatalog(s.listableCatalogs(sc), r)
	if call.catalog == nil {
		call.tool, call.args = unknownCompletion, marshal(map[string]string{"name": textutil.Truncate(p.Ref.Name, tool.MaxName), "uri": textutil.Truncate(p.Ref.URI, maxURI)})
	}
	answer, err := s.answerCatalog(ctx, sc, call, headerOf(req.Extra))
	switch code := errcode.CodeOf(err); {
	case err == nil || codeFromServer(err) == jsonrpc.CodeMethodNotFound:
		return answer, nil
	case code == errcode.ToolNotAvailable || code == errcode.UnknownTool:
		return answer, newRPCError(jsonrpc.CodeInvalidParams, "Unknown prompt or template: "+textutil.Truncate(p.Ref.Name+p.Ref.URI, maxURI))
	}
	return answer, newRPCError(jsonrpc.CodeInternalError, errcode.Message(err))
}
