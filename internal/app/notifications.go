package app

import (
	"context"
	"net/url"

	"github.com/rolecall/rolecall/internal/app/notify"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/metrics"
)

// openNotifications makes the engine of notifications. Only a process that serves the API has one.
func (a *App) openNotifications() error {
	if !a.options.Serve {
		return nil
	}
	e, err := notify.NewEngine(notify.Config{Journal: a.store, Store: a.Runtime.OwnerStore(), Redact: a.secrets.redactor, Log: a.options.Warn})
	if err == nil {
		a.notifications.Store(e)
	}
	return err
}

// StartNotifications starts to send notifications and returns. Sending ends with ctx or stop, which
// ends the attempts in progress and waits for them. It is called after MarkReady. It does nothing
// without Options.Serve.
func (a *App) StartNotifications(ctx context.Context) (stop func()) {
	if e := a.notifications.Load(); e != nil {
		return e.Run(ctx)
	}
	return func() {}
}

// replaceNotifications replaces all receivers by the receivers of an installed configuration. A
// recorded configuration has no receivers: its secrets may have been taken back since. Once
// the files are applied, their receivers are told what happened meanwhile.
func (a *App) replaceNotifications(ctx context.Context, ch *configChange) error {
	e := a.notifications.Load()
	if e == nil {
		return nil
	}
	if ch.restored {
		e.SuspendReceivers()
		return nil
	}
	return e.ReplaceReceivers(ctx, ch.cfg.Notifications)
}

// deliveries returns what was sent to each receiver of notifications.
func (a *App) deliveries() map[string]metrics.DeliveryCounts {
	if e := a.notifications.Load(); e != nil {
		return e.Deliveries()
	}
	return nil
}

// notificationSecrets returns the secrets of notifications: the keys, and the addresses with their
// paths, which are the secrets of chats.
func notificationSecrets(cfg *config.Config) (list []string) {
	for _, n := range cfg.Notifications {
		list = append(list, string(n.Secret))
		list = append(list, redact.ValueSecrets(string(n.URL))...)
		if u, err := url.Parse(string(n.URL)); err == nil && n.Format == config.NotifySlack {
			list = append(list, u.Path)
		}
	}
	return list
}
