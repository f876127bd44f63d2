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

// Module brings tool groups. Its life, which a Loader leads it through:
//
//  1. A Constructor makes it from its configuration: it checks what the
//     operator said and acquires nothing.
//  2. Provision, if it is a Provisioner: it acquires what it needs.
//  3. Validate, if it is a Validator: it says whether it will work.
//  4. Groups: its groups are registered under its own owner, all or none.
//  5. It serves: its tools are called, possibly concurrently. Whenever its
//     Groups are others it says Host.Changed and is asked for them again.
//  6. It ends, because it is unloaded, or replaced by a successor that went
//     through 1 to 4 beside it. No call enters it any more.
//  7. When the calls that had entered have left it is closed, if it is an
//     io.Closer.
//
// A Lazy module is registered first, with the groups it knows, and goes
// through 2 and 3 at its first call.
//
// A value is loaded once. Name, Provision, Validate, Groups and Close are
// called one at a time. A method that panics has failed, no more; one that
// does not return in time has failed too, and nothing else is asked of the
// module before it returns.
type Module interface {
	// Name names the instance: 1 to 128 ASCII letters, digits, '_', '.' or '-'.
	Name() string
	// Groups gives the groups with their tools: after Provision and Validate,
	// and again after each Host.Changed. A tool that is the same value with the
	// same definition as before stays as it is.
	Groups() []toolgroups.Group
}

// Provisioner is a Module that acquires what it needs (connections, programs,
// files) before it brings tools. ctx bounds Provision only; it ends after
// Loader.StepTimeout at the latest.
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

// Lazy is a Module that may know its groups before it is provisioned, from a
// record of an earlier life. Known may be called before Provision and instead
// of Groups until Provision has succeeded; false is that it does not know, and
// then the module is provisioned when it is loaded.
//
// The first call of a tool that is known provisions and validates the module,
// then the tool is called, then Groups are asked for. A Provision that failed
// is called again by a later call: it leaves nothing behind when it fails.
type Lazy interface {
	CachedGroups() ([]toolgroups.Group, bool)
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
