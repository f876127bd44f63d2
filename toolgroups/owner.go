package toolgroups

import (
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
)

// Owner is the right to register groups under one name. [Manager.ClaimOwner] returns
// it once for each name. So code that only knows the name cannot replace the groups.
// The zero Owner registers nothing. An Owner is safe for concurrent use.
type Owner struct {
	manager *Manager
	name    GroupOwner
}

// ClaimOwner returns the Owner with this name. The error has the code Conflict if the
// name is claimed already, and InvalidGroupDef if it is empty.
//
// The part that registers the built-in groups claims Builtin and drops the Owner. From
// then on nothing can change the reserved groups.
func (m *Manager) ClaimOwner(name GroupOwner) (*Owner, error) {
	if name == "" {
		return nil, errcode.New(errcode.InvalidGroupDef, "claim an owner of tool groups: the name is missing")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims[name] != nil {
		return nil, errcode.New(errcode.Conflict, "claim the owner %q of tool groups: it is claimed already; choose another name", name)
	}
	o := &Owner{manager: m, name: name}
	m.claims[name] = o
	return o, nil
}

// Name returns the name of o as it stands in GroupInfo and in permissions.
func (o *Owner) Name() GroupOwner { return o.name }

// Release ends the right, so that the name can be claimed again. Groups that are still
// registered stay, and the next Owner of the name may replace them.
func (o *Owner) Release() {
	m := o.manager
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims[o.name] == o {
		delete(m.claims, o.name)
	}
}

// RegisterGroup registers one group. It is [Tx.RegisterGroup] in an Update of its own.
func (o *Owner) RegisterGroup(g Group) (warning WarningCode, err error) {
	err = o.update(func(tx *Tx) (err error) {
		warning, err = tx.RegisterGroup(o, g)
		return err
	})
	if err != nil {
		return "", err
	}
	return warning, nil
}

// UnregisterGroup removes one group. It is [Tx.UnregisterGroup] in an Update of its own.
func (o *Owner) UnregisterGroup(id GroupID) error {
	return o.update(func(tx *Tx) error { return tx.UnregisterGroup(o, id) })
}

// ReplaceTools replaces the tools of a group and keeps its description, references and
// prompts. The error has the code GroupNotFound, InvalidGroupDef or DuplicateToolName;
// nothing has changed then.
func (o *Owner) ReplaceTools(id GroupID, tools []tool.Tool) error {
	return o.update(func(tx *Tx) error { return tx.replaceTools(o, id, tools) })
}

func (o *Owner) update(fn func(*Tx) error) error {
	if o == nil || o.manager == nil {
		return errNoOwner
	}
	return o.manager.Update(fn)
}

// errNoOwner is the error of a zero Owner.
var errNoOwner = errcode.New(errcode.InvalidGroupDef, "change tool groups: the owner was not claimed; see Manager.ClaimOwner")

// check returns an error unless o is a current Owner of m.
func (o *Owner) check(m *Manager) error {
	if o == nil || o.manager != m {
		return errNoOwner
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.claims[o.name] != o {
		return errcode.New(errcode.InvalidGroupDef, "change tool groups: the owner %q was released", o.name)
	}
	return nil
}
