package builtin

import (
	"context"
	"runtime"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/fair"
	"github.com/rolecall/rolecall/tool"
)

// workspaceTools returns the four file tools. write_file can copy content from
// artifacts in a.
func workspaceTools(w WorkspaceOpener, a ArtifactStore, l CallLimits) ([]tool.Tool, error) {
	f := files{w, a, l, newReadSlots()}
	var s toolBuilder
	s.add(tool.New("read_file", readFileText, withErrorCode(f.read), withCatalog(readCatalog{w}, toolOptions(tool.ReadOnly, tool.FlagsOf(tool.Untrusted, tool.Private), readFileInput))))
	s.add(tool.New("write_file", writeFileText, withErrorCode(f.write), toolOptions(tool.Idempotent, tool.FlagsOf(), writeFileInput)))
	s.add(tool.New("list_files", listFilesText, withErrorCode(f.list), withCatalog(listCatalog{}, toolOptions(tool.ReadOnly, tool.FlagsOf(tool.Untrusted, tool.Private), listFilesInput))))
	s.add(tool.New("get_workspace_info", workspaceInfoText, withErrorCode(f.info), toolOptions(tool.ReadOnly, tool.FlagsOf(), workspaceInfoInput)))
	return s.tools, s.err
}

// files handles the calls of the workspace group.
type files struct {
	workspaces WorkspaceOpener
	artifacts  ArtifactStore
	limits     CallLimits
	reads      *fair.Semaphore // held while a call lists a workspace, or uses a file or artifact that it has read
}

// newReadSlots returns a semaphore for calls that list a workspace, read a file, load an artifact or convert
// the body of a response. They take a processor, or several times the size of what they read,
// so few run at once.
func newReadSlots() *fair.Semaphore { return fair.NewSemaphore(max(4, 2*runtime.NumCPU())) }

// inWorkspace calls do with the caller's open workspace and the cleaned name.
func inWorkspace[Out any](ctx context.Context, f files, name string, do func(*workspace.Dir, string) (Out, error)) (Out, error) {
	var none Out
	name, err := workspace.CleanPath(name)
	if err != nil {
		return none, err
	}
	ws, err := openWorkspace(ctx, f.workspaces)
	if err != nil {
		return none, err
	}
	defer ws.Root.Close()
	return do(ws, name)
}

// openWorkspace opens the caller's workspace.
func openWorkspace(ctx context.Context, w WorkspaceOpener) (*workspace.Dir, error) {
	by := currentCall(ctx).By
	if by.Key() == "" { // this principal has no identity that a folder could belong to
		return nil, errcode.New(errcode.WorkspaceNotBound, "only agents and callers with a role have a workspace")
	}
	return w.OpenWorkspace(ctx, by)
}

// pathProperty is the schema of a path in all tools.
const pathProperty = `{
			"type": "string",
			"description": "Path in the workspace.",
			"minLength": 1,
			"maxLength": 4096
		}`
