// Package workspace provides directories in which agents and programs work: file
// access that cannot leave the directory, and a quota of bytes and files.
//
// A Dir is an open directory. Its methods take relative paths with slashes:
//
//	quotas := new(workspace.QuotaManager) // one for the process
//	root, err := os.OpenRoot(dir)
//	// …
//	ws := &workspace.Dir{Root: root, Quota: quotas.Of(dir, workspace.Quota{Bytes: 1 << 30, Files: 100_000})}
//	defer root.Close()
//	err = ws.WriteFile(ctx, "notes/plan.md", data)
//
// Two layers keep paths inside the directory. CleanPath rejects names whose text
// escapes. All file access goes through os.Root, which rejects symbolic links
// that escape.
//
// The quota holds for the writes of this package. Programs that write to the
// directory by themselves are not stopped; WatchQuota reports when they exceed it.
//
// Errors have a code of package errcode and a text for models. The package does
// not decide which directory belongs to whom.
package workspace

import "os"

// Dir is an open workspace. Root prevents paths and links from escaping it.
//
// The methods of a Dir, and different Dirs of the same directory, can be used
// concurrently. The one who opened Root closes it.
type Dir struct {
	Root     *os.Root
	ReadOnly bool      // WriteFile is rejected with workspace_read_only
	Quota    *DirQuota // how much may be stored; nil allows no write
}
