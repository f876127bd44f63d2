// Package rolecalltest tests modules and models of your own.
//
//   - CheckProperties checks that rolecall handles the tool groups of a module as it handles
//     all others.
//   - Gate calls the tools of a module as a role would, through the real gate.
//   - Script is a model with answers that are written down.
//
// Only tests import it: it links gopter.
package rolecalltest

import (
	"context"
	"fmt"
	"log/slog"
	"testing"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/toolgroups"
)

// newRuntime returns a runtime without a model.
func newRuntime(store journal.Store, groups *toolgroups.Manager) (*runtime.Runtime, error) {
	noModel := func(string) (model.Model, error) { return nil, errcode.New(errcode.InvalidConfig, "there is no model") }
	return runtime.New(runtime.Config{Store: store, Groups: groups, Model: noModel, Log: slog.New(slog.DiscardHandler)})
}

// host is an organization in memory with the built-in tools and some modules.
type host struct {
	rt     *runtime.Runtime
	groups *toolgroups.Manager
}

// newHost loads modules for a test. The test fails at once if one cannot be loaded.
func newHost(t testing.TB, list []rolecall.Module) *host {
	t.Helper()
	store, groups := memory.New(), toolgroups.NewManager(toolgroups.ReservedIDs()...)
	rt, err := newRuntime(store, groups)
	if err != nil {
		t.Fatal(err)
	}
	loader := modules.NewLoader(groups)
	t.Cleanup(func() {
		for _, close := range []func() error{rt.Close, loader.CloseAll, store.Close} {
			if err := close(); err != nil {
				t.Errorf("close the organization of the test: %v", err)
			}
		}
	})
	if err := builtin.RegisterGroups(groups, rt.ToolHost(), builtin.Options{Network: builtin.PublicNetwork}); err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if err := loader.LoadModule(context.Background(), m); err != nil {
			t.Fatalf("load the module %s: %v", nameOf(m), err)
		}
	}
	return &host{rt, groups}
}

// nameOf returns the name of a module for messages.
func nameOf(m rolecall.Module) string {
	if m == nil {
		return "nil"
	}
	return fmt.Sprintf("%q", m.Name())
}
