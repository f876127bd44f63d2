package modules

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config is the operator's configuration of one module.
type Config struct {
	Name     string          // of the instance; "" is the kind's name
	Settings json.RawMessage // a JSON object that the kind decodes; empty is all defaults
	Host     ModuleHost
}

// ModuleHost is what the process provides to a module. Any field may be nil: then nothing is
// logged, stored, or refreshed.
type ModuleHost struct {
	Log   *slog.Logger
	Store OwnerStore
	// Changed notifies the Loader that the module's groups have changed:
	// Loader.NotifyChanged. It returns at once.
	Changed func()
}

// OwnerStore is a persistent store with one value for each owner of groups. Its methods are
// safe for concurrent use.
type OwnerStore interface {
	// ReadValue returns the value of owner, nil when there is none.
	ReadValue(ctx context.Context, owner toolgroups.GroupOwner) ([]byte, error)
	// WriteValue sets the value of owner and returns when it is on disk. nil
	// removes the value.
	WriteValue(ctx context.Context, owner toolgroups.GroupOwner, value []byte) error
}

// Constructor makes a module of one kind with the name c.Name. It acquires no resources
// that have to be closed; Provision does that.
type Constructor func(c Config) (Module, error)

// ModuleKind is a kind of module.
type ModuleKind struct {
	Name string // the type in a configuration file
	New  Constructor
}

// KindName returns the name of the kind.
func (k ModuleKind) KindName() string { return k.Name }

// KindRegistry is the set of the kinds of module. The zero KindRegistry is empty. Register all
// kinds before the first NewModule; after that NewModule and ListKinds are safe for concurrent use.
type KindRegistry struct {
	kinds map[string]Constructor
}

// RegisterKind adds a kind. It rejects an invalid name and a nil constructor with
// invalid_config, and a kind of the same name with conflict.
func (r *KindRegistry) RegisterKind(k ModuleKind) error {
	kind, fn := k.Name, k.New
	if err := tool.CheckName(kind); err != nil {
		return errcode.New(errcode.InvalidConfig, "register module kind: %s", strings.TrimPrefix(err.Error(), "tool "))
	}
	if fn == nil {
		return errcode.New(errcode.InvalidConfig, "register module kind %q: it has no constructor", kind)
	}
	if _, ok := r.kinds[kind]; ok {
		return errcode.New(errcode.Conflict, "register module kind %q: it is registered already", kind)
	}
	if r.kinds == nil {
		r.kinds = make(map[string]Constructor)
	}
	r.kinds[kind] = fn
	return nil
}

// ListKinds returns the names of the kinds, sorted.
func (r *KindRegistry) ListKinds() []string { return slices.Sorted(maps.Keys(r.kinds)) }

// NewModule makes a module. It rejects, with invalid_config, a kind that is not registered, an
// invalid name, and a module that does not have the configured name. A panic of the
// constructor is an error.
func (r *KindRegistry) NewModule(kind string, c Config) (Module, error) {
	fn, ok := r.kinds[kind]
	if !ok {
		return nil, errcode.New(errcode.InvalidConfig, "make module: unknown kind %q; registered are: %s", kind, strings.Join(r.ListKinds(), ", "))
	}
	if c.Name == "" {
		c.Name = kind
	}
	if err := CheckName(c.Name); err != nil {
		return nil, fmt.Errorf("make module of kind %q: %w", kind, err)
	}
	var m Module
	err := recoverPanic(func() (err error) {
		if m, err = fn(c); err == nil {
			err = checkModuleName(m, c.Name)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("make module %q of kind %q: %w", c.Name, kind, err)
	}
	return m, nil
}

// checkModuleName checks that a constructor returned a module with this name.
func checkModuleName(m Module, name string) error {
	if m == nil {
		return errcode.New(errcode.InvalidConfig, "the constructor returned no module")
	}
	if got := m.Name(); got != name {
		return errcode.New(errcode.InvalidConfig, "the module has the name %.64q", got)
	}
	return nil
}
