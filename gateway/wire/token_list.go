package wire

import (
	"time"

	"github.com/rolecall/rolecall/identity"
)

// Token describes a token of the configuration, without the token and its digest.
type Token struct {
	Name     string          `json:"name"`
	Scope    string          `json:"scope"`          // role, metrics or operator
	Role     string          `json:"role,omitempty"` // name of the role, or its id if the role is gone
	RoleID   identity.RoleID `json:"roleId,omitempty"`
	Audience string          `json:"audience,omitempty"`
	Expires  *time.Time      `json:"expires,omitempty"` // nil never expires
	Expired  bool            `json:"expired,omitempty"`
}
