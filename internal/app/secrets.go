package app

import (
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/redact"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// configSecrets returns the secrets of a configuration: the keys of models, and what MCP
// servers and sources are given.
func configSecrets(cfg *config.Config) []string {
	list := modelKeys(cfg)
	for _, s := range cfg.MCPServers {
		list = append(list, redact.Headers(revealSecrets(s.Headers))...)
		list = append(list, secretValues(s.Env)...)
	}
	for _, s := range cfg.Sources {
		list = append(append(list, string(s.Password)), secretValues(s.QueryParams)...)
		list = append(list, redact.Headers(revealSecrets(s.Headers))...)
	}
	for _, t := range cfg.Tools {
		if t.HTTP != nil {
			list = append(list, redact.Headers(revealSecrets(t.HTTP.Headers))...)
		}
	}
	return list
}

// secretValues returns the secrets in the values of m.
func secretValues(m map[string]yamldoc.Secret) (list []string) {
	for _, value := range m {
		list = append(list, redact.Values(string(value))...)
	}
	return list
}
