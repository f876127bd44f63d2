package workspace_test

import (
	"context"
	"fmt"
	"os"

	"github.com/rolecall/rolecall/builtin/workspace"
	"github.com/rolecall/rolecall/errcode"
)

func Example() {
	dir, err := os.MkdirTemp("", "workspace")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	root, err := os.OpenRoot(dir)
	if err != nil {
		panic(err)
	}
	defer root.Close()

	var quotas workspace.QuotaManager // one for all workspaces of the process
	ws := &workspace.Dir{Root: root, Quota: quotas.DirQuota(dir, workspace.Quota{Bytes: 100, Files: 10})}

	ctx := context.Background()
	fmt.Println(ws.WriteFile(ctx, "notes/plan.md", []byte("# Plan\n")))
	fmt.Println(errcode.CodeOf(ws.WriteFile(ctx, "big", make([]byte, 1000))))
	fmt.Println(errcode.CodeOf(ws.WriteFile(ctx, "../outside", nil)))

	list, err := ws.ListFiles(ctx, ".", workspace.ListOptions{Recursive: true})
	if err != nil {
		panic(err)
	}
	for _, e := range list.Entries {
		fmt.Println(e.Name, e.Type, e.Size)
	}
	// Output:
	// <nil>
	// quota_exceeded
	// path_traversal_blocked
	// notes directory 0
	// notes/plan.md file 7
}
