package identity

import "strings"

// triggerPrefix begins the names of triggers among the names of users. It is reserved: tokens,
// issuers and programs cannot name a user so.
const triggerPrefix = "trigger:"

// ByTrigger returns the Principal of a trigger of the configuration, which acts in a role as an
// external caller does.
func ByTrigger(name string, role RoleID) Principal {
	return ByCaller(UserName(triggerPrefix+name), role)
}

// IsTrigger reports whether a name is reserved for triggers, in whatever case it is written.
func (u UserName) IsTrigger() bool {
	return len(u) >= len(triggerPrefix) && strings.EqualFold(string(u[:len(triggerPrefix)]), triggerPrefix)
}
