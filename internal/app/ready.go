package app

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/internal/config"
)

// lifecycle says how far a process is between its start and its end. Its methods are safe
// for concurrent use.
type lifecycle struct {
	ready      chan struct{} // closed by MarkReady
	unresumed  atomic.Int64  // tasks that ResumeAll still resumes
	isStopping atomic.Bool
}

// isReady reports whether MarkReady was called.
func (l *lifecycle) isReady() bool {
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}

// MarkReady lets the requests of clients proceed. It is called when the configuration is
// active; until then they would see an organization without it.
func (a *App) MarkReady() { a.markReady() }

// MarkStopping makes /readyz say that the process shuts down.
func (a *App) MarkStopping() { a.lifecycle.isStopping.Store(true) }

// whenReady returns a handler that holds requests until MarkReady is called. Those for the
// health and the readiness are not held.
func (a *App) whenReady(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := gateway.UntilShutdown(r.Context())
		defer cancel()
		if r.URL.Path != "/healthz" && r.URL.Path != "/readyz" {
			select {
			case <-a.lifecycle.ready:
			case <-ctx.Done():
				wire.WriteError(w, errcode.New(errcode.Conflict, "the process that serves the data directory ended before it was ready"))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// unreadyReasons returns why the process should not be sent work, apart from its store.
func (a *App) unreadyReasons() (list []wire.UnreadyReason) {
	add := func(code, message string, names ...string) {
		list = append(list, wire.UnreadyReason{Code: code, Message: message, Names: names})
	}
	unresumed := a.lifecycle.unresumed.Load()
	switch {
	case a.lifecycle.isStopping.Load():
		add(wire.UnreadyStopping, "the process shuts down")
	case !a.lifecycle.isReady() && unresumed > 0:
		add(wire.UnreadyRecovering, fmt.Sprintf("interrupted tasks that are not resumed yet: %d", unresumed))
	case !a.lifecycle.isReady():
		add(wire.UnreadyStarting, "the configuration is not active yet")
	}
	if names := a.failedModules(); len(names) > 0 {
		add(wire.UnreadyModule, fmt.Sprintf("modules that cannot work: %d", len(names)), names...)
	}
	if names := a.keylessModels(); len(names) > 0 {
		add(wire.UnreadyKey, fmt.Sprintf("models in use without an API key: %d", len(names)), names...)
	}
	return list
}

// failedModules returns the names of the modules that cannot work now, sorted. Some of them are in
// service. The last change of the configuration could not bring the others into service.
func (a *App) failedModules() []string {
	names := a.loader.FailedModules()
	if list := a.notStarted.Load(); list != nil {
		names = append(names, *list...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// unreadyCodes returns the codes of all reasons why the process should not be sent work.
func (a *App) unreadyCodes() (codes []string) {
	if a.Runtime.CheckStorage() != nil {
		codes = append(codes, wire.UnreadyStorageLow)
	}
	for _, reason := range a.unreadyReasons() {
		codes = append(codes, reason.Code)
	}
	return codes
}

// keylessModels returns the names of the models that the organization or a role uses, and
// that have neither an API key nor a fallback, sorted.
func (a *App) keylessModels() []string {
	if active := a.active.Load(); active != nil {
		return active.keyless()
	}
	return nil
}

// keyless returns the names of the models of a configuration that have users and no API key.
func (m *modelSet) keyless(cfg *config.Config) (names []string) {
	for _, d := range cfg.UsedModels() {
		if _, usable := m.byName[d.Name]; !d.HasKey() && !usable && len(modelUsers(cfg, d.Name)) > 0 {
			names = append(names, d.Name)
		}
	}
	slices.SortFunc(names, strings.Compare)
	return names
}
