// Package modules owns what brings tools from outside the core: the Module
// interface, the Registry of the kinds that ship, and the Loader, which takes
// modules through their life.
//
// A module author implements Module, and of Provisioner, Validator and
// io.Closer what the module needs; textstats is the one to copy. The
// composition root lists the kinds once, makes modules of the configuration
// and loads them:
//
//	var kinds modules.Registry
//	err := kinds.Register(modules.Kind{Name: textstats.Kind, New: textstats.New})
//	m, err := kinds.New(textstats.Kind, modules.Config{})
//	loader := modules.NewLoader(rt)
//	err = loader.Load(ctx, m)
//
// The tools of a module belong to the owner Owner(name). The package decides
// no permission and calls no tool (gate), and it lets no module have a group
// or a tool name of another owner (toolgroups).
package modules

import (
	"context"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Module brings tool groups. A value is loaded once; the Loader calls its
// methods one at a time, and its tools concurrently. A method that panics has
// failed, no more.
type Module interface {
	// Name names the instance: 1 to 128 ASCII letters, digits, '_', '.' or '-'.
	Name() string
	// Groups gives the groups with their tools. It is called once, after
	// Provision and Validate.
	Groups() []toolgroups.Group
}

// Provisioner is a Module that acquires what it needs (connections, programs,
// files) before it brings tools. ctx bounds Provision only.
type Provisioner interface {
	Provision(ctx context.Context) error
}

// Validator is a Module that can say that it will not work. Validate follows
// Provision and should change nothing.
//
// A Module that is an io.Closer is closed exactly once, when no call is in it
// any more; also when Provision or Validate failed, and then there may be
// little to close.
type Validator interface {
	Validate() error
}

// Owner is who owns the groups of the module of this name: the server that a
// role is confined to by it.
func Owner(name string) toolgroups.Owner { return toolgroups.Server(name) }

// reservedNames would read like one who is no module.
var reservedNames = [...]string{"builtin", "config", "operator", "root"}

// CheckName says whether name may name a module: the rule for tools' names,
// and none of builtin, config, operator and root, in any case. The error has
// the code invalid_config.
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
