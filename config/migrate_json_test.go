package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/config"
)

// What is renamed says the same in every way of writing it, also where a colon
// follows a name in quotes at once, as in JSON.
func TestMigrateKeepsTheMeaning(t *testing.T) {
	for _, text := range []string{
		`{"sources":{"a":{"kind":"sqlite","database":"x"}}}`,
		`{"sources":{"a":{"kind":"sqlite","database":"x"}},"tools":{"t":{"kind":"sqlite-sql","source":"a","description":"d","statement":"SELECT 1","parameters":[{"name":"p","type":"string","description":"d","authSources":[{"name":"g","field":"sub"}]}]}},"authSources":{"g":{"kind":"google","clientId":"c"}},"toolsets":{"s":["t"]}}`,
		"sources: {a: {'kind':sqlite , 'database': x}}\n",
		`{"sources" :{"a":{"kind" :"sqlite","database":"x"}}}`,
		`{"kind":"sources","name":"a","type":"sqlite","database":"x"}`,
		"toolsets:\n  a:\n  b: []\n",
		"tools:\ntoolsets: {}\n",
	} {
		before, err := read(t, text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		out, err := config.Migrate([]byte(text))
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		after, err := read(t, string(out))
		if err != nil {
			t.Errorf("%s became\n%s: %v", text, out, err)
			continue
		}
		// authSources has another print than authServices
		of := cmp.Options{sameConfig(), cmpopts.IgnoreTypes(config.Pos{}), cmpopts.IgnoreFields(config.Config{}, "Files"), cmpopts.IgnoreFields(config.DeclaredTool{}, "Print")}
		if diff := cmp.Diff(before, after, of); diff != "" {
			t.Errorf("%s became\n%s\n%s", text, out, diff)
		}
	}
}
