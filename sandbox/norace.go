//go:build !race

package sandbox

const raced = false

var ownEnvironment = []string{}
