package textutil

import (
	"regexp"
	"sync"
)

// LazyPattern returns a function that returns the compiled regular expression. The first
// call compiles it, and panics if it is not valid. Package variables use it: a program
// compiles dozens of patterns at its start otherwise, and most commands need none. The
// function is safe for concurrent use.
func LazyPattern(expression string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expression) })
}
