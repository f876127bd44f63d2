package org

import (
	"maps"

	"github.com/rolecall/rolecall/toolgroups"
)

// maxLimitedScopes is the most scopes of callers with a limit (identity.Principal.Within) that
// are kept. Limits come and go with the networks of the configuration.
const maxLimitedScopes = 1024

// limitScope notes the scope of callers with a limit, and removes one if there are too many: the
// oldest that was not asked for since the last look at it. It must be called with mu held.
func (x *scopeIndex) limitScope(key scopeKey) {
	if key.bounds == "" {
		return
	}
	x.limited = append(x.limited, key)
	for len(x.limited) > maxLimitedScopes {
		oldest := x.limited[0]
		x.limited = x.limited[1:]
		if x.byKey[oldest].used.Swap(false) {
			x.limited = append(x.limited, oldest)
			continue
		}
		x.remove(oldest)
	}
}

// remove forgets a scope without agents. What still refers to its View is denied everything: no
// change of permissions reaches that View any more. It must be called with mu held.
func (x *scopeIndex) remove(key scopeKey) {
	s := x.byKey[key]
	delete(x.byKey, key)
	delete(x.all, s)
	removeFrom(x.byRole, s)
	removeFrom(x.byGroup, s)
	s.PublishView(new(toolgroups.View))
}

// removeFrom removes a scope from an index.
func removeFrom[K comparable](index map[K]map[*scope]bool, s *scope) {
	for _, scopes := range index {
		delete(scopes, s)
	}
	maps.DeleteFunc(index, func(_ K, scopes map[*scope]bool) bool { return len(scopes) == 0 })
}
