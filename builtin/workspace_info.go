package builtin

import (
	"context"
	"io/fs"
	"time"
)

const workspaceInfoText = `See how much is in your workspace and whether you may write to it. Use it before you start on a workspace you do not know. ` +
	`Answers {files, directories, totalSize, modifiedAt, readOnly, quota:{bytes, files}}: files and folders at any depth, ` +
	`the bytes of all files, the time of the last change, and how many bytes and how many files and folders it may hold. ` +
	`"truncated":true means that not everything was counted. Takes no arguments. Example: {}`

const workspaceInfoInput = `{
	"type": "object",
	"properties": {},
	"additionalProperties": false
}`

// workspaceInfo is the result of get_workspace_info.
type workspaceInfo struct {
	Files       int       `json:"files"`
	Directories int       `json:"directories"`
	TotalSize   int64     `json:"totalSize"`
	ModifiedAt  time.Time `json:"modifiedAt"`
	ReadOnly    bool      `json:"readOnly"`
	Quota       quotaInfo `json:"quota"`
	Truncated   bool      `json:"truncated,omitempty"`
}

// quotaInfo is a Quota in JSON.
type quotaInfo struct {
	Bytes int64 `json:"bytes"`
	Files int64 `json:"files"`
}

// maxCountedNames is the maximum number of names that are counted.
const maxCountedNames = 1_000_000

// info handles get_workspace_info.
func (f files) info(ctx context.Context, _ struct{}) (workspaceInfo, error) {
	return inWorkspace(ctx, f, ".", func(ws *Workspace, dir string) (workspaceInfo, error) {
		top, err := ws.Root.Stat(dir)
		if err != nil {
			return workspaceInfo{}, err
		}
		i := workspaceInfo{ReadOnly: ws.ReadOnly, ModifiedAt: modified(top), Quota: quotaInfo(ws.Quota())}
		w := walker{ctx: ctx, root: ws.Root, budget: maxCountedNames, visit: func(name string, info fs.FileInfo) error {
			if !isTempFile(name, info) {
				i.count(info)
			}
			return nil
		}}
		err = w.walk(dir)
		i.Truncated = w.truncated
		return i, err
	})
}

// count adds one entry to the totals.
func (i *workspaceInfo) count(info fs.FileInfo) {
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
