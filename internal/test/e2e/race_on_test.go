//go:build race

package e2e_test

// race says that the race detector is on, which takes memory of its own.
const race = true
