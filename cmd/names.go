package cmd

import (
	"fmt"
	"strings"
	"sync"

	"github.com/rolecall/rolecall/internal/textutil"
)

// agentNames are the display names of agents: the role name, with a number if several
// agents have the role. The zero value is ready to use, also concurrently.
type agentNames struct {
	mu   sync.Mutex // guards byID
	byID map[string]string
}

// nameOf returns the name of an agent and assigns one from its role if it is new. If role
// is "" it returns "" for an unknown agent.
func (n *agentNames) nameOf(id, role string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	if name, ok := n.byID[id]; ok || role == "" {
		return name
	}
	if n.byID == nil {
		n.byID = map[string]string{}
	}
	name, taken := textutil.Sanitize(role), 1
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
