//go:build race

package sandbox

// raced: this binary reserves address space far beyond any limit, so that only
// a control group holds the memory of its jobs.
const raced = true

// ownEnvironment is that of this binary's own processes: with it they end at
// once and not a second later.
var ownEnvironment = []string{"GORACE=atexit_sleep_ms=0"}
