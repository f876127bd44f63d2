//go:build race

package short

// RaceDetector reports whether the race detector is compiled in.
const RaceDetector = true
