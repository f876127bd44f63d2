package auth_test

import (
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
)

// A route that serves callers admits the holder of a token.
func Example() {
	reader := func(id identity.RoleID) (org.Role, bool) {
		return org.Role{ID: id, Name: "reader", Status: org.Active}, true
	}
	tokens, err := auth.NewTokenStore(auth.TokenStoreConfig{Role: reader})
	if err != nil {
		log.Fatal(err)
	}
	token, digest := auth.NewToken()
	if err := tokens.ReplaceTokens([]auth.Token{{Name: "ci", Digest: digest, Scope: auth.ScopeRole, Role: "r1"}}); err != nil {
		log.Fatal(err)
	}
	authenticator := auth.Authenticator(tokens.Authenticate)
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		admitted, err := authenticator.AdmitRequest(r, auth.ScopesOf(auth.ScopeOperator, auth.ScopeRole))
		if err != nil {
			wire.WriteError(w, err)
			return
		}
		fmt.Fprintln(w, auth.SenderOf(admitted))
	})

	for _, header := range []string{"Bearer " + token, "Bearer " + token + "x"} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header.Set("Authorization", header)
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		fmt.Print(w.Code, " ", w.Body)
	}
	// Output:
	// 200 user:ci@r1
	// 401 {"error":{"code":"unauthenticated","message":"the bearer token is not valid for this resource"}}
}
