//go:build !linux && !darwin && !freebsd

package builtin

// diskRoom is not known here.
func diskRoom(string) (free uint64, ok bool) { return 0, false }
