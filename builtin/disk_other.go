//go:build !linux && !darwin && !freebsd

package builtin

// freeDisk reports no value: free space is unknown on this system.
func freeDisk(string) (free uint64, ok bool) { return 0, false }
