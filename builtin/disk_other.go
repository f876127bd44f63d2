//go:build !linux && !darwin && !freebsd

package builtin

// freeDisk is not known here.
func freeDisk(string) (free uint64, ok bool) { return 0, false }
