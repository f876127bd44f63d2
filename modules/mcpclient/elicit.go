package mcpclient

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/tool"
)

// A server may ask a person during a call. The question counts as a question of the called tool.
// Package tool bounds it, and says that the server asks. A server with a session sends a request,
// which does not say for which call it is. The request is relayed only while one call is in
// progress on the connection. No earlier call may have ended without an answer: the server may
// still work on that one. A server without a session ends the call with its questions.

// openCall is a call in progress on a connection. Its server may ask one thing at a time.
type openCall struct {
	ctx    context.Context
	asking bool // guarded by conn.mu
}

// errRenewed is the error of a call that has found its connection just before it is renewed. Nothing was sent.
var errRenewed = fmt.Errorf("the connection is being renewed: %w", sdk.ErrConnectionClosed)

// beginCall registers a call until end is called. A call whose context has ended by then counts as
// one without an answer. owner is the owner of tool.Call.FairKey. Errors: errRenewed.
func (n *conn) beginCall(ctx context.Context, owner string) (end func(), err error) {
	call := &openCall{ctx: ctx}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.retired {
		return nil, errRenewed
	}
	n.shared = n.shared || owner == "" || n.owner != "" && n.owner != owner
	n.open[call], n.owner = true, owner
	return func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.open, call)
		n.abandoned = n.abandoned || ctx.Err() != nil
	}, nil
}

// tryRetire reports whether the connection is to be renewed, and lets no call begin on it then. A question was
// declined because of an earlier call without an answer, no call is in progress, and the connection is not new.
// On the next connection, such a question cannot belong to an earlier call.
func (n *conn) tryRetire() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.retired = n.retired || n.askedLate && len(n.open) == 0 && time.Since(n.since) >= n.renewAfter
	return n.retired
}

// askingCall returns the only call in progress, unless it asks already. It asks until done is
// called.
func (n *conn) askingCall() (call *openCall, done func()) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.askedLate = n.askedLate || n.abandoned
	if len(n.open) != 1 || n.abandoned {
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

// askingContext returns the context of the call that a request of the server belongs to, until done
// is called. It ends also when the server withdraws its request. It is nil if the request belongs to
// no call, or to one of several calls.
func (n *conn) askingContext(request context.Context) (ctx context.Context, done func()) {
	call, release := n.askingCall()
	if call == nil {
		n.log.Warn("question of MCP server declined: it does not belong to exactly one call, or is not the only one of its call")
		return nil, nil
	}
	ctx, cancel := context.WithCancel(call.ctx)
	stop := context.AfterFunc(request, cancel)
	return ctx, func() { stop(); cancel(); release() }
}

// declined is the answer to a question that is not relayed.
var declined = &sdk.ElicitResult{Action: string(tool.Decline)}

// elicit answers a question of the server. It declines what belongs to no call, or to one of
// several calls.
func (n *conn) elicit(ctx context.Context, r *sdk.ElicitRequest) (*sdk.ElicitResult, error) {
	callCtx, done := n.askingContext(ctx)
	if callCtx == nil {
		return declined, nil
	}
	defer done()
	q, err := n.questionOf("", r.Params)
	if err != nil {
		return nil, errInvalidQuestion(err)
	}
	answer, err := tool.Ask(callCtx, q)
	switch {
	case errcode.CodeOf(err) == errcode.InvalidArguments:
		return nil, errInvalidQuestion(err)
	case err != nil:
		n.log.Warn("question of MCP server declined", "reason", err)
		return declined, nil
	}
	return elicitResult(answer)
}

// elicitDirectly answers questions in place of the library, which rejects some schemas that the
// protocol allows, such as lists of titled choices with a type. Package tool checks schemas.
func (n *conn) elicitDirectly(next sdk.MethodHandler) sdk.MethodHandler {
	return func(ctx context.Context, method string, req sdk.Request) (sdk.Result, error) {
		if r, ok := req.(*sdk.ElicitRequest); ok {
			return n.elicit(ctx, r)
		}
		return next(ctx, method, req)
	}
}

// errInvalidQuestion returns the error that a server gets for a question that is not asked.
func errInvalidQuestion(err error) error {
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
	schema, visible := visibleJSON(p.RequestedSchema, maxSchema)
	if !visible {
		return q, errcode.New(errcode.InvalidArguments, "the form of the question is too large, or contains invisible characters")
	}
	q.Schema = schema
	return q, nil
}

// inputMemo has the data that a call needs to continue when the answers are there. It has the
// requests of a server without a session, and the state of the server. The server gets its state
// back unchanged.
type inputMemo struct {
	Round    int                          `json:"round"`
	Names    []string                     `json:"names"` // of the server's requests, sorted
	Requests map[string]tool.InputRequest `json:"requests"`
	State    string                       `json:"state,omitempty"`
}

// memoOf returns the requests in a result.
func (n *conn) memoOf(round int, r *sdk.CallToolResult) (inputMemo, error) {
	memo := inputMemo{Round: round, Names: slices.Sorted(maps.Keys(r.InputRequests)), Requests: map[string]tool.InputRequest{}, State: r.RequestState}
	for i, name := range memo.Names {
		request, err := n.requestOf(r.InputRequests[name])
		if err != nil {
			return memo, err
		}
		request.Name = askName(round, i, name)
		memo.Requests[name] = request
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
		requests[i] = m.Requests[name]
	}
	responses, err := tool.RequestInput(ctx, text, requests...)
	if err != nil {
		return nil, err
	}
	params.InputResponses, params.RequestState = sdk.InputResponseMap{}, m.State
	for i, name := range m.Names {
		if params.InputResponses[name], err = responseTo(requests[i].Kind(), responses[i]); err != nil {
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
