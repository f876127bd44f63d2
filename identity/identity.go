// Package identity defines the identifiers of agents, roles, tasks, calls and users, and
// [Principal], the caller on whose behalf something happens.
//
// Identifiers have different types, so that the compiler rejects a role where an agent is
// expected. They are opaque strings:
//
//	task := identity.TaskID(identity.NewID())            // random, sorts by age
//	agent := identity.DeriveID(string(callID), "agent")    // the same for the same call
//
// What a call creates gets an id that is derived from the call. A call that is repeated
// after a crash then finds what it has created already.
//
// The package makes no decisions. Packages org and gate decide what a Principal may do.
package identity

import (
	"crypto/sha1"
	"encoding/binary"
	"strings"
	"time"

	"github.com/google/uuid"
)

// AgentID identifies an agent. The zero AgentID is no agent.
type AgentID string

// RoleID identifies a role.
type RoleID string

// TaskID identifies a task.
type TaskID string

// CallID identifies one call of a tool. It is the idempotency key of the call.
type CallID string

// UserName is the name of a person or program outside the organization.
type UserName string

// PrincipalKind is the kind of a Principal.
type PrincipalKind uint8

// The kinds of Principal. The zero Kind may do nothing.
const (
	None          PrincipalKind = iota
	Agent                       // an agent of the organization
	Caller                      // an external user who acts in a role
	Operator                    // the holder of the data directory or of an operator token
	Configuration               // the configuration files of the operator
	Monitor                     // the holder of a token that may read metrics and nothing else
)

// Principal is the originator of a call or of a change. Everything is denied to the zero
// Principal. Principals are comparable.
type Principal struct {
	Kind  PrincipalKind
	Agent AgentID  // of an Agent
	Role  RoleID   // of a Caller
	User  UserName // of a Caller, an Operator or a Monitor

	// Within limits a Caller to some tool groups, beyond the limits of its role: a text that
	// org.Org.LimitTo returns. "" is no limit. It says where a request comes from and not who has
	// sent it, so String and Key do not contain it.
	Within string
}

// Holder returns p without Within: who it is, for limits and counts of a sender.
func (p Principal) Holder() Principal {
	p.Within = ""
	return p
}

// ByAgent returns the Principal of an agent.
func ByAgent(id AgentID) Principal { return Principal{Kind: Agent, Agent: id} }

// ByCaller returns the Principal of an external user who acts in a role.
func ByCaller(user UserName, role RoleID) Principal {
	return Principal{Kind: Caller, User: user, Role: role}
}

// ByOperator returns the Principal of the operator. user is for the record only.
func ByOperator(user UserName) Principal { return Principal{Kind: Operator, User: user} }

// ByMonitor returns the Principal of a program that reads metrics. It may do nothing in the
// organization.
func ByMonitor(user UserName) Principal { return Principal{Kind: Monitor, User: user} }

// String returns a name of p for people and for records, such as "agent:ID",
// "user:NAME@ROLE" or "operator". It is "nobody" for the zero Principal. Different
// callers may have the same String; use Key to tell them apart.
func (p Principal) String() string {
	switch p.Kind {
	case Agent:
		return "agent:" + string(p.Agent)
	case Caller:
		return callerPrefix + string(p.User) + "@" + string(p.Role)
	case Operator:
		return "operator"
	case Configuration:
		return "config"
	case Monitor:
		return "monitor:" + string(p.User)
	}
	return "nobody"
}

// ParseCaller returns the external caller whose String is text. It reports false for any other
// principal. A role has no "@" in its id.
func ParseCaller(text string) (Principal, bool) {
	name, external := strings.CutPrefix(text, callerPrefix)
	at := strings.LastIndexByte(name, '@')
	if !external || at < 0 {
		return Principal{}, false
	}
	return ByCaller(UserName(name[:at]), RoleID(name[at+1:])), true
}

// callerPrefix begins the String of an external caller.
const callerPrefix = "user:"

// Key returns a text that identifies an agent or an external caller. For an agent that is
// its id, for a caller an id derived from user and role. The text is safe as a file name.
// It returns "" for other kinds.
func (p Principal) Key() string {
	switch p.Kind {
	case Agent:
		return string(p.Agent)
	case Caller:
		return DeriveID("caller", string(p.User), string(p.Role))
	}
	return ""
}

// namespace is the UUID namespace of derived ids. It must never change.
var namespace = uuid.MustParse("6f2f5f0e-6c1b-5a57-9d0c-2f3c1d6a7b10")

// separatorEscaper escapes the byte that terminates a part, so that different lists of
// parts have different encodings.
var separatorEscaper = strings.NewReplacer("\x00", "\x01\x01", "\x01", "\x01\x02")

// DeriveID returns the id of a list of parts. The same parts always have the same id, and
// different lists have different ids, except for collisions of hashes of 122 bits.
//
// The first part may be an id that sorts by age (UUID version 7 or 8). Then the result is a UUID
// version 8 with the same time and a hash of 74 bits. It sorts next to that id, so that what is
// created together is stored together. Otherwise the result is a UUID
// version 5. DeriveID is safe for concurrent use.
func DeriveID(parts ...string) string {
	id := uuidV5(parts)
	if len(parts) > 0 {
		if from, err := uuid.Parse(parts[0]); err == nil && (from.Version() == 7 || from.Version() == 8) {
			copy(id[:timestampSize], from[:timestampSize])
			id[6] = id[6]&0x0F | 0x80
		}
	}
	return id.String()
}

// DeriveIDAt is DeriveID for something that happens at the time t. The id is a UUID version 8
// and sorts among the ids of the same millisecond.
func DeriveIDAt(t time.Time, parts ...string) string {
	id := uuidV5(parts)
	ms := binary.BigEndian.AppendUint64(nil, uint64(t.UnixMilli()))
	copy(id[:timestampSize], ms[2:])
	id[6] = id[6]&0x0F | 0x80
	return id.String()
}

// FirstIDAt returns the least id of the ids that sort by age and were created at the time t or
// later.
func FirstIDAt(t time.Time) string {
	var id uuid.UUID
	ms := binary.BigEndian.AppendUint64(nil, uint64(max(0, t.UnixMilli())))
	copy(id[:timestampSize], ms[2:])
	return id.String()
}

// timestampSize is the number of leading bytes of a UUID version 7 or 8 that hold the time
// in milliseconds.
const timestampSize = 6

// uuidV5 returns the UUID version 5 of the encoding of parts in namespace.
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

// IsID reports whether text has the form of the ids that this package makes.
func IsID(text string) bool { return len(text) == idLength && uuid.Validate(text) == nil }

// idLength is the length of a UUID with its four hyphens.
const idLength = 36

// NewID returns a new random id, a UUID version 7. Ids sort by age.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }
