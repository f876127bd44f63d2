package wire

import "github.com/rolecall/rolecall/errcode"

// NotReady is the code of /readyz with status 503. The field reasons of the details lists
// the reasons, as UnreadyReason.
const NotReady errcode.Code = "not_ready"

// The codes of reasons why a process is not ready.
const (
	UnreadyStarting   = "starting"      // the configuration is not active yet
	UnreadyRecovering = "recovering"    // interrupted tasks are not resumed yet
	UnreadyStopping   = "stopping"      // the process shuts down
	UnreadyStore      = "store_failed"  // the store cannot be read
	UnreadyStorageLow = "storage_low"   // the disk, or what may be recorded, is used up
	UnreadyModule     = "module_failed" // the last start of a module, such as an MCP server, failed, or its broker cannot be reached
	UnreadyKey        = "key_missing"   // a model of the organization or of a role has no API key
)

// UnreadyReason is a reason why a process should not be sent work.
type UnreadyReason struct {
	Code    string   `json:"code"`
	Message string   `json:"message"`
	Names   []string `json:"names,omitempty"` // of modules or models, sorted; only for the scopes operator and metrics
}
