//lint:file-ignore SA1019 the SDK marks sampling, roots and logging as deprecated; clients and servers have them

package mcpclient

import (
	"context"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// Relay is what a server may ask the client of a call for, besides a person, and tell it. The zero Relay is
// the one without any right.
type Relay struct {
	Sampling bool // answers of the client's model, to texts and without tools
	Roots    bool // the client's roots, unless the server has a session: they belong to no call there
	Logging  bool // its log messages reach the client of a call, on connections of one owner
}

// capabilities returns what a server is offered.
func (r Relay) capabilities() *sdk.ClientCapabilities {
	c := &sdk.ClientCapabilities{Elicitation: &sdk.ElicitationCapabilities{
		Form: &sdk.FormElicitationCapabilities{}, URL: &sdk.URLElicitationCapabilities{},
	}}
	if r.Sampling {
		c.Sampling = &sdk.SamplingCapabilities{}
	}
	if r.Roots {
		c.RootsV2 = &sdk.RootCapabilities{}
	}
	return c
}

// requestOf converts a request of the server. Package tool checks it.
func (n *conn) requestOf(r sdk.InputRequest) (tool.InputRequest, error) {
	switch r := r.(type) {
	case *sdk.ElicitParams:
		q, err := n.questionOf("", r)
		return tool.InputRequest{Question: &q}, err
	case *sdk.CreateMessageWithToolsParams:
		if n.relay.Sampling && len(r.Tools) == 0 {
			m, err := modelRequestOf(r)
			return tool.InputRequest{Model: m}, err
		}
	case *sdk.ListRootsParams:
		if n.relay.Roots {
			return tool.InputRequest{}, nil
		}
	}
	return tool.InputRequest{}, errcode.New(errcode.InputUnavailable, "the server %q asks for input that is not relayed to it: the field relay of its configuration allows sampling and roots", n.server)
}

// modelRequestOf converts a request to a model. Only texts are relayed.
func modelRequestOf(p *sdk.CreateMessageWithToolsParams) (*tool.ModelRequest, error) {
	m := &tool.ModelRequest{System: textutil.RemoveInvisible(p.SystemPrompt), MaxTokens: int(p.MaxTokens)}
	for _, message := range p.Messages {
		var texts []string
		if message == nil {
			return nil, errcode.New(errcode.InvalidArguments, "the server asks a model with a message that is null")
		}
		for _, c := range message.Content {
			text, ok := c.(*sdk.TextContent)
			if !ok {
				return nil, errcode.New(errcode.InputUnavailable, "the server asks a model about more than texts, which rolecall does not relay")
			}
			texts = append(texts, textutil.RemoveInvisible(text.Text))
		}
		m.Messages = append(m.Messages, tool.ModelMessage{Role: string(message.Role), Text: strings.Join(texts, "\n")})
	}
	return m, nil
}

// sampler returns the handler of requests to a model in a session; nil if the server may not ask one.
func (n *conn) sampler() func(context.Context, *sdk.CreateMessageWithToolsRequest) (*sdk.CreateMessageWithToolsResult, error) {
	if !n.relay.Sampling {
		return nil
	}
	return n.sample
}

// sample answers a request to a model in a session.
func (n *conn) sample(ctx context.Context, r *sdk.CreateMessageWithToolsRequest) (*sdk.CreateMessageWithToolsResult, error) {
	callCtx, done := n.askingContext(ctx)
	if callCtx == nil {
		return nil, newRejection("the request does not belong to exactly one call, or is not the only one of its call")
	}
	defer done()
	request, err := n.requestOf(r.Params)
	if err != nil {
		return nil, errInvalidQuestion(err)
	}
	reply, err := tool.AskModel(callCtx, *request.Model)
	if err != nil {
		return nil, errInvalidQuestion(err)
	}
	return &sdk.CreateMessageWithToolsResult{
		Role: "assistant", Content: []sdk.Content{&sdk.TextContent{Text: reply.Text}}, Model: reply.Model, StopReason: reply.StopReason,
	}, nil
}

// newRejection returns the error that a server gets for a request that is not relayed.
func newRejection(reason string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: reason}
}

// responseTo converts a response, which has the kind of its request.
func responseTo(kind tool.InputKind, r tool.InputResponse) (sdk.InputResponse, error) {
	switch kind {
	case tool.PersonInput:
		return elicitResult(*r.Answer)
	case tool.ModelInput:
		return &sdk.CreateMessageResult{Role: "assistant", Content: &sdk.TextContent{Text: r.Reply.Text}, Model: r.Reply.Model, StopReason: r.Reply.StopReason}, nil
	}
	result := &sdk.ListRootsResult{Roots: []*sdk.Root{}}
	for _, root := range r.Roots {
		result.Roots = append(result.Roots, &sdk.Root{URI: root.URI, Name: root.Name})
	}
	return result, nil
}
