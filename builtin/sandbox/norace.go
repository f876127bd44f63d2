//go:build !race

package sandbox

const raceEnabled = false

var ownEnvironment = []string{}
