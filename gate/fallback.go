package gate

import (
	"encoding/json"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/toolgroups"
)

// fallbackTools returns the tools that the principal may call now instead of h, which is
// unavailable (toolgroups.StateView.FallbackTools).
func (s *Subject) fallbackTools(h *toolgroups.ToolHandle) []string {
	return s.stateView(s.view()).FallbackTools(s.groups.CurrentSnapshot(), h)
}

// addFallback names the tools that the caller may call instead of an unavailable one. It adds them
// to the message of the result, and to the result as a list of names.
func (a *Admission) addFallback() {
	if a.Code() != errcode.ToolUnavailable {
		return
	}
	names := a.Subject.fallbackTools(a.handle)
	var body map[string]json.RawMessage
	var message string
	if len(names) == 0 || json.Unmarshal(a.Result.Structured, &body) != nil || json.Unmarshal(body["message"], &message) != nil {
		return
	}
	advice := "; these tools can be called instead: " + textutil.ListNames(names)
	body["message"], _ = json.Marshal(message + advice) // texts always marshal
	body["fallback"], _ = json.Marshal(names)
	a.Result.Structured, _ = json.Marshal(body) // its parts are valid
	if a.Result.Text != "" {
		a.Result.Text += advice
	}
}
