package mcpauth_test

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/keystore"
	"github.com/rolecall/rolecall/modules/mcpclient/mcpauth"
	"github.com/rolecall/rolecall/toolgroups"
)

func Example() {
	logins := mcpauth.NewStore(&memoryValues{values: map[toolgroups.GroupOwner][]byte{}}, keystore.Open("organization"))
	defer logins.Close()
	server, err := mcpauth.New(mcpauth.Config{Server: "web", URL: "https://mcp.example.com/mcp", PerCaller: true, Logins: logins})
	if err != nil {
		fmt.Println(err)
		return
	}
	source, _ := server.Authorizer("user:ann@analyst").TokenSource(context.Background())
	_, err = source.Token()
	fmt.Println(errcode.CodeOf(err))
	// Output:
	// authorization_required
}
