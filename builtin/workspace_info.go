package builtin

import (
	"context"
	"io/fs"
	"time"
)

const workspaceInfoText = `See how much is in your workspace and whether you may write to it. Use it before you start on a workspace you do not know. ` +
	`Answers {files, directories, totalSize, modifiedAt, readOnly}: files and folders at any depth, ` +
	`the bytes of all files, the time of the last change. Takes no arguments. Example: {}`

const workspaceInfoInput = `{
	"type": "object",
	"properties": {},
	"additionalProperties": false
}`

type workspaceInfo struct {
	Files       int       `json:"files"`
	Directories int       `json:"directories"`
	TotalSize   int64     `json:"totalSize"`
	ModifiedAt  time.Time `json:"modifiedAt"`
	ReadOnly    bool      `json:"readOnly"`
}

func (f files) info(ctx context.Context, _ struct{}) (workspaceInfo, error) {
	return within(ctx, f, ".", func(ws *Workspace, dir string) (workspaceInfo, error) {
		top, err := ws.Root.Stat(dir)
		if err != nil {
			return workspaceInfo{}, err
		}
		w := workspaceInfo{ReadOnly: ws.ReadOnly, ModifiedAt: modified(top)}
		err = walk(ctx, ws.Root, dir, func(_ string, info fs.FileInfo) error {
			w.count(info)
			return nil
		})
		return w, err
	})
}

func (w *workspaceInfo) count(info fs.FileInfo) {
	switch {
	case info.IsDir():
		w.Directories++
	case info.Mode().IsRegular():
		w.Files++
		w.TotalSize += info.Size()
	}
	if m := modified(info); m.After(w.ModifiedAt) {
		w.ModifiedAt = m
	}
}
