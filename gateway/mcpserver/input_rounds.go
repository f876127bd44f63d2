//lint:file-ignore SA1019 the SDK marks sampling and roots as deprecated; clients have them

package mcpserver

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gate"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/tool"
)

// roundParams are the answers that a client without a session adds to a repeated call, and the
// capabilities that it has declared.
type roundParams struct {
	abilities abilities
	responses map[string]json.RawMessage // inputResponses, by name; each is an object
	state     string                     // requestState; "" if absent
}

// roundInput asks a client without a session. A call that lacks an answer ends; its function runs
// again when the client repeats the call with the answers. It serves one call.
type roundInput struct {
	server        *Server
	bound         []byte // what the state is bound to
	by            string // the sender, for the record
	params        roundParams
	state         roundState
	stateOptional bool // answers count without a state: the tool changes nothing

	mu      sync.Mutex              // guards what follows
	result  *inputResult            // the questions with which the call ends; nil if there are none
	lacking *sdk.ClientCapabilities // what the client has not declared; nil if the call needs nothing more
	invalid error                   // why a response is rejected; nil if none is
}

// inputResult is a result that asks for input.
type inputResult struct {
	requests sdk.InputRequestMap
	state    string // "" for a prompt
}

// newRoundInput returns the input of a call. Errors: InvalidArguments for a state that does not open
// or was used, RateLimited.
func (s *Server) newRoundInput(sc *clientScope, c toolCall, effect tool.Effect, params roundParams) (*roundInput, error) {
	in := &roundInput{server: s, bound: binding(sc, c), by: sc.sender.String(), params: params}
	if params.state == "" {
		in.state.Call, in.stateOptional = identity.CallID(identity.NewID()), effect == tool.ReadOnly
		return in, nil
	}
	var err error
	if in.state, err = s.sealer.open(params.state, in.bound); err != nil {
		return nil, err
	}
	if effect == tool.Mutating || !effect.IsValid() { // a repetition could act twice
		err = s.sealer.markUsed(in.state, sc.sender.Key())
	}
	return in, err
}

// SupportsInput implements tool.InputSource.
func (in *roundInput) SupportsInput(kind tool.InputKind) bool {
	return in.params.abilities.supports(kind)
}

// LastMemo implements tool.InputSource.
func (in *roundInput) LastMemo() json.RawMessage { return in.state.Memo }

// RequestInput implements tool.InputSource.
func (in *roundInput) RequestInput(_ context.Context, round tool.InputRound) ([]tool.InputResponse, error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if need := in.params.abilities.lacking(round.Requests); need != nil {
		in.lacking = need
		return nil, lackingError(round.Call)
	}
	list, open := make([]tool.InputResponse, len(round.Requests)), []tool.InputRequest{}
	for i, r := range round.Requests {
		got, ok, err := in.responseTo(r, round.Log)
		if err != nil {
			in.invalid = err
			return nil, err
		}
		if !ok {
			open = append(open, r)
		}
		list[i] = got
	}
	if len(open) == 0 {
		return list, nil
	}
	return nil, in.end(round, open)
}

// responseTo returns the response of this or an earlier round. It records a new one.
func (in *roundInput) responseTo(r tool.InputRequest, log tool.InputLog) (got tool.InputResponse, ok bool, err error) {
	digest := digestOf(r)
	if given, known := in.state.Given[r.Name]; known && given.Digest == digest {
		return given.Response, true, nil
	}
	raw, sent := in.params.responses[r.Name]
	if !sent || in.state.Open[r.Name] != digest && !in.stateOptional {
		return got, false, nil // an answer to a question that was not asked
	}
	if got, err = readResponse(r, raw); err == nil {
		got, err = r.CheckResponse(got)
	}
	if err != nil {
		return got, false, err
	}
	if in.stateOptional {
		if err := log.InputAsked(r, "", in.server.sealer.now()); err != nil {
			return got, false, err
		}
	}
	if in.state.Given == nil {
		in.state.Given = map[string]givenAnswer{}
	}
	in.state.Given[r.Name] = givenAnswer{digest, got}
	return got, true, log.InputAnswered(r, got, in.by, "")
}

