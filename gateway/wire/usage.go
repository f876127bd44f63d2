package wire

import "github.com/rolecall/rolecall/model"

// UsageReport is what the organization has used, as it is recorded.
type UsageReport struct {
	Items []UsageRow  `json:"items"`          // sorted by their keys
	Rest  *UsageTotal `json:"rest,omitempty"` // of rows beyond 10,000
	Total UsageTotal  `json:"total"`
}

// UsageRow is what calls and answers with the same keys have used. A key that was not asked for
// is absent. Tokens and costs are in rows without tool and server, because an answer of a model
// belongs to none.
type UsageRow struct {
	Caller string `json:"caller,omitempty"` // who started the task, or called from outside
	Role   string `json:"role,omitempty"`   // name of the role of the agent or the caller
	Server string `json:"server,omitempty"` // the owner of the tool, while it is registered
	Tool   string `json:"tool,omitempty"`
	UsageTotal
}

// UsageTotal is a sum.
type UsageTotal struct {
	Calls CallCounts       `json:"calls"`
	Usage model.TokenUsage `json:"usage,omitzero"`
}
