package tool

import (
	"context"
	"math"
)

// Progress is the progress of a call.
type Progress struct {
	Done    float64 // never decreases
	Total   float64 // 0 if unknown
	Message string  // what the tool is doing, for people; may be ""
}

// MonotonicProgress returns a function that passes progress on to fn if Done is finite and larger than
// before. It is not safe for concurrent use.
func MonotonicProgress(fn func(Progress)) func(Progress) {
	last := math.Inf(-1)
	return func(p Progress) {
		if p.Done > last && !math.IsInf(p.Done, 1) {
			last = p.Done
			fn(p)
		}
	}
}

// progressKey is the context key of the function that receives progress.
type progressKey struct{}

// WithProgress returns a context in which ReportProgress calls fn. fn must not block and must be safe
// for concurrent use, as a tool may report from several goroutines.
func WithProgress(ctx context.Context, fn func(Progress)) context.Context {
	return context.WithValue(ctx, progressKey{}, fn)
}

// ReportProgress reports the progress of the call that ctx belongs to. It does nothing if the caller
// has not asked for progress.
func ReportProgress(ctx context.Context, p Progress) {
	if fn, ok := ctx.Value(progressKey{}).(func(Progress)); ok {
		fn(p)
	}
}
