package config

import (
	"fmt"

	"go.yaml.in/yaml/v4"
)

// maxAliased is the most values all aliases of a document may stand for.
const maxAliased = 10_000

// aliases counts what the aliases of a document stand for once they are
// written out. The YAML library bounds this only where it builds Go values;
// we work on its nodes.
type aliases struct {
	sizes map[*yaml.Node]int // of anchored nodes; inside while in one
	total int
	fail  func(alias *yaml.Node, message string)
}

// counting marks a node whose size is being counted.
const counting = -1

// size gives the number of values under n. It calls fail for the first alias
// that leads into itself or past the bound, and then counts no further.
func (a *aliases) size(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		return a.expand(n)
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

func (a *aliases) expand(alias *yaml.Node) int {
	size := a.sizes[alias.Alias] // an anchor stands before its aliases
	switch {
	case a.total > maxAliased: // reported already
	case size == counting:
		a.total = maxAliased + 1
		a.fail(alias, fmt.Sprintf("alias *%s stands inside its own anchor", alias.Value))
	default:
		a.total += size
		if a.total > maxAliased {
			a.fail(alias, fmt.Sprintf("the aliases up to here stand for more than %d values", maxAliased))
		}
	}
	return max(size, 1)
}
