//go:build !linux

package jsworker

// residentMemory returns nil: how much memory this process has is unknown.
func residentMemory() func() int64 { return nil }
