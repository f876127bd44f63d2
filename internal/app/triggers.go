package app

import (
	"context"
	"time"

	"github.com/rolecall/rolecall/internal/app/trigger"
	"github.com/rolecall/rolecall/internal/clock"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/toolgroups"
)

// openTriggers makes the engine of triggers. Only a process that serves the API has one.
func (a *App) openTriggers() error {
	if !a.options.Serve {
		return nil
	}
	e, err := trigger.NewEngine(trigger.Config{
		Runtime: a.Runtime, Start: a.startClientTask, LastSeq: a.store.LastSeq, Now: clock.NewForward(time.Now).Now, Log: a.options.Warn,
	})
	if err == nil {
		a.triggers.Store(e)
	}
	return err
}

// observeEvent passes an event of a commit on.
func (a *App) observeEvent(e journal.Event) {
	a.metrics.ObserveEvent(e)
	if t := a.triggers.Load(); t != nil {
		t.ObserveEvent(e)
	}
}

// StartTriggers begins to start what the schedules of triggers and ended tasks fire, and returns.
// That ends with ctx or stop, which waits for a start in progress. It is called after MarkReady. It
// does nothing without Options.Serve.
func (a *App) StartTriggers(ctx context.Context) (stop func()) {
	if e := a.triggers.Load(); e != nil {
		return e.RunDue(ctx)
	}
	return func() {}
}

// replaceTriggers replaces all triggers by the triggers of an installed configuration. They
// are bound to the ids of the roles that the configuration created. A recorded configuration has no
// triggers: their secrets may have been taken back since.
func (a *App) replaceTriggers(ch *configChange) {
	e := a.triggers.Load()
	if e == nil {
		return
	}
	if ch.restored {
		e.SuspendRules()
		return
	}
	var rules []trigger.Rule
	for _, t := range ch.cfg.Triggers {
		r, err := trigger.NewRule(t)
		if err != nil { // reading the configuration has checked it
			a.options.Warn.Error("trigger not run", "trigger", t.Name, "error", err)
			continue
		}
		role, _ := a.Runtime.Org().ConfiguredRole(t.Role)
		r.RoleID, r.Narrowed = role.ID, triggerGroups(t.Groups)
		if t.After.Role != "" {
			after, _ := a.Runtime.Org().ConfiguredRole(t.After.Role)
			r.AfterRole = after.ID
		}
		rules = append(rules, r)
	}
	e.ReplaceRules(rules)
}

// triggerGroups returns what narrows the tasks of a trigger: all groups, unless it names some.
func triggerGroups(g config.Groups) *toolgroups.GroupSet {
	if set := groupSet(g); set != nil {
		return set
	}
	all := toolgroups.AllGroups()
	return &all
}

// triggerSecrets returns the secrets of triggers.
func triggerSecrets(cfg *config.Config) (list []string) {
	for _, t := range cfg.Triggers {
		for _, secret := range hookSecrets(t.Hook) {
			list = append(list, string(secret))
		}
	}
	return list
}

// hookSecrets returns the secret of a hook.
func hookSecrets(h *config.TriggerHook) (list []yamldoc.Secret) {
	if h != nil && h.HMAC != nil {
		list = append(list, h.HMAC.Secret)
	}
	if h != nil && h.Token != nil {
		list = append(list, h.Token.Secret)
	}
	return list
}
