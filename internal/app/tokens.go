package app

import (
	"encoding/hex"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/gateway/auth"
)

// tokensOf returns the tokens that a configuration lists.
func tokensOf(cfg *config.Config) ([]auth.Token, error) {
	var list []auth.Token
	for _, t := range cfg.Gateway.Tokens {
		token := auth.Token{Name: t.Name, Role: t.Role, Operator: t.Operator, Audience: t.Audience, Expires: t.Expires}
		if n, err := hex.Decode(token.Digest[:], []byte(t.SHA256)); err != nil || n != len(token.Digest) {
			return nil, cfg.Fault(t.Pos, "sha256", "is not a SHA-256 digest", "")
		}
		list = append(list, token)
	}
	return list, nil
}
