package yamldoc

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// maxAliased is the largest number of values that the aliases of one document
// may expand to.
const maxAliased = 10_000

// aliasCounter counts the values that a document's aliases expand to, so that a small
// file cannot stand for a huge one. The YAML library has such a bound only when
// it decodes into Go values; this package works on its nodes.
type aliasCounter struct {
	sizes map[*yaml.Node]int // size of each anchored node, or counting
	total int                // values that the aliases so far expand to
	fail  func(alias *yaml.Node, message string)
}

// counting is the size of an anchored node while its content is being counted.
const counting = -1

// size returns the number of values under n, at most maxAliased+1. It calls fail
// for the first alias that is recursive or exceeds maxAliased, and ignores the
// aliases after that one.
func (a *aliasCounter) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return a.countAlias(n)
	}
	if n.Anchor != "" {
		a.sizes[n] = counting
	}
	size := 1
	for _, child := range n.Content {
		size = min(size+a.size(child), maxAliased+1)
	}
	if n.Anchor != "" {
		a.sizes[n] = size
	}
	return size
}

// countAlias returns the size of what an alias stands for and adds it to the total.
func (a *aliasCounter) countAlias(alias *yaml.Node) int {
	size := a.sizes[alias.Alias] // the parser requires an anchor before its aliases
	switch {
	case a.total > maxAliased: // reported already
	case size == counting:
		a.total = maxAliased + 1
		a.fail(alias, fmt.Sprintf("alias *%s refers to the anchor it is in", alias.Value))
	default:
		a.total += size
		if a.total > maxAliased {
			a.fail(alias, fmt.Sprintf("the aliases up to here expand to more than %d values", maxAliased))
		}
	}
	return max(size, 1)
}
