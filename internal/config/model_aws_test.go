package config_test

import (
	"testing"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/model/provider"
)

// Without apiKey and credentials, those of the environment are used: the key of Bedrock, or
// else the credentials of AWS. At an address of the document's own, none are.
func TestModel_CredentialsOfTheEnvironment(t *testing.T) {
	credentials := provider.Credentials{AccessKeyID: "id", SecretKey: "secret"}
	temporary := credentials
	temporary.SessionToken = "session"
	all := map[string]string{"AWS_BEARER_TOKEN_BEDROCK": "key", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "session"}
	without := func(names ...string) map[string]string {
		env := map[string]string{}
		for name, value := range all {
			env[name] = value
		}
		for _, name := range names {
			delete(env, name)
		}
		return env
	}
	for _, c := range []struct {
		name, fields string
		env          map[string]string
		key, missing string
		credentials  provider.Credentials
	}{
		{"key of Bedrock", "", all, "key", "", provider.Credentials{}},
		{"temporary credentials", "", without("AWS_BEARER_TOKEN_BEDROCK"), "", "", temporary},
		{"lasting credentials", "", without("AWS_BEARER_TOKEN_BEDROCK", "AWS_SESSION_TOKEN"), "", "", credentials},
		{"half of them", "", without("AWS_BEARER_TOKEN_BEDROCK", "AWS_SECRET_ACCESS_KEY"), "", "AWS_BEARER_TOKEN_BEDROCK", provider.Credentials{}},
		{"nothing", "", nil, "", "AWS_BEARER_TOKEN_BEDROCK", provider.Credentials{}},
		{"another variable", ", apiKey: \"${MINE}\"", all, "", "MINE", provider.Credentials{}},
		{"another address", ", baseURL: \"http://h\"", all, "", "", provider.Credentials{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			document := "{kind: model, name: m, type: bedrock, model: m, region: eu-central-1" + c.fields + "}"
			env := func(name string) (string, bool) { value, ok := c.env[name]; return value, ok }
			cfg, err := config.ReadFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(document)}}, env)
			if err != nil {
				t.Fatal(err)
			}
			m := cfg.Models[0]
			got := m.ProviderConfig()
			if got.Key != c.key || got.Credentials != c.credentials || got.Region != "eu-central-1" {
				t.Errorf("got %+v", got)
			}
			if m.HasKey() != (c.missing == "") || !m.HasKey() && m.KeyFrom != c.missing {
				t.Errorf("the key is from %q, has key %v; want %q missing", m.KeyFrom, m.HasKey(), c.missing)
			}
		})
	}
}
