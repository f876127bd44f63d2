//go:build !race

package sandbox

// raceEnabled reports whether the race detector is compiled in.
const raceEnabled = false

// reexecEnv is the environment of processes that run code of this binary. It is empty, not nil: with nil
// they would have the environment of this process.
var reexecEnv = []string{}
