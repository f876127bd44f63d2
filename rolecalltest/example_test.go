package rolecalltest_test

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall"
	"github.com/rolecall/rolecall/rolecalltest"
)

// An agent writes a line, and ends.
func ExampleScript() {
	ctx := context.Background()
	script := rolecalltest.Script{"clerk": {
		rolecalltest.Call("console_print", map[string]string{"text": "hello"}),
		rolecalltest.End("printed"),
	}}
	org, err := rolecall.Open(ctx, rolecall.Options{Model: script})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer org.Close()
	if _, err := org.CreateRole(ctx, rolecall.RoleSpec{Name: "clerk", ToolGroups: []rolecall.GroupID{"console"}}); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(rolecall.Run[string](ctx, org, rolecall.TaskSpec{As: rolecall.Operator("me"), Role: "clerk"}))
	// Output: printed <nil>
}
