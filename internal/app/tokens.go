package app

import (
	"encoding/hex"

	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/config"
)

// tokenScopes are the scopes of configured tokens. Others are not accepted.
var tokenScopes = map[config.TokenScope]auth.Scope{
	config.RoleScope: auth.ScopeRole, config.OperatorScope: auth.ScopeOperator, config.MetricsScope: auth.ScopeMetrics,
}

// gatewayTokens returns the tokens that a configuration lists, in its order and without
// the ids of their roles, which may not exist yet.
func gatewayTokens(cfg *config.Config) ([]auth.Token, error) {
	var list []auth.Token
	for _, t := range cfg.Gateway.Tokens {
		token := auth.Token{Name: t.Name, Scope: tokenScopes[t.Scope], Audience: t.Audience, Expires: t.Expires}
		if n, err := hex.Decode(token.Digest[:], []byte(t.SHA256)); err != nil || n != len(token.Digest) {
			return nil, cfg.ErrorAt(t.Pos, "sha256", "is not a SHA-256 digest", "")
		}
		list = append(list, token)
	}
	return list, nil
}

// bindTokens binds the tokens of an installed configuration to the ids of the roles that
// the configuration created. A token never gets the role that an agent or a caller created under
// the same name.
func (a *App) bindTokens(ch *configChange) {
	for i := range ch.tokens {
		role, _ := a.Runtime.Org().ConfiguredRole(ch.cfg.Gateway.Tokens[i].Role)
		ch.tokens[i].Role = role.ID
	}
}
