//go:build unix

package workspace

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByProcess reports whether the user of this process owns a file, or the owner is unknown.
func ownedByProcess(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}
