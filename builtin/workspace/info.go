package workspace

import (
	"context"
	"io/fs"
	"time"
)

// Info describes the contents of a workspace.
type Info struct {
	Files       int       `json:"files"` // regular files at any depth
	Directories int       `json:"directories"`
	TotalSize   int64     `json:"totalSize"`  // of the files, in bytes
	ModifiedAt  time.Time `json:"modifiedAt"` // of the latest change, in UTC, truncated to seconds
	ReadOnly    bool      `json:"readOnly"`
	Quota       Quota     `json:"quota"`
	Truncated   bool      `json:"truncated,omitempty"` // not everything was counted
}

// maxCountedNames is the maximum number of names that are counted.
const maxCountedNames = 1_000_000

// Info counts the contents of the workspace. It omits the temporary files of
// WriteFile and the contents of folders that cannot be read.
func (d *Dir) Info(ctx context.Context) (Info, error) {
	top, err := d.Root.Stat(".")
	if err != nil {
		return Info{}, fileError(d.Root, ".", err)
	}
	i := Info{ReadOnly: d.ReadOnly, ModifiedAt: modified(top), Quota: d.QuotaLimit()}
	w := walker{ctx: ctx, root: d.Root, budget: maxCountedNames, visit: func(name string, info fs.FileInfo) error {
		if !isTempFile(name, info) {
			i.count(info)
		}
		return nil
	}}
	if err := w.walk("."); err != nil {
		return Info{}, fileError(d.Root, ".", err)
	}
	i.Truncated = w.truncated
	return i, nil
}

// count adds one entry to the totals.
func (i *Info) count(info fs.FileInfo) {
	switch {
	case info.IsDir():
		i.Directories++
	case info.Mode().IsRegular():
		i.Files++
		i.TotalSize += info.Size()
	}
	if m := modified(info); m.After(i.ModifiedAt) {
		i.ModifiedAt = m
	}
}
