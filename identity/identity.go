// Package identity owns the names of those who act and of what they act on:
// typed ids, so that no role is taken for an agent, and Principal, who calls.
//
// Ids are opaque text. Those a call makes are derived from the call (Derive),
// so that the same call repeated finds what it made. The package holds words
// only: what a Principal may do is decided by org and gate.
package identity

import (
	"crypto/sha1"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
)

// AgentID names an agent; the zero AgentID is nobody.
type AgentID string

// RoleID names a role.
type RoleID string

// TaskID names a task.
type TaskID string

// CallID names one call of a tool; it is the call's idempotency key.
type CallID string

// User names a person or program outside the organization.
type User string

// Kind says what sort of caller a Principal is.
type Kind uint8

// The kinds of Principal. The zero Kind is nobody and may do nothing.
const (
	None          Kind = iota
	Agent              // an agent of the organization
	Caller             // somebody outside, bounded by a role
	Operator           // who holds the data directory or the operator's token
	Configuration      // the operator's configuration files
)

// Principal is who calls. The zero Principal is nobody: every decision about
// it is a denial.
type Principal struct {
	Kind  Kind
	Agent AgentID // of an Agent
	Role  RoleID  // of a Caller
	User  User    // of a Caller or an Operator
}

// ByAgent is the Principal of an agent.
func ByAgent(id AgentID) Principal { return Principal{Kind: Agent, Agent: id} }

// ByCaller is the Principal of somebody outside who acts in a role.
func ByCaller(user User, role RoleID) Principal {
	return Principal{Kind: Caller, User: user, Role: role}
}

// ByOperator is the Principal of the operator.
func ByOperator(user User) Principal { return Principal{Kind: Operator, User: user} }

// String names the principal for people and records.
func (p Principal) String() string {
	switch p.Kind {
	case Agent:
		return "agent:" + string(p.Agent)
	case Caller:
		return "user:" + string(p.User) + "@" + string(p.Role)
	case Operator:
		return "operator"
	case Configuration:
		return "config"
	}
	return "nobody"
}

// Key gives a text that no other principal has: of an agent its id, of a
// caller a derived id that is also safe as a file name; "" of all others.
func (p Principal) Key() string {
	switch p.Kind {
	case Agent:
		return string(p.Agent)
	case Caller:
		return Derive("caller", string(p.User), string(p.Role))
	}
	return ""
}

// namespace is the name space of derived ids.
var namespace = uuid.MustParse("6f2f5f0e-6c1b-5a57-9d0c-2f3c1d6a7b10")

// separatorEscaper keeps the byte that ends a part out of the parts.
var separatorEscaper = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")

// Derive gives the id that parts come to: the same parts always give the same
// id, and no two lists share one but by a collision of their hashes (74 bits
// where the time is part of the id, else 122). When the first part is an id that
// sorts by age, what is derived from it sorts beside it (uuid v8: its time, then
// a hash); else it is a uuid v5. So what is made together is stored together.
// Safe for concurrent use.
func Derive(parts ...string) string {
	id := uuidV5(parts)
	if len(parts) > 0 {
		if from, err := uuid.Parse(parts[0]); err == nil && (from.Version() == 7 || from.Version() == 8) {
			copy(id[:timestampSize], from[:timestampSize])
			id[6] = id[6]&0x0F | 0x80
		}
	}
	return id.String()
}

// DeriveAt is Derive for something of a moment: the id (uuid v8) sorts among
// those of its millisecond.
func DeriveAt(t time.Time, parts ...string) string {
	id := uuidV5(parts)
	ms := binary.BigEndian.AppendUint64(nil, uint64(t.UnixMilli()))
	copy(id[:timestampSize], ms[2:])
	id[6] = id[6]&0x0F | 0x80
	return id.String()
}

// timestampSize is how many bytes of an id that sorts by age tell the millisecond.
const timestampSize = 6

// uuidV5 gives the uuid v5 of parts.
func uuidV5(parts []string) uuid.UUID {
	name := append(make([]byte, 0, 256), namespace[:]...)
	for _, part := range parts {
		name = append(name, separatorEscaper.Replace(part)...)
		name = append(name, 0)
	}
	sum := sha1.Sum(name)
	id := uuid.UUID(sum[:16])
	id[6], id[8] = id[6]&0x0F|0x50, id[8]&0x3F|0x80 // version 5 of RFC 9562
	return id
}

// NewID gives a new random id (uuid v7, so ids sort by age).
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
