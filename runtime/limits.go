package runtime

import (
	"cmp"

	"github.com/rolecall/rolecall/org"
)

// Limits bounds what agents make. A zero limit means the default.
type Limits struct {
	org.TaskLimits     // default 200 roles, 1,000 agents, 32 deep
	Calls          int // tool calls of one answer; default 256
	Mail           int // messages that wait for one agent; default 1,000
}

var defaultLimits = Limits{TaskLimits: org.TaskLimits{Roles: 200, Agents: 1000, Depth: 32}, Calls: 256, Mail: 1000}

// orDefault returns l with its zero limits replaced by those of other.
func (l Limits) orDefault(other Limits) Limits {
	return Limits{
		TaskLimits: org.TaskLimits{
			Roles: cmp.Or(l.Roles, other.Roles), Agents: cmp.Or(l.Agents, other.Agents), Depth: cmp.Or(l.Depth, other.Depth),
		},
		Calls: cmp.Or(l.Calls, other.Calls),
		Mail:  cmp.Or(l.Mail, other.Mail),
	}
}
