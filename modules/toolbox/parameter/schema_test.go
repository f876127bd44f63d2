package parameter_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/argschema"
)

const manyParameters = `[
 {"name":"s","type":"string","description":"A \"text\" <1>"},
 {"name":"o","type":"string","required":false,"allowedValues":["x","yy","x"]},
 {"name":"code","type":"string","allowedValues":["^[A-Z]{2}$"]},
 {"name":"word","type":"string","allowedValues":["/a|b+/"],"excludedValues":["bb"]},
 {"name":"two","type":"string","allowedValues":["/a/","b"]},
 {"name":"go","type":"string","allowedValues":["/(?i)a/"]},
 {"name":"n","type":"integer","minValue":1,"maxValue":9223372036854775807,"default":2.0},
 {"name":"f","type":"float","minValue":0.50,"allowedValues":[1.5,2]},
 {"name":"b","type":"boolean","default":true},
 {"name":"list","type":"array","items":{"name":"x","type":"integer","description":"one","minValue":1,"default":5}},
 {"name":"any","type":"map"},
 {"name":"of","type":"map","valueType":"float","default":{"k":1}},
 {"name":"uid","type":"string","authServices":[{"name":"my_auth","field":"sub"},{"name":"other-auth","field":"sub"}]},
 {"name":"copy","type":"string","valueFromParam":"s"},
 {"name":"key","type":"string","secure":true,"allowedValues":["k"]}]`

// The complete schemas for models, for clients, and of secure arguments.
func TestSet_Schemas(t *testing.T) {
	set := compile(t, manyParameters, `[{"name":"tab","type":"string","description":"d","allowedValues":["flights"]}]`)
	common := func(null, nothing, uid string) string {
		optional := func(kind string) string {
			if null == "" {
				return `"` + kind + `"`
			}
			return `["` + kind + `","null"]`
		}
		return `{"type":"object","properties":{` +
			`"s":{"type":"string","description":"A \"text\" <1>"},` +
			`"o":{"type":` + optional("string") + `,"description":"d","enum":["x","yy"` + null + `]},` +
			`"code":{"type":"string","description":"d","pattern":"^[A-Z]{2}$"},` +
			`"word":{"type":"string","description":"d","pattern":"^(?:a|b+)$"},` +
			`"two":{"type":"string","description":"d"},` +
			`"go":{"type":"string","description":"d"},` +
			`"n":{"type":` + optional("integer") + `,"description":"d","minimum":1,"maximum":9223372036854775807,"default":2},` +
			`"f":{"type":"number","description":"d","enum":[1.5,2],"minimum":0.50},` +
			`"b":{"type":` + optional("boolean") + `,"description":"d","default":true},` +
			`"list":{"type":"array","description":"d","items":{"type":"integer","description":"one","minimum":1}},` +
			`"any":{"type":"object","description":"d","additionalProperties":true},` +
			`"of":{"type":` + optional("object") + `,"description":"d","additionalProperties":{"type":"number"},"default":{"k":1}},` +
			uid +
			`"tab":{"type":"string","description":"d","enum":["flights"]}},` +
			`"required":["s","code","word","two","go","f","list","any",` + nothing + `"tab"]}`
	}
	for name, c := range map[string]struct {
		got  json.RawMessage
		want string
	}{
		"models":  {set.Schema(), common(`,null`, ``, ``)},
		"clients": {set.ClientSchema(), common(``, `"uid",`, `"uid":{"type":"string","description":"d"},`)},
		"secure":  {set.SecureSchema(), `{"type":"object","properties":{"key":{"type":"string","description":"d","enum":["k"]}},"required":["key"]}`},
	} {
		if diff := cmp.Diff(c.want, string(c.got)); diff != "" {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
		if _, err := argschema.Compile(c.got); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A Set without parameters has a schema too, but no secure one.
func TestSet_SchemaWithoutParameters(t *testing.T) {
	set := compile(t, `[]`, `[]`)
	if got, want := string(set.Schema()), `{"type":"object","properties":{}}`; got != want || set.SecureSchema() != nil {
		t.Errorf("got %s and %s, want %s and nothing", got, set.SecureSchema(), want)
	}
	if got := string(set.Manifest()); got != `[]` {
		t.Errorf("manifest: got %s, want []", got)
	}
}

// The manifest has the field names and the order of Toolbox's HTTP API.
func TestSet_Manifest(t *testing.T) {
	set := compile(t, `[
 {"name":"s","type":"string"},
 {"name":"n","type":"integer","default":5,"required":true},
 {"name":"o","type":"float","required":false},
 {"name":"list","type":"array","items":{"name":"x","type":"array","items":{"name":"y","type":"map"}}},
 {"name":"of","type":"map","valueType":"float"},
 {"name":"uid","type":"string","authServices":[{"name":"my_auth","field":"sub"}]},
 {"name":"copy","type":"string","valueFromParam":"s"},
 {"name":"key","type":"string","secure":true}]`, `[{"name":"tab","type":"string"}]`)
	want := `[{"name":"s","type":"string","required":true,"description":"d","authServices":[]},` +
		`{"name":"n","type":"integer","required":false,"description":"d","authServices":[],"default":5},` +
		`{"name":"o","type":"float","required":false,"description":"d","authServices":[]},` +
		`{"name":"list","type":"array","required":true,"description":"d","authServices":[],"items":` +
		`{"name":"x","type":"array","required":true,"description":"d","authServices":[],"items":` +
		`{"name":"y","type":"object","required":true,"description":"d","authServices":[],"additionalProperties":true}}},` +
		`{"name":"of","type":"object","required":true,"description":"d","authServices":[],"additionalProperties":{"type":"float"}},` +
		`{"name":"uid","type":"string","required":true,"description":"d","authServices":["my_auth"]},` +
		`{"name":"tab","type":"string","required":true,"description":"d","authServices":[]}]`
	if diff := cmp.Diff(want, string(set.Manifest())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A pattern appears only if other dialects read it in the same way.
func TestSet_SchemaPatterns(t *testing.T) {
	for entry, want := range map[string]string{
		`^a$`: `^a$`, `/a/`: `^(?:a)$`, `/^a$/`: `^a$`, `^a|b$`: `^(?:^a|b$)$`, `/a\/b\./`: `^(?:a\/b\.)$`, `/(?:a)[\w-]{1,3}/`: `^(?:(?:a)[\w-]{1,3})$`, `/\d+\\/`: `^(?:\d+\\)$`,
		`/(?i)a/`: ``, `/(?P<n>a)/`: ``, `/[[:alpha:]]/`: ``, `/\pL/`: ``, `/\Qa\E/`: ``, `/\Aa\z/`: ``, `^(?m)a$`: ``, `//`: `^(?:)$`,
	} {
		spec, _ := json.Marshal([]any{map[string]any{"type": "string", "allowedValues": []string{entry}}})
		var schema struct {
			Properties struct{ A struct{ Pattern string } }
		}
		if err := json.Unmarshal(compile(t, string(spec), `[]`).Schema(), &schema); err != nil {
			t.Fatal(err)
		}
		if got := schema.Properties.A.Pattern; got != want {
			t.Errorf("%s: got %q, want %q", entry, got, want)
		}
	}
}
