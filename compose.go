package rolecall

import (
	"context"
	"errors"
	"path/filepath"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/internal/embedding"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

type closableStore interface {
	journal.Store
	Close() error
}

func openStore(dir string) (closableStore, error) {
	if dir == "" {
		return memory.New(), nil
	}
	return persist.Open(dir)
}

// composition is an organization without configuration files.
type composition struct {
	store  closableStore
	rt     *runtime.Runtime
	loader *modules.Loader
}

// compose wires the store, the runtime, the built-in tools and the modules together. It
// implements embedding.Opener.
func compose(ctx context.Context, o embedding.Options) (*embedding.Host, error) {
	store, err := openStore(o.Data)
	if err != nil {
		return nil, err
	}
	c := &composition{store: store}
	if err := c.start(ctx, o); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return &embedding.Host{Runtime: c.rt, Close: c.close}, nil
}

func (c *composition) start(ctx context.Context, o embedding.Options) (err error) {
	groups := toolgroups.NewManager(toolgroups.ReservedIDs()...)
	config := runtime.Config{Store: c.store, Groups: groups, Model: o.Model, Workspace: o.Workspace, Console: o.Console, Log: o.Log}
	if o.Data != "" {
		config.Data, config.Workspaces = o.Data, filepath.Join(o.Data, "workspaces")
	}
	if c.rt, err = runtime.New(config); err != nil {
		return err
	}
	if err := builtin.RegisterGroups(groups, c.rt.ToolHost(), builtin.Options{Launcher: o.Launcher, Network: builtin.PublicNetwork}); err != nil {
		return err
	}
	c.loader = modules.NewLoader(groups)
	c.loader.Log = o.Log
	for _, m := range o.Modules {
		if err := c.loader.LoadModule(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (c *composition) close() error {
	var errs []error
	if c.rt != nil {
		errs = append(errs, c.rt.Close())
	}
	if c.loader != nil {
		errs = append(errs, c.loader.CloseAll())
	}
	return errors.Join(append(errs, c.store.Close())...)
}
