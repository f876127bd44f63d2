//go:build race

package sandbox

// raceEnabled reports whether the race detector is compiled in. The detector
// reserves address space far beyond any limit, so memory can only be bounded by
// a control group.
const raceEnabled = true

// reexecEnv is the environment of processes that run code of this binary. The
// setting makes them exit at once instead of a second later.
var reexecEnv = []string{"GORACE=atexit_sleep_ms=0"}
