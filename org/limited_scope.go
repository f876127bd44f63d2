package org

import (
	"maps"

	"github.com/rolecall/rolecall/toolgroups"
)

// maxLimitedScopes is how many scopes of callers are kept that a network limits to some groups
// (identity.Principal.Within). They come and go with the networks of the configuration.
const maxLimitedScopes = 1024

// addLimited records a scope of callers that a network limits. If there are more than
// maxLimitedScopes, it evicts the oldest one whose mark used is not set. One with the mark loses
// it and becomes the newest (second chance). Other scopes are not recorded. It must be called
// with mu held.
func (x *scopeIndex) addLimited(key scopeKey) {
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
		x.evict(oldest)
	}
}

// evict deletes a scope, which must have no agents. What still refers to its View is denied
// everything: no change of permissions reaches that View any more. It must be called with mu
// held.
func (x *scopeIndex) evict(key scopeKey) {
	s := x.byKey[key]
	delete(x.byKey, key)
	delete(x.all, s)
	removeFrom(x.byRole, s)
	removeFrom(x.byGroup, s)
	s.PublishView(new(toolgroups.View))
}

// removeFrom removes a scope from all keys of an index.
func removeFrom[K comparable](index map[K]map[*scope]bool, s *scope) {
	for _, scopes := range index {
		delete(scopes, s)
	}
	maps.DeleteFunc(index, func(_ K, scopes map[*scope]bool) bool { return len(scopes) == 0 })
}