// end ends the call with the open requests, and returns the error that the tool must return.
func (in *roundInput) end(round tool.InputRound, open []tool.InputRequest) error {
	switch {
	case !round.Repeatable:
		return errcode.New(errcode.InputUnavailable, "%s may have acted when it asks, so it can ask only a client with a session", round.Call.Name)
	case in.state.Round >= tool.MaxQuestions:
		return errcode.New(errcode.InputUnavailable, "%s has ended %d times with questions", round.Call.Name, tool.MaxQuestions)
	case in.result != nil:
		return errInputRequired(round.Call.Name)
	}
	next := roundState{
		Nonce: identity.NewID(), Expires: in.server.sealer.now().Add(in.server.config.QuestionTimeout), Round: in.state.Round + 1,
		Call: round.Call.ID, Given: in.state.Given, Open: map[string]string{}, Memo: round.Memo,
	}
	requests := sdk.InputRequestMap{}
	for _, r := range open {
		next.Open[r.Name] = digestOf(r)
		requests[r.Name] = inputRequest(round.Call, r)
		if in.state.Open[r.Name] == next.Open[r.Name] {
			continue // it was asked before, and is on record
		}
		if err := round.Log.InputAsked(r, "", next.Expires); err != nil {
			return err
		}
	}
	sealed, err := in.server.sealer.seal(next, in.bound)
	if err != nil {
		return err
	}
	in.result = &inputResult{requests, sealed}
	return errInputRequired(round.Call.Name)
}

// errInputRequired is the error of a call that ends with questions.
func errInputRequired(name string) error {
	return errcode.New(errcode.InputRequired, "%s asks for input: call it again with the answers", name)
}

// inputRequest returns a request in the form of the protocol.
func inputRequest(call tool.Call, r tool.InputRequest) sdk.InputRequest {
	switch {
	case r.Question != nil:
		return elicitParams(call.Name, r.Question, string(call.ID)+"/"+r.Name)
	case r.Model != nil:
		return samplingParams(r.Model)
	}
	return &sdk.ListRootsParams{}
}

// readResponse reads one of inputResponses.
func readResponse(r tool.InputRequest, raw json.RawMessage) (tool.InputResponse, error) {
	switch {
	case r.Question != nil:
		var result struct {
			Action  tool.Action     `json:"action"`
			Content json.RawMessage `json:"content"`
		}
		if json.Unmarshal(raw, &result) != nil {
			return tool.InputResponse{}, errWrongResponse(r.Name)
		}
		return tool.InputResponse{Answer: &tool.Answer{Action: result.Action, Content: result.Content}}, nil
	case r.Model != nil:
		var result sdk.CreateMessageWithToolsResult
		if json.Unmarshal(raw, &result) != nil || len(result.Content) == 0 {
			return tool.InputResponse{}, errWrongResponse(r.Name)
		}
		return replyOf(r.Name, result.Content, result.Model, result.StopReason)
	}
	var result struct {
		Roots *[]*sdk.Root `json:"roots"`
	}
	if json.Unmarshal(raw, &result) != nil || result.Roots == nil {
		return tool.InputResponse{}, errWrongResponse(r.Name)
	}
	return rootsOf(*result.Roots), nil
}

// outcomeOf returns the outcome of a call that ended because of a question that it asked. ok is
// false if the result of the tool is the outcome. A nil receiver has asked nothing.
func (in *roundInput) outcomeOf(name string, a *gate.Admission, err error) (o outcome, ok bool) {
	if in == nil || err != nil {
		return outcome{}, false
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	switch code := a.Code(); {
	case in.invalid != nil && code == errcode.InvalidArguments:
		return outcome{rejected: newRPCError(jsonrpc.CodeInvalidParams, errcode.Message(in.invalid))}, true
	case in.lacking != nil && code == errcode.InputUnavailable:
		return outcome{rejected: missingCapability(name, in.lacking)}, true
	case in.result != nil && code == errcode.InputRequired:
		return outcome{input: in.result}, true
	}
	return outcome{}, false
}

// encode returns the result as JSON.
func (r *inputResult) encode(info *sdk.Implementation) []byte {
	return marshal(struct {
		ResultType    string              `json:"resultType"`
		InputRequests sdk.InputRequestMap `json:"inputRequests"`
		RequestState  string              `json:"requestState,omitempty"`
		Meta          map[string]any      `json:"_meta"`
	}{"input_required", r.requests, r.state, map[string]any{sdk.MetaKeyServerInfo: info}})
}

// questionTimeout is how long a question waits for its answer by default.
const questionTimeout = 5 * time.Minute
