package modules

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// Config is what the operator says about one module.
type Config struct {
	Name     string          // the instance; empty is the kind's name
	Settings json.RawMessage // a JSON object for the kind to Decode; empty is all defaults
	Host     Host
}

// Host is what a module may use of the process it is in. Its fields may be
// zero: then nothing is logged, kept, or noticed.
type Host struct {
	Log   *slog.Logger
	Store Store
	// Changed says that the module's Groups are others now. It returns at
	// once; the Loader asks for them soon, once for many calls.
	Changed func()
}

// Store keeps what owners of groups want to find again after a restart: one
// value each. Methods are safe for concurrent use.
type Store interface {
	Get(ctx context.Context, owner toolgroups.Owner) ([]byte, error) // nil when there is none
	// Set returns when the value is on disk; nil removes it.
	Set(ctx context.Context, owner toolgroups.Owner, value []byte) error
}

// Decode reads the settings into a struct that holds the defaults. A setting
// the struct does not know is refused; errors have the code invalid_config.
func (c Config) Decode(into any) error {
	if len(c.Settings) == 0 {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(c.Settings))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, more := d.Token(); more != io.EOF {
			err = fmt.Errorf("more than one document")
		}
	}
	if err != nil {
		return errcode.New(errcode.InvalidConfig, "settings of module %q: %s", c.Name, strings.TrimPrefix(err.Error(), "json: "))
	}
	return nil
}

// Constructor makes a module of one kind, named c.Name. It acquires nothing
// that would need to be closed: that is what Provision is for.
type Constructor func(c Config) (Module, error)

// Kind is a kind of module, by the name that a configuration's type has.
type Kind struct {
	Name string
	New  Constructor
}

// Registry knows the kinds of module there are. The zero Registry is empty
// and ready. Register first, in one place; then New and Kinds are safe for
// concurrent use.
type Registry struct {
	kinds map[string]Constructor
}

// Register adds a kind. It refuses a name that CheckName refuses, a nil
// constructor, and a kind there is already.
func (r *Registry) Register(k Kind) error {
	kind, fn := k.Name, k.New
	if err := tool.CheckName(kind); err != nil {
		return errcode.New(errcode.InvalidConfig, "register kind of module: %s", strings.TrimPrefix(err.Error(), "tool "))
	}
	if fn == nil {
		return errcode.New(errcode.InvalidConfig, "register kind of module %q: it has no constructor", kind)
	}
	if _, taken := r.kinds[kind]; taken {
		return errcode.New(errcode.Conflict, "register kind of module %q: there is one already", kind)
	}
	if r.kinds == nil {
		r.kinds = make(map[string]Constructor)
	}
	r.kinds[kind] = fn
	return nil
}

// Kinds lists the kinds, sorted.
func (r *Registry) Kinds() []string { return slices.Sorted(maps.Keys(r.kinds)) }

// New makes a module. It refuses, with invalid_config, a kind nobody
// registered, a name CheckName refuses, and a module that does not bear the
// name it was given; a constructor that panics has failed.
func (r *Registry) New(kind string, c Config) (Module, error) {
	fn, ok := r.kinds[kind]
	if !ok {
		return nil, errcode.New(errcode.InvalidConfig, "make module: there is no kind %q; there are: %s", kind, strings.Join(r.Kinds(), ", "))
	}
	if c.Name == "" {
		c.Name = kind
	}
	if err := CheckName(c.Name); err != nil {
		return nil, fmt.Errorf("make module of kind %q: %w", kind, err)
	}
	var m Module
	err := guard(func() (err error) {
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

func checkModuleName(m Module, name string) error {
	if m == nil {
		return errcode.New(errcode.InvalidConfig, "the constructor gave no module")
	}
	if got := m.Name(); got != name {
		return errcode.New(errcode.InvalidConfig, "the module calls itself %.64q", got)
	}
	return nil
}
