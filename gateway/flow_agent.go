package gateway

import (
	"net/http"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
)

// defaultName is the flow and the workspace that TrustGraph's client sends if it is told none. It
// names the role and the workspace of the sender.
const defaultName = "default"

// nullableFlowFields are the fields of a wire.FlowAgentRequest that mean the same when they are
// null as when they are absent.
var nullableFlowFields = []string{"group", "state", "history"}

// askFlowAgent is askAgent under the path and with the body of TrustGraph's client.
func (a *api) askFlowAgent(w http.ResponseWriter, r *http.Request) error {
	return a.askDecoded(w, r, decodeFlowRequest)
}

// decodeFlowRequest is an agentDecoder. The flow in the path names the role of the agent.
func decodeFlowRequest(r *http.Request, body []byte) (wire.AgentRequest, error) {
	var q wire.FlowAgentRequest
	if _, err := decodeBytes(body, &q, nullableFlowFields); err != nil {
		return wire.AgentRequest{}, err
	}
	switch {
	case q.Workspace != "" && q.Workspace != defaultName:
		return wire.AgentRequest{}, errcode.New(errcode.InvalidArguments, "field \"workspace\" is %.200q; an agent works in the workspace of the sender: leave it out", q.Workspace).With("field", "workspace")
	case q.Streaming:
		return wire.AgentRequest{}, errcode.New(errcode.InvalidArguments, "field \"streaming\" is true; send \"Accept: text/event-stream\" in its place").With("field", "streaming")
	}
	role := r.PathValue("flow")
	if role == defaultName {
		role = ""
	}
	return wire.AgentRequest{Question: q.Question, Group: q.Group, State: q.State, History: q.History, Role: role}, nil
}
