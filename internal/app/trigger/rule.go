package trigger

import (
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/cron"
	"github.com/rolecall/rolecall/internal/payload"
	"github.com/rolecall/rolecall/toolgroups"
)

// Rule is a trigger of the active configuration, bound to the ids of roles. A trigger whose
// role has no id starts nothing.
type Rule struct {
	config.Trigger
	RoleID    identity.RoleID
	AfterRole identity.RoleID      // of config.Trigger.After.Role
	Narrowed  *toolgroups.GroupSet // what the tasks may use of what the role may

	template *payload.Template
	times    *cron.Schedule   // of config.TriggerCron
	key      *payload.Pointer // to the key in the body; nil for none
}

// NewRule returns a Rule without ids. The error says what is wrong with the trigger; reading
// the configuration has reported it.
func NewRule(t config.Trigger) (r Rule, err error) {
	r.Trigger = t
	if r.template, err = payload.NewTemplate(t.Text, t.Input); err != nil {
		return r, err
	}
	if t.Key.Pointer != "" {
		key, err := payload.ParsePointer(t.Key.Pointer)
		if err != nil {
			return r, err
		}
		r.key = &key
	}
	if t.Type == config.TriggerCron {
		r.times, err = cron.ParseSchedule(t.Schedule, t.Zone)
	}
	return r, err
}
