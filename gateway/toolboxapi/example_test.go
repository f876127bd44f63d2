package toolboxapi_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/toolboxapi"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal/memory"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/runtime"
	"github.com/rolecall/rolecall/tool"
	"github.com/rolecall/rolecall/toolgroups"
)

// A Toolbox client calls a tool of its role.
func Example() {
	rt, role, err := newGreetingRuntime()
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()
	api, err := toolboxapi.New(toolboxapi.Config{Runtime: rt})
	if err != nil {
		log.Fatal(err)
	}
	authenticator := auth.Authenticator(func(*http.Request) (identity.Principal, error) { return identity.ByCaller("ann", role), nil })
	mux := http.NewServeMux()
	mux.HandleFunc("POST /api/tool/{name}/invoke", func(w http.ResponseWriter, r *http.Request) {
		admitted, err := authenticator.AdmitRequest(r, auth.ScopesOf(auth.ScopeOperator, auth.ScopeRole))
		if err != nil {
			wire.WriteError(w, err)
			return
		}
		api.Invoke(w, admitted)
	})

	for _, name := range []string{"greet", "delete_all"} {
		r := httptest.NewRequest(http.MethodPost, "/api/tool/"+name+"/invoke", strings.NewReader(`{"name":"Bo"}`))
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 {"result":"\"Hello Bo\""}
	// 404 {"status":"Not Found","error":"invalid tool name: tool with name \"delete_all\" does not exist"}
}

// newGreetingRuntime returns a runtime in memory and a role with the tool greet.
func newGreetingRuntime() (*runtime.Runtime, identity.RoleID, error) {
	rt, err := runtime.New(runtime.Config{
		Store: memory.New(), Groups: toolgroups.NewManager(toolgroups.ReservedIDs()...),
		Model: func(string) (model.Model, error) { return nil, errors.New("no model") },
	})
	if err != nil {
		return nil, "", err
	}
	greet, err := tool.New("greet", "Greets somebody.", func(_ context.Context, in struct {
		Name string `json:"name"`
	}) (string, error) {
		return "Hello " + in.Name, nil
	}, nil)
	if err != nil {
		return nil, "", err
	}
	demo, err := rt.GroupManager().ClaimOwner("demo")
	if err != nil {
		return nil, "", err
	}
	if _, err := demo.RegisterGroup(toolgroups.Group{ID: "greetings", Description: "Greetings.", Tools: []tool.Tool{greet}}); err != nil {
		return nil, "", err
	}
	use := toolgroups.SetOf("greetings")
	by := tool.Call{ID: "create", By: auth.LocalOperator()}
	role, err := rt.CreateRole(context.Background(), by, org.RoleSpec{Name: "greeter", Use: &use})
	return rt, role.ID, err
}
