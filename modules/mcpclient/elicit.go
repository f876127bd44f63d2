package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// A server may ask a person during a call. The question is that of the tool that is called: package tool
// bounds it, and says that the server asks. A server with a session sends a request, which does not
// say for which call it is. It is relayed only while one call is in progress on the connection. A
// server without a session ends the call with its questions.

// openCall is a call in progress on a connection. Its server may ask one thing at a time.
type openCall struct {
	ctx    context.Context
	asking bool // guarded by conn.mu
}

// beginCall registers a call until end is called.
func (n *conn) beginCall(ctx context.Context) (end func()) {
	call := &openCall{ctx: ctx}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open[call] = true
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open, call)
	}
}

// askingCall returns the only call in progress, unless it asks already. It asks until done is
// called.
func (n *conn) askingCall() (call *openCall, done func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.open) != 1 {
		return nil, nil
	}
	for call = range n.open {
		if call.asking {
			return nil, nil
		}
	}
	call.asking = true
	return call, func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		call.asking = false
	}
}

// declined is the answer to a question that is not relayed.
var declined = &sdk.ElicitResult{Action: string(tool.Decline)}

// elicit answers a question of the server. It declines what belongs to no call, or to nobody knows
// which.
func (n *conn) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	call, done := n.askingCall()
	if call == nil {
		n.log.Warn("question of MCP server declined: it does not belong to exactly one call, or is not the only one of its call")
		return declined, nil
	}
	defer done()
	q, err := n.questionOf("", r.Params)
	if err != nil {
		return nil, invalidQuestion(err)
	}
	callCtx, cancel := context.WithCancel(call.ctx) // ends also when the server withdraws its question
	defer cancel()
	defer context.AfterFunc(ctx, cancel)()
	answer, err := tool.Ask(callCtx, q)
	switch {
	case errcode.CodeOf(err) == errcode.InvalidArguments:
		return nil, invalidQuestion(err)
	case err != nil:
		n.log.Warn("question of MCP server declined", "reason", err)
		return declined, nil
	}
	return elicitResult(answer)
}

// invalidQuestion returns the error that a server gets for a question that is not asked.
func invalidQuestion(err error) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: errcode.Message(err)}
}

// elicitResult converts an answer.
func elicitResult(a tool.Answer) (*sdk.ElicitResult, error) {
	result := &sdk.ElicitResult{Action: string(a.Action)}
	if a.Content != nil {
		if err := json.Unmarshal(a.Content, &result.Content); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// questionOf converts a question of the server. Package tool checks it.
func (n *conn) questionOf(name string, p *sdk.ElicitParams) (tool.Question, error) {
	q := tool.Question{Name: name, Message: textutil.RemoveInvisible(p.Message), Server: n.server, URL: p.URL}
	if p.RequestedSchema == nil {
		return q, nil
	}
	schema, err := json.Marshal(p.RequestedSchema)
	q.Schema = schema
	return q, err
}

// inputMemo is what a call needs to continue when the answers are there: the questions of a server
// without a session, and its state, which it gets back unchanged.
type inputMemo struct {
	Round     int                      `json:"round"`
	Names     []string                 `json:"names"` // of the server's questions, sorted
	Questions map[string]tool.Question `json:"questions"`
	State     string                   `json:"state,omitempty"`
}

// memoOf returns the questions in a result. Servers may ask only persons.
func (n *conn) memoOf(round int, r *sdk.CallToolResult) (inputMemo, error) {
	memo := inputMemo{Round: round, Names: slices.Sorted(maps.Keys(r.InputRequests)), Questions: map[string]tool.Question{}, State: r.RequestState}
	for _, name := range memo.Names {
		p, ok := r.InputRequests[name].(*sdk.ElicitParams)
		if !ok {
			return memo, errcode.New(errcode.InputUnavailable, "the server asks for more than an answer of a person, which rolecall does not relay")
		}
		q, err := n.questionOf("", p)
		if err != nil {
			return memo, err
		}
		memo.Questions[name] = q
	}
	return memo, nil
}

// ask asks the questions, and returns the parameters that repeat the call with the answers.
func (m inputMemo) ask(ctx context.Context, params sdk.CallToolParams) (*sdk.CallToolParams, error) {
	text, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	requests := make([]tool.InputRequest, len(m.Names))
	for i, name := range m.Names {
		q := m.Questions[name]
		requests[i] = tool.InputRequest{Name: askName(m.Round, i, name), Question: &q}
	}
	responses, err := tool.RequestInput(ctx, text, requests...)
	if err != nil {
		return nil, err
	}
	params.InputResponses, params.RequestState = sdk.InputResponseMap{}, m.State
	for i, name := range m.Names {
		if params.InputResponses[name], err = elicitResult(*responses[i].Answer); err != nil {
			return nil, err
		}
	}
	return &params, nil
}

// askName returns the name of a question in its call: the server's own in the first round. In later
// rounds a server may use its names again.
func askName(round, i int, name string) string {
	if round == 1 && len(name) <= maxQuestionName && tool.CheckName(name) == nil {
		return name
	}
	return fmt.Sprintf("r%d.%d", round, i+1)
}

// maxQuestionName is the longest name of a question in bytes.
const maxQuestionName = 64

// callWithInput sends a call, and sends it again with answers as long as the server asks. A call that
// has ended with questions continues where it was.
func (n *conn) callWithInput(ctx context.Context, params *sdk.CallToolParams) (*sdk.CallToolResult, error) {
	var memo inputMemo
	if text := tool.LastMemo(ctx); text != nil {
		if err := json.Unmarshal(text, &memo); err != nil {
			return nil, err
		}
	}
	first := *params
	for {
		if memo.Round > 0 {
			next, err := memo.ask(ctx, first)
			if err != nil {
				return nil, err
			}
			params = next
		}
		r, err := n.session.CallTool(ctx, params)
		if err != nil || !r.NeedsInput() {
			return r, err
		}
		if memo, err = n.memoOf(memo.Round+1, r); err != nil {
			return nil, err
		}
	}
}
