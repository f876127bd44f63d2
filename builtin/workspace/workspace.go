// Package workspace provides directories in which agents and programs work. File
// access cannot leave the directory. A quota limits its bytes and files.
//
// A Dir is an open directory. Its methods take relative paths with slashes:
//
//	var quotas workspace.QuotaManager // one for the process
//	ws := &workspace.Dir{Root: root, Quota: quotas.DirQuota(dir, workspace.Quota{Bytes: 1 << 30, Files: 100_000})}
//	err := ws.WriteFile(ctx, "notes/plan.md", data)
//
// Two layers keep paths inside the directory. CleanPath rejects names whose text
// escapes. All file access goes through os.Root, which rejects symbolic links
// that escape.
//
// WriteFile enforces the quota. Programs write to the directory without this
// package. WatchQuota reports when they exceed the quota or come near the reserve of
// the disk. Its caller then stops them.
//
// Errors of file operations have a code of package errcode and a text for models,
// except for context errors. The package neither creates workspaces nor assigns
// them to agents; package runtime does.
package workspace

import "os"

// Dir is an open workspace. Root prevents paths and links from escaping it.
//
// The methods of a Dir are safe for concurrent use. This also holds for several
// Dirs of the same directory if one QuotaManager created their quotas. The
// caller that opened Root must close it.
type Dir struct {
	Root     *os.Root
	ReadOnly bool      // WriteFile is rejected with workspace_read_only
	Quota    *DirQuota // how much may be stored; nil allows no write

	// DiskSpace returns the space of the disk that programs must not fill. Nil means
	// that it is unknown.
	DiskSpace func() DiskSpace
}
