package rolecall

// UnsetFields is RoleSpec.unsetFields.
var UnsetFields = RoleSpec.unsetFields
