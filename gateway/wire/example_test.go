package wire_test

import (
	"fmt"
	"net/http/httptest"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/wire"
)

// An error is answered with the status of its code and a JSON body.
func ExampleWriteError() {
	w := httptest.NewRecorder()
	wire.WriteError(w, errcode.New(errcode.RoleNotFound, "there is no role %q", "clerk").With("role", "clerk"))
	fmt.Println(w.Code)
	fmt.Print(w.Body)
	// Output:
	// 404
	// {"error":{"code":"role_not_found","message":"there is no role \"clerk\"","details":{"role":"clerk"}}}
}
