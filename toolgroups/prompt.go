package toolgroups

import (
	"slices"
	"strings"
)

// Prompt is a template of messages that a group offers in addition to its tools.
// Clients request it by name, for example over MCP. A Prompt must be immutable,
// comparable and safe for concurrent use.
type Prompt interface {
	Name() string
	Description() string
	Arguments() []PromptArgument // in order
	Fingerprint() string         // equal for two prompts with the same definition

	// Messages returns the messages for the given arguments, by name. The error has
	// the code invalid_arguments.
	Messages(arguments map[string]string) ([]PromptMessage, error)
}

// PromptArgument describes an argument of a Prompt.
type PromptArgument struct {
	Name        string   `json:"name"`
	Description string   `json:"description"`
	Required    bool     `json:"required"`
	Values      []string `json:"-"` // the values that it may have; nil if there are others
}

// PromptMessage is one message of a Prompt.
type PromptMessage struct{ Role, Text string }

// ListPrompts returns the prompts of the groups that the View allows, sorted by name, each
// name once. If within is not empty, it returns the prompts of that group only.
func (v *View) ListPrompts(within GroupID) []Prompt {
	var list []Prompt
	for _, g := range v.prompts {
		if within == "" || within == g.ID {
			list = append(list, g.prompts...)
		}
	}
	slices.SortStableFunc(list, func(a, b Prompt) int { return strings.Compare(a.Name(), b.Name()) })
	return slices.CompactFunc(list, func(a, b Prompt) bool { return a.Name() == b.Name() })
}

// allowedGroups returns the wanted groups that are in use and in all limits.
func (s *Snapshot) allowedGroups(use PinnedSet, limits []PinnedSet, wanted func(*group) bool) (list []*group) {
	for _, g := range s.pinnedGroups(use) {
		excludes := func(limit PinnedSet) bool {
			return !slices.ContainsFunc(s.pinnedGroups(limit), g.isPartOf) || !limit.matchesGroupOwner(g)
		}
		if wanted(g) && !g.isClosed() && use.matchesGroupOwner(g) && !slices.ContainsFunc(limits, excludes) {
			list = append(list, g)
		}
	}
	return list
}

// matchesGroupOwner reports whether g belongs to the owner that b is restricted to.
func (b PinnedSet) matchesGroupOwner(g *group) bool { return b.Only == "" || g.Owner == b.Only }
