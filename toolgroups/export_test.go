package toolgroups

import "github.com/rolecall/rolecall/tool"

// NewStateView returns a StateView that shows definitions which no registry has
// checked.
func NewStateView(definitions ...tool.Definition) *StateView {
	s := new(StateView)
	for _, d := range definitions {
		s.handles = append(s.handles, &ToolHandle{Definition: d})
	}
	return s
}
