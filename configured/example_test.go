package configured_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/configured"
)

// A program reads its roles from a file.
func ExampleFiles() {
	dir, err := os.MkdirTemp("", "rolecall")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "org.yaml")
	if err := os.WriteFile(file, []byte("{kind: role, name: clerk, toolGroups: [console]}"), 0o600); err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	model := rolecall.ModelFunc(func(_ context.Context, r rolecall.ModelRequest) (rolecall.ModelAnswer, error) {
		return rolecall.ModelAnswer{Text: "Hello from " + r.Self.Role}, nil
	})
	org, err := rolecall.Open(ctx, rolecall.Options{Data: filepath.Join(dir, "data"), Files: configured.Files(file), Model: model})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer org.Close()
	fmt.Println(rolecall.Run[string](ctx, org, rolecall.TaskSpec{As: rolecall.Operator("me"), Role: "clerk"}))
	// Output: Hello from clerk <nil>
}
