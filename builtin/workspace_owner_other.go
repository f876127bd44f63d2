//go:build !unix

package builtin

import "io/fs"

// owned takes every file for one of the user of this process.
func owned(fs.FileInfo) bool { return true }
