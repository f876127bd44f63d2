//go:build unix

package builtin

import (
	"io/fs"
	"os"
	"syscall"
)

// ownedByUs says whether a file belongs to the user of this process.
func ownedByUs(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return !ok || int(stat.Uid) == os.Geteuid()
}
