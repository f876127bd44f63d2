package cmd

import (
	"fmt"
	"strings"
	"sync"
)

// names are what agents are called on a screen: their role, numbered when a
// role has more than one agent. Safe for concurrent use.
type names struct {
	mu   sync.Mutex // guards byID
	byID map[string]string
}

// of gives an agent's name. One that is new gets its name from its role; "" is
// one that is not known and has none.
func (n *names) of(id, role string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.byID[id]; ok || role == "" {
		return name
	}
	if n.byID == nil {
		n.byID = map[string]string{}
	}
	name, taken := clean(role), 1
	for _, other := range n.byID {
		if other == name || strings.HasPrefix(other, name+"#") {
			taken++
		}
	}
	if taken > 1 {
		name = fmt.Sprintf("%s#%d", name, taken)
	}
	n.byID[id] = name
	return name
}
