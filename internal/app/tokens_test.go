package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/tool"
)

// tokenUser authenticates a request with the token of tokenDoc.
func (f *fixture) tokenUser() (identity.Principal, error) {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, "http://127.0.0.1/", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer rc_ci")
	return f.Tokens.Authenticate(r)
}

// tokenDoc is a gateway with the token rc_ci for a role.
func tokenDoc(role string) string {
	digest := sha256.Sum256([]byte("rc_ci"))
	return fmt.Sprintf("kind: gateway\nname: door\ntokens: [{name: ci, role: %s, sha256: %q}]", role, hex.EncodeToString(digest[:]))
}

// A token belongs to the role that the configuration created, even if another role gets its name
// later. It follows the file: the role that is made again is the token's role again.
func TestTokens_BindToRoleOfConfiguration(t *testing.T) {
	const lead, dba = "kind: role\nname: lead\ntoolGroups: all", "kind: role\nname: dba\ntoolGroups: [workspace]"
	f := newFixture(t)
	apply := func(docs ...string) identity.RoleID {
		t.Helper()
		if err := f.ApplyConfig(t.Context(), f.read(docs...), nil); err != nil {
			t.Fatal(err)
		}
		role, _ := f.Runtime.Org().ConfiguredRole("dba")
		return role.ID
	}
	want := func(role identity.RoleID) {
		t.Helper()
		p, err := f.tokenUser()
		if p.Role != role || (role == "") != (errcode.CodeOf(err) == errcode.Unauthenticated) {
			t.Errorf("the token is %s, %v; want the role %q", p, err, role)
		}
	}
	first := apply(lead, dba, tokenDoc("dba"))
	want(first)

	// The role goes, and its token with the next line of install: until then it is bound to
	// the deleted role. An agent or the operator takes the name.
	if err := f.Runtime.ApplyConfig(orgConfig(f.read(lead))); err != nil {
		t.Fatal(err)
	}
	want("")
	taken, err := f.Runtime.CreateRole(t.Context(), tool.Call{By: identity.ByOperator("op")}, org.RoleSpec{Name: "dba"})
	if err != nil {
		t.Fatal(err)
	}
	want("")
	if _, err := f.Runtime.DeleteRole(identity.ByOperator("op"), taken.ID, false); err != nil {
		t.Fatal(err)
	}
	again := apply(lead, dba, tokenDoc("dba"))
	if again == first {
		t.Error("the role made again has the id of the deleted one")
	}
	want(again)
	apply(lead)
	want("")
}
