package wire

import "github.com/rolecall/rolecall/identity"

// HookAnswer is the answer to a request that a trigger has accepted.
type HookAnswer struct {
	Task identity.TaskID `json:"task"` // that was started, now or by an earlier request that was the same
}
