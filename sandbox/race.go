//go:build race

package sandbox

// raced: this binary reserves address space far beyond any limit.
const raced = true
