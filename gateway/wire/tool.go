package wire

import (
	"encoding/json"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Tool is a registered tool, or one in quarantine.
type Tool struct {
	Name   string                `json:"name"`
	Group  toolgroups.GroupID    `json:"group"` // the group that owns it
	Owner  toolgroups.GroupOwner `json:"owner"`
	Effect string                `json:"effect"`
	ToolFlags
	Description string          `json:"description"`
	Input       json.RawMessage `json:"inputSchema,omitzero"`       // absent if the tool is only in quarantine
	State       string          `json:"state,omitempty"`            // workflow state after a successful call
	States      []string        `json:"availableInStates,omitzero"` // absent: available in every state
	Auth        *tool.Auth      `json:"auth,omitempty"`             // the auth services whose tokens a call needs; absent: none

	*QuarantineEntry // a pending definition under this name, or nil; only shown to the operator
}

// QuarantineEntry is a tool definition from an untrusted server that waits for
// the operator's acceptance. Until then no role has the tool, not even a role
// that uses all groups.
type QuarantineEntry struct {
	Quarantined bool             `json:"quarantined"` // true until it is accepted
	Digest      string           `json:"digest"`      // of Offered; Accept must repeat it
	Offered     modules.ToolPin  `json:"offered"`
	Accepted    *modules.ToolPin `json:"accepted,omitempty"` // the definition accepted before under this name; absent for a new tool
}

// QuarantinedTool is a tool in quarantine, as listed by the API.
type QuarantinedTool struct {
	Name  string                `json:"name"`
	Owner toolgroups.GroupOwner `json:"owner"`
	QuarantineEntry
}

// AcceptRequest names the definition that the operator has reviewed.
type AcceptRequest struct {
	Digest string                `json:"digest"`          // of the pending definition
	Owner  toolgroups.GroupOwner `json:"owner,omitempty"` // of the tool; needed if several owners offer this definition under this name
}

// CallRequest asks for one call of a tool in a role.
type CallRequest struct {
	Role string          `json:"role"`           // id or exact name
	Args json.RawMessage `json:"args,omitempty"` // a JSON object; absent means {}
}

// CallResult is the outcome of a call, which is on the record.
type CallResult struct {
	Call    identity.CallID `json:"call"`
	Denied  bool            `json:"denied,omitempty"`  // the gate denied the call, so the tool did not run
	Code    errcode.Code    `json:"code,omitempty"`    // of a denial, or of a tool's failure if it has one
	IsError bool            `json:"isError,omitempty"` // the call was denied, or the tool failed
	Result  json.RawMessage `json:"result"`            // of the tool, or of the denial
}
