package rolecall

// UnsetFields is RoleSpec.unset.
var UnsetFields = RoleSpec.unset
