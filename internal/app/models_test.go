package app

import (
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/model/catalog"
)

// A type without a client is an error. It does not become another provider's model.
func TestNewModel_RejectsUnknownType(t *testing.T) {
	a := new(App)
	for _, name := range []string{"", "OpenAI", "bedrock"} {
		if m, err := a.newModel(config.Model{Name: "m", Type: name, Model: "m"}); m != nil || errcode.CodeOf(err) != errcode.InvalidConfig {
			t.Errorf("type %q: got %v, %v, want invalid_config", name, m, err)
		}
	}
	for _, p := range catalog.ListProviders() {
		if m, err := a.newModel(config.Model{Name: "m", Type: p.Type, Model: "m"}); m == nil || err != nil {
			t.Errorf("type %s: got %v, %v", p.Type, m, err)
		}
	}
}
