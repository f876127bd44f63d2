package cmd

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"github.com/rolecall/rolecall/internal/textutil"
)

// agentNames are the display names of agents. The first agent of a role has the name of the
// role. Further agents have their names in the task, or a number if these names are not known.
// The zero value is ready to use, also concurrently.
type agentNames struct {
	mu     sync.Mutex // guards the maps
	byID   map[string]string
	inTask map[string]string // names that agents have in their task
}

// learn notes the name that an agent has in its task.
func (n *agentNames) learn(id, name string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.inTask == nil {
		n.inTask = map[string]string{}
	}
	n.inTask[id] = textutil.Sanitize(name)
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
		if other == name || strings.HasPrefix(other, name+"#") || strings.HasPrefix(other, name+"-") {
			taken++
		}
	}
	if taken > 1 {
		name = cmp.Or(n.inTask[id], fmt.Sprintf("%s#%d", name, taken))
	}
	n.byID[id] = name
	return name
}
