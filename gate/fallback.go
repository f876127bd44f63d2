package gate

import (
	"errors"
	"maps"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/toolgroups"
)

// fallbackTools returns the tools that the principal may call now instead of h, which is
// unavailable (toolgroups.StateView.FallbackTools).
func (s *Subject) fallbackTools(h *toolgroups.ToolHandle) []string {
	return s.stateView(s.view()).FallbackTools(s.groups.CurrentSnapshot(), h)
}

// withFallback returns the error of a call that failed. If the tool is unavailable, the error
// also names the tools that the caller may call instead.
func (a *Admission) withFallback(err error) error {
	if errcode.CodeOf(err) != errcode.ToolUnavailable {
		return err
	}
	names := a.Subject.fallbackTools(a.handle)
	if len(names) == 0 {
		return err
	}
	named := errcode.Wrap(errcode.ToolUnavailable, err, "%s; these tools can be called instead: %s", errcode.Message(err), textutil.ListNames(names))
	if cause, ok := errors.AsType[*errcode.Error](err); ok {
		named.Details = maps.Clone(cause.Details)
	}
	return named.With("fallback", names)
}
