package org

import (
	"time"

	"github.com/rolecall/rolecall/identity"
)

// SpawnResult describes a new agent to the principal that created it.
type SpawnResult struct {
	ID        identity.AgentID `json:"id"`
	Name      string           `json:"name,omitempty"` // stands for the id in the tools of its task's agents
	Role      identity.RoleID  `json:"roleId"`
	RoleName  string           `json:"roleName"`
	MessageID string           `json:"messageId,omitempty"` // of its first message, if it was sent one
}

// SendResult describes a committed message to its sender.
type SendResult struct {
	MessageID string     `json:"messageId"`
	Due       *time.Time `json:"scheduledDeliveryTime,omitempty"` // nil unless the message is delayed
}
