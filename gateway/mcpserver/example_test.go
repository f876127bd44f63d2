package mcpserver_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/rolecall/rolecall/gateway/mcpserver"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// A client on stdio acts in a role.
func Example() {
	groups, operator, ctx := toolgroups.NewManager(toolgroups.ReservedIDs()...), identity.ByOperator("me"), context.Background()
	rt, err := runtime.New(runtime.Config{
		Store: memory.New(), Groups: groups, Model: func(string) (model.Model, error) { return nil, errors.New("no model") },
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer rt.Close()
	nothing := toolgroups.SetOf()
	if _, err := rt.CreateRole(ctx, tool.Call{By: operator}, org.RoleSpec{Name: "guest", Use: &nothing}); err != nil {
		fmt.Println(err)
		return
	}
	server, err := mcpserver.New(mcpserver.Config{Runtime: rt, Version: "v1"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	in := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}` + "\n")
	fmt.Println(server.ServeStdio(ctx, in, os.Stdout, mcpserver.StdioClient{Sender: operator, Role: "guest"}))
	// Output:
	// {"jsonrpc":"2.0","id":1,"result":{}}
	// <nil>
}
