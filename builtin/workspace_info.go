package builtin

import (
	"context"

	"github.com/rolecall/rolecall/builtin/workspace"
)

const workspaceInfoText = `See how many files the workspace has, and whether you may write.`

const workspaceInfoInput = `{
	"type": "object",
	"properties": {},
	"additionalProperties": false
}`

// info handles get_workspace_info.
func (f files) info(ctx context.Context, _ struct{}) (workspace.Info, error) {
	release, err := f.reads.Acquire(ctx, fairKey(currentCall(ctx)))
	if err != nil {
		return workspace.Info{}, err
	}
	defer release()
	return inWorkspace(ctx, f, ".", func(ws *workspace.Dir, _ string) (workspace.Info, error) {
		return ws.Info(ctx)
	})
}
