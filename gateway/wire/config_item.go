package wire

// ConfigItem describes a configuration item that the operator has applied.
type ConfigItem struct {
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	Status string `json:"status"`           // active, broken or conflict
	Reason string `json:"reason,omitempty"` // why it is not active
	Kept   bool   `json:"kept,omitempty"`   // it is broken, and its last version that worked is still in service
	Digest string `json:"digest"`           // SHA-256 of its text, in hexadecimal
}

// The statuses of applied items.
const (
	ItemActive   = "active"
	ItemBroken   = "broken"   // it is not valid any more, with what is there now
	ItemConflict = "conflict" // a document of a file has the same kind and name
)

// ConfigItemRequest is the body of a request that applies an item.
type ConfigItemRequest struct {
	Text string `json:"text"` // the document in YAML or JSON
}
