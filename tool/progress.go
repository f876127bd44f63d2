package tool

import (
	"context"
	"math"
)

// Progress is how far a call has come.
type Progress struct {
	Done    float64 // so far; it only grows
	Total   float64 // 0 is not known
	Message string  // what is being done, for people; "" is nothing to say
}

// Monotonic gives a function that tells fn of progress that is finite and more than
// what it told before. One goroutine at a time may call it.
func Monotonic(fn func(Progress)) func(Progress) {
	last := math.Inf(-1)
	return func(p Progress) {
		if p.Done > last && !math.IsInf(p.Done, 1) {
			last = p.Done
			fn(p)
		}
	}
}

type progressKey struct{}

// WithProgress gives a context in which Report tells fn. fn is called by the
// tool's goroutines, possibly at once, and must not block.
func WithProgress(ctx context.Context, fn func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// Report says how far the call of ctx has come. Most callers do not ask: then
// it does nothing.
func Report(ctx context.Context, p Progress) {
	if fn, ok := ctx.Value(progressKey{}).(func(Progress)); ok {
		fn(p)
	}
}
