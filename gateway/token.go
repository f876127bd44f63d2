package gateway

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
)

// listTokens lists the tokens of the configuration, sorted by name.
func (a *api) listTokens(r *http.Request) (any, error) {
	list := a.tokens()
	slices.SortFunc(list, func(x, y auth.Token) int { return strings.Compare(x.Name, y.Name) })
	return paginate(r, list, func(t auth.Token) string { return t.Name }, a.tokenOf)
}

// tokenOf converts a token.
func (a *api) tokenOf(t auth.Token) wire.Token {
	out := wire.Token{Name: t.Name, Scope: t.Scope.String(), RoleID: t.Role, Role: string(t.Role), Audience: t.Audience}
	if role, ok := a.org().RoleByID(t.Role); ok {
		out.Role = role.Name
	}
	if !t.Expires.IsZero() {
		out.Expires, out.Expired = &t.Expires, !time.Now().Before(t.Expires)
	}
	return out
}
