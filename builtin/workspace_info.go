package builtin

import (
	"context"

	"github.com/rolecall/rolecall/builtin/workspace"
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

// info handles get_workspace_info.
func (f files) info(ctx context.Context, _ struct{}) (workspace.Info, error) {
	release, err := f.reads.Acquire(ctx, shareKey(currentCall(ctx)))
	if err != nil {
		return workspace.Info{}, err
	}
	defer release()
	return inWorkspace(ctx, f, ".", func(ws *workspace.Dir, _ string) (workspace.Info, error) {
		return ws.Info(ctx)
	})
}
