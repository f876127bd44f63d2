//lint:file-ignore SA1019 the SDK marks sampling and roots as deprecated; clients have them

package mcpserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// sessionInput asks a client with a session during a call. The SDK matches responses to requests: a
// response to a request that is not open in this session has no effect.
type sessionInput struct {
	session *sdk.ServerSession
	by      string // the sender, for the record
	timeout time.Duration
}

// SupportsInput implements tool.InputSource.
func (s *sessionInput) SupportsInput(kind tool.InputKind) bool {
	return abilitiesOfSession(s.session).supports(kind)
}

// LastMemo implements tool.InputSource. In a session a tool waits for the answer, so its function is
// not run again and needs no memo.
func (s *sessionInput) LastMemo() json.RawMessage { return nil }

// abilitiesOfSession returns what the client of a session has declared.
func abilitiesOfSession(session *sdk.ServerSession) abilities {
	if p := session.InitializeParams(); p != nil {
		return abilitiesOf(p.Capabilities)
	}
	return abilities{}
}

// RequestInput implements tool.InputSource. It sends one request after the other. A person who does
// not answer within the timeout has declined.
func (s *sessionInput) RequestInput(ctx context.Context, round tool.InputRound) ([]tool.InputResponse, error) {
	if abilitiesOfSession(s.session).lacking(round.Requests) != nil {
		return nil, lackingError(round.Call)
	}
	list := make([]tool.InputResponse, 0, len(round.Requests))
	for _, r := range round.Requests {
		if err := round.Log.InputAsked(r, "", time.Now().Add(s.timeout)); err != nil {
			return nil, err
		}
		got, by, reason, err := s.ask(ctx, round.Call, r)
		if err == nil {
			got, err = r.CheckResponse(got)
		}
		if err != nil {
			got, by, reason = tool.InputResponse{Answer: &tool.Answer{Action: tool.Cancel}}, "", errcode.Message(err)
		}
		if logErr := round.Log.InputAnswered(r, got, by, reason); logErr != nil || err != nil {
			return nil, cmp.Or(err, logErr)
		}
		list = append(list, got)
	}
	return list, nil
}

// ask sends one request and waits for the response. by is the principal that answered; it is ""
// without an answer in time, and reason says so.
func (s *sessionInput) ask(ctx context.Context, call tool.Call, r tool.InputRequest) (got tool.InputResponse, by, reason string, err error) {
	timed, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	got, err = s.send(timed, call, r)
	switch {
	case err == nil:
		return got, s.by, "", nil
	case ctx.Err() != nil:
		return got, "", "", ctx.Err()
	case timed.Err() != nil && r.Question != nil:
		return tool.InputResponse{Answer: &tool.Answer{Action: tool.Decline}}, "", "not answered in time", nil
	case timed.Err() != nil:
		return got, "", "", errcode.New(errcode.InputUnavailable, "the client did not answer what %s asked in time", call.Name)
	}
	if _, coded := errors.AsType[*errcode.Error](err); coded {
		return got, "", "", err
	}
	if strings.Contains(err.Error(), "requested schema") { // the SDK has no other sign for it
		return got, "", "", errWrongResponse(r.Name)
	}
	return got, "", "", errcode.Wrap(errcode.InputUnavailable, err, "the client did not answer what %s asked", call.Name)
}

// send sends one request of the protocol.
func (s *sessionInput) send(ctx context.Context, call tool.Call, r tool.InputRequest) (tool.InputResponse, error) {
	switch {
	case r.Question != nil:
		result, err := s.session.Elicit(ctx, elicitParams(call.Name, r.Question, string(call.ID)+"/"+r.Name))
		if err != nil {
			return tool.InputResponse{}, err
		}
		return answerOf(result)
	case r.Model != nil:
		result, err := s.session.CreateMessage(ctx, samplingParams(r.Model))
		if err != nil {
			return tool.InputResponse{}, err
		}
		return replyOf(r.Name, []sdk.Content{result.Content}, result.Model, result.StopReason)
	}
	result, err := s.session.ListRoots(ctx, nil)
	if err != nil {
		return tool.InputResponse{}, err
	}
	return rootsOf(result.Roots), nil
}
