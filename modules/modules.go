// Package modules defines the interface of modules, which add tools to the core,
// and loads, reloads and unloads them.
//
// A module author implements Module and, where needed, Provisioner, Validator, LazyModule
// and io.Closer; package textstats is an example to copy. The program registers the
// kinds of module once, makes modules from its configuration and loads them:
//
//	var kinds modules.KindRegistry
//	err := kinds.RegisterKind(modules.ModuleKind{Name: textstats.Kind, New: textstats.New})
//	m, err := kinds.NewModule(textstats.Kind, modules.Config{})
//	loader := modules.NewLoader(groups)
//	err = loader.LoadModule(ctx, m)
//
// The tools of a module belong to the owner OwnerOf(name). A module cannot register a
// group id or a tool name of another owner; package toolgroups rejects it. The
// package checks no permissions: package gate does, and calls the tools. It has more than
// sixty exported names: the optional interfaces of modules, the loader, and the pins of
// definitions that come from outside.
package modules

import (
	"context"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Module provides tool groups. A Loader takes it through these steps:
//
//  1. A Constructor makes it from its configuration. It checks the settings and
//     acquires no resources.
//  2. Provision, if it is a Provisioner, acquires its resources.
//  3. Validate, if it is a Validator, checks the provisioned module.
//  4. ToolGroups returns its groups. They are registered under its owner, all or none.
//  5. It is in service: its tools are called, possibly concurrently. When its groups
//     change it calls ModuleHost.Changed, and ToolGroups is called again.
//  6. It ends, because it is unloaded, or replaced by a module that has been through
//     steps 1 to 4 meanwhile. New calls are rejected.
//  7. When no call holds a lease any more it is closed, if it is an io.Closer. That
//     happens exactly once, also when Provision or Validate failed.
//
// A LazyModule is registered first, with the groups it has cached, and goes through
// steps 2 and 3 at its first call.
//
// A value can be loaded once. Name, Provision, Validate, ToolGroups and Close are called
// one at a time. A panic in one of them is the error of that step. So is a method
// that does not return in time; no other method is called before it returns.
type Module interface {
	// Name returns the name of the instance: 1 to 128 ASCII letters, digits, '_',
	// '.' or '-'.
	Name() string
	// ToolGroups returns the groups with their tools. It is called after Provision and
	// Validate, and again after ModuleHost.Changed. A tool that is the same value with the
	// same definition as before stays registered unchanged.
	//
	// A group without an id has the name of the module as its id. A group without a
	// description has the description of the module, see Describer.
	ToolGroups() []toolgroups.Group
}

// Describer is a Module that says what it is for, in a few words for models and people.
// Description is called with ToolGroups. Without it the description is "Tools of the
// module NAME".
type Describer interface {
	Description() string
}

// Provisioner is a Module that acquires resources, such as connections, programs or
// files, before its groups are registered. ctx bounds Provision only, not the use of
// the resources; it ends after Loader.StepTimeout at the latest.
type Provisioner interface {
	Provision(ctx context.Context) error
}

// Validator is a Module that can check whether it will work. Validate is called after
// Provision and should change nothing.
type Validator interface {
	Validate() error
}

// LazyModule is a Module that may know its groups before it is provisioned, for example
// from a record of an earlier run. CachedGroups is called in place of ToolGroups until
// Provision has succeeded. If it returns false, the module is provisioned when it is
// loaded.
//
// The first call of a cached tool provisions and validates the module, then calls the
// tool; then ToolGroups is called. After a failure a later call runs Provision again, so
// Provision must release everything when it fails.
type LazyModule interface {
	CachedGroups() ([]toolgroups.Group, bool)
}

// OwnerOf returns the owner of the groups of the module of this name. Roles that are
// restricted to a server name it by the same name.
func OwnerOf(name string) toolgroups.GroupOwner { return toolgroups.ServerOwner(name) }

// reservedNames could be mistaken for something that is not a module.
var reservedNames = [...]string{"builtin", "config", "operator", "root"}

// CheckName returns an error unless name is a valid module name. It must follow the
// rule for tool names. It must not be builtin, config, operator or root, in upper or
// lower case. The error has the code invalid_config.
func CheckName(name string) error {
	if err := tool.CheckName(name); err != nil {
		return errcode.New(errcode.InvalidConfig, "module %s", strings.TrimPrefix(err.Error(), "tool "))
	}
	for _, reserved := range reservedNames {
		if strings.EqualFold(name, reserved) {
			return errcode.New(errcode.InvalidConfig, "module name %q is reserved; choose another", name)
		}
	}
	return nil
}
