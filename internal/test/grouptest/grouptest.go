// Package grouptest registers tool groups in tests, under owners that are named by a
// string. CheckedManager compares a registry with a naive model of it, Registry.
package grouptest

import (
	"sync"
	"weak"

	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// key identifies an owner of one registry.
type key struct {
	manager weak.Pointer[toolgroups.Manager]
	name    toolgroups.GroupOwner
}

// The owners that ClaimOwner claimed. A registry keeps its owners in memory, and this map
// keeps no registry there.
var (
	mu     sync.Mutex
	owners = map[key]weak.Pointer[toolgroups.Owner]{}
)

// ClaimOwner returns the owner with this name. It claims the owner once for each
// registry.
func ClaimOwner(m *toolgroups.Manager, name toolgroups.GroupOwner) (*toolgroups.Owner, error) {
	mu.Lock()
	defer mu.Unlock()
	k := key{weak.Make(m), name}
	if o := owners[k].Value(); o != nil {
		return o, nil
	}
	o, err := m.ClaimOwner(name)
	if err == nil {
		owners[k] = weak.Make(o)
	}
	return o, err
}

// RegisterGroup registers a group of the named owner.
func RegisterGroup(m *toolgroups.Manager, owner toolgroups.GroupOwner, g toolgroups.Group) (toolgroups.WarningCode, error) {
	o, err := ClaimOwner(m, owner)
	if err != nil {
		return "", err
	}
	return o.RegisterGroup(g)
}

// UnregisterGroup removes a group of the named owner.
func UnregisterGroup(m *toolgroups.Manager, owner toolgroups.GroupOwner, id toolgroups.GroupID) error {
	o, err := ClaimOwner(m, owner)
	if err != nil {
		return err
	}
	return o.UnregisterGroup(id)
}

// ReplaceTools replaces the tools of a group of the named owner.
func ReplaceTools(m *toolgroups.Manager, owner toolgroups.GroupOwner, id toolgroups.GroupID, tools []tool.Tool) error {
	o, err := ClaimOwner(m, owner)
	if err != nil {
		return err
	}
	return o.ReplaceTools(id, tools)
}
