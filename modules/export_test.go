package modules

// EqualGroup is equalGroup.
var EqualGroup = equalGroup
