package argschema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
)

func ExampleSchema_Validate() {
	s, err := argschema.Compile(json.RawMessage(`{
		"type": "object",
		"properties": {"items": {"type": "array", "items": {"required": ["name"]}}},
		"additionalProperties": false
	}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Validate(json.RawMessage(`{"items": [{"name": "a"}, {}], "lmit": 3}`)))
	// Output:
	// invalid_arguments: unknown property lmit; items[1].name: is missing
}

func compile(t testing.TB, input string) *argschema.Schema {
	t.Helper()
	s, err := argschema.Compile(json.RawMessage(input))
	if err != nil {
		t.Fatalf("Compile: %v", err)
	}
	return s
}

// object returns the schema of an object with the given properties.
func object(properties string) string {
	return `{"type":"object","properties":{` + properties + `}}`
}

func TestCompile_Rejects(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.json")
	if err := os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	ref := func(url string) string { return object(`"a":{"$ref":"` + url + `"}`) }
	tests := []struct{ name, input, want string }{
		{"empty schema", ``, "not an object at byte 0"},
		{"no type", `{}`, `type: want "object" at the top`},
		{"other type", `{"type":"string"}`, `type: want "object" at the top`},
		{"list of types", `{"type":["object"]}`, `type: want "object" at the top`},
		{"true", `true`, "not an object at byte 0"},
		{"duplicate keyword", `{"type":"object","type":"object"}`, `duplicate key "type" at byte 17`},
		{"misspelt type", object(`"a":{"type":"strng"}`), `properties.a.type: want one of "array"`},
		{"keyword of a wrong type", object(`"a":{"minLength":"3"}`), `properties.a.minLength: want integer, got string`},
		{"required is not a list", `{"type":"object","required":"a"}`, `required: want array, got string`},
		{"lookahead", object(`"a":{"type":"string","pattern":"^(?=x)"}`), `pattern "^(?=x)" is not a Go regular expression (lookahead and back references are not supported)`},
		{"lookahead in an older draft", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"pattern":"(?!x)"}}}`, `pattern "(?!x)" is not a Go regular expression`},
		{"lookahead in a name", `{"type":"object","patternProperties":{"(?<=x)":{}}}`, `pattern "(?<=x)" is not a Go regular expression`},
		{"file", ref("file://" + secret), `leaves the schema`},
		{"path", ref(secret), `leaves the schema`},
		{"relative path", ref("schema_test.go"), `leaves the schema`},
		{"address", ref("http://127.0.0.1:1/schema.json"), `reference to "http://127.0.0.1:1/schema.json" leaves the schema`},
		{"dynamic reference to a file", object(`"a":{"$dynamicRef":"file://` + secret + `"}`), `leaves the schema`},
		{"meta-schema in a file", `{"$schema":"file://` + secret + `","type":"object"}`, `leaves the schema`},
		{"base is a file", `{"$id":"file:///etc/","type":"object","properties":{"a":{"$ref":"passwd"}}}`, `leaves the schema`},
		{"reference to nothing", ref("#/$defs/no"), `not found`},
		{"schema too large", `{"type":"object","title":"` + strings.Repeat("a", argschema.MaxSchema) + `"}`, "more than 262144"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := argschema.Compile(json.RawMessage(tt.input))
			if err == nil || !strings.HasPrefix(err.Error(), "input schema: ") || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want input schema: ... %s", err, tt.want)
			}
		})
	}
}

func TestCompile_Accepts(t *testing.T) {
	tests := []struct{ name, input string }{
		{"smallest schema", `{"type":"object"}`},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","definitions":{"a":{}},"properties":{"a":{"$ref":"#/definitions/a"}}}`},
		{"schema that contains itself", `{"type":"object","properties":{"next":{"$ref":"#"}}}`},
		{"reference by the schema's own id", `{"$id":"https://example.com/a","type":"object","$defs":{"x":{}},"properties":{"a":{"$ref":"https://example.com/a#/$defs/x"}}}`},
		{"unknown keywords", `{"type":"object","x-note":1}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) { compile(t, tt.input) })
	}
}

// A schema whose references multiply is rejected or compiled in reasonable time.
func TestCompile_IsBounded(t *testing.T) {
	var self, chain strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&self, `,"p%d":{"$ref":"#"}`, i)
	}
	for i := range 24 { // every property is one of two sets: 2^24 combinations
		fmt.Fprintf(&chain, `,"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"allOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d0"}]}}}`, i, (i+1)%24, (i+1)%24)
	}
	for _, input := range []string{
		object(self.String()[1:]),
		`{"type":"object","$ref":"#/$defs/d0","$defs":{` + chain.String()[1:] + `}}`,
	} {
		start := time.Now()
		_, err := argschema.Compile(json.RawMessage(input))
		if took := time.Since(start); took > 3*time.Minute {
			t.Errorf("got %v after %v, want less, also on a busy machine", err, took)
		}
	}
}

func TestSchema_Parse(t *testing.T) {
	s := compile(t, `{
		"type": "object",
		"properties": {
			"path": {"type": "string"},
			"inner": {"$ref": "#/$defs/inner"},
			"list": {"type": "array", "items": {"$ref": "#/$defs/inner"}},
			"either": {"anyOf": [{"type": "null"}, {"$ref": "#/$defs/inner"}]},
			"next": {"$ref": "#"},
			"map": {"additionalProperties": {"$ref": "#/$defs/inner"}},
			"tuple": {"prefixItems": [{"$ref": "#/$defs/inner"}]}
		},
		"dependentSchemas": {"path": {"properties": {"mode": {}}}},
		"if": {"properties": {"path": {"const": "x"}}},
		"then": {"properties": {"force": {}}},
		"$defs": {"inner": {"properties": {"kind": {}}}}
	}`)
	tests := []struct{ name, args, known string }{
		{"exact names", `{"path":"a","inner":{"kind":1},"list":[{"kind":1}],"next":{"path":"b"}}`, ""},
		{"at the top", `{"Path":"a"}`, "path"},
		{"in a reference", `{"inner":{"Kind":1}}`, "kind"},
		{"in elements", `{"list":[{},{"KIND":1}]}`, "kind"},
		{"in an alternative", `{"either":{"Kind":1}}`, "kind"},
		{"in the schema itself", `{"next":{"next":{"PATH":1}}}`, "path"},
		{"in values of unnamed properties", `{"map":{"Path":{"Kind":1}}}`, "kind"},
		{"unnamed properties", `{"map":{"Path":{"kind":1}}}`, ""},
		{"in a tuple", `{"tuple":[{"Kind":1}]}`, "kind"},
		{"in a dependent schema", `{"Mode":1}`, "mode"},
		{"in a condition", `{"Force":1}`, "force"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := s.Parse(json.RawMessage(tt.args))
			if tt.known == "" {
				if err != nil {
					t.Errorf("got %v, want nil", err)
				}
				return
			}
			wantInvalid(t, err, fmt.Sprintf("differs from %q in case only", tt.known))
		})
	}
	t.Run("empty arguments", func(t *testing.T) { wantInvalid(t, s.Parse(nil), "not an object at byte 0") })
	t.Run("duplicate key", func(t *testing.T) {
		wantInvalid(t, s.Parse(json.RawMessage(`{"x":1,"x":2}`)), `duplicate key "x" at byte 7`)
	})
}

// Two keys that differ in case only are rejected in every object whose keys the schema
// describes. Content may have both.
func TestSchema_RejectsKeysThatFoldAlike(t *testing.T) {
	doc := manyKeys(`"zpath":{},"zPath":{}`)
	manyProperties := doc[1 : len(doc)-1]
	both := func(form string) string { return fmt.Sprintf(form, `"path":1,"Path":2`) }
	for name, tt := range map[string]struct {
		input, args string
		rejected    bool
	}{
		"named nowhere":              {`{"type":"object"}`, both(`{%s}`), true},
		"named in no property":       {object(`"a":{}`), both(`{"a":1,%s}`), true},
		"in required":                {`{"type":"object","required":["path"]}`, both(`{%s}`), true},
		"in patternProperties":       {`{"type":"object","patternProperties":{"(?i)^path$":{}}}`, both(`{%s}`), true},
		"any property allowed":       {`{"type":"object","additionalProperties":true}`, both(`{%s}`), true},
		"required further down":      {object(`"a":{"required":["path"]}`), both(`{"a":{%s}}`), true},
		"pattern further down":       {object(`"a":{"patternProperties":{"^p":{}}}`), both(`{"a":{%s}}`), true},
		"values further down":        {object(`"a":{"additionalProperties":{"type":"number"}}`), both(`{"a":{%s}}`), true},
		"names further down":         {object(`"a":{"propertyNames":{"maxLength":9}}`), both(`{"a":{%s}}`), true},
		"other name further down":    {object(`"a":{"properties":{"b":{}}}`), both(`{"a":{%s}}`), true},
		"dependency further down":    {object(`"a":{"dependentRequired":{"path":["b"]}}`), both(`{"a":{%s}}`), true},
		"in elements":                {object(`"a":{"items":{"required":["path"]}}`), both(`{"a":[{},{%s}]}`), true},
		"in an alternative":          {object(`"a":{"anyOf":[{"type":"string"},{"required":["path"]}]}`), both(`{"a":{%s}}`), true},
		"in a reference":             {`{"type":"object","properties":{"a":{"$ref":"#"}}}`, both(`{"a":{"a":{%s}}}`), true},
		"Kelvin sign":                {`{"type":"object"}`, "{\"kind\":1,\"\u212aind\":2}", true},
		"escape":                     {`{"type":"object"}`, `{"path":1,"\u0050ath":2}`, true},
		"among many keys":            {`{"type":"object"}`, manyKeys(both(`%s`)), true},
		"before many keys":           {`{"type":"object"}`, `{"PATH":1,` + manyKeys(`"path":2`)[1:], true},
		"content":                    {object(`"payload":{"description":"any JSON"}`), both(`{"payload":{%s}}`), false},
		"content below content":      {object(`"payload":{}`), both(`{"payload":[{"a":{%s}}]}`), false},
		"object of any content":      {object(`"meta":{"type":"object"}`), both(`{"meta":{%s}}`), false},
		"object of any properties":   {object(`"meta":{"type":"object","additionalProperties":true}`), both(`{"meta":{%s}}`), false},
		"different objects":          {`{"type":"object"}`, `{"path":{"Path":1},"x":[{"path":1},{"Path":1}]}`, false},
		"both named":                 {object(`"path":{},"Path":{}`), both(`{%s}`), false},
		"both named after 64 names":  {object(manyProperties), `{"zpath":1,"zPath":2}`, false},
		"both named among many keys": {object(manyProperties), manyKeys(`"zpath":1,"zPath":2,"X":1,"ZPATHS":2`), false},
		"keys that differ":           {`{"type":"object"}`, manyKeys(`"path":1,"paths":2`), false},
	} {
		t.Run(name, func(t *testing.T) {
			err := compile(t, tt.input).Parse(json.RawMessage(tt.args))
			if tt.rejected {
				wantInvalid(t, err, " differ in case only: write one of them")
			} else if err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	}
}

// manyKeys returns an object with 99 keys and then more.
func manyKeys(more string) string {
	var b strings.Builder
	for i := range 99 {
		fmt.Fprintf(&b, `"k%d":{},`, i)
	}
	return "{" + b.String() + more + "}"
}

func wantInvalid(t *testing.T, err error, text string) {
	t.Helper()
	if got := errcode.CodeOf(err); got != errcode.InvalidArguments {
		t.Errorf("got code %q of %v, want %q", got, err, errcode.InvalidArguments)
	}
	if got := errcode.Message(err); !strings.Contains(got, text) {
		t.Errorf("got message %q, want it to contain %q", got, text)
	}
}

func TestSchema_ValidateDescribesProblems(t *testing.T) {
	tests := []struct{ name, input, args, want string }{
		{"type", object(`"limit":{"type":"integer"}`), `{"limit":"3"}`, `limit: want integer, got string`},
		{"several types", object(`"a":{"type":["null","array"]}`), `{"a":1}`, `a: want array or null, got number`},
		{"fraction for an integer", object(`"a":{"type":"integer"}`), `{"a":1.5}`, `a: want integer, got number`},
		{"missing field deep inside", object(`"items":{"items":{"required":["name"]}}`), `{"items":[{"name":1},{"name":1},{}]}`, `items[2].name: is missing`},
		{"several missing fields", `{"type":"object","required":["a","b"]}`, `{}`, `a: is missing; b: is missing`},
		{"unknown property", `{"type":"object","additionalProperties":false}`, `{"paht":1}`, `unknown property paht`},
		{"unknown property, unevaluated", `{"type":"object","unevaluatedProperties":false}`, `{"paht":1}`, `paht: is not allowed`},
		{"quoted name", object(`"a b":{"additionalProperties":{"type":"null"}}`), `{"a b":{"c.d/~":1}}`, `["a b"]["c.d/~"]: want null, got number`},
		{"numeric name", object(`"m":{"additionalProperties":{"type":"null"}}`), `{"m":{"7":1}}`, `m.7: want null, got number`},
		{"enum", object(`"a":{"enum":["x","y",1]}`), `{"a":"z"}`, `a: want one of "x", "y", 1`},
		{"const", object(`"a":{"const":{"x":1}}`), `{"a":"z"}`, `a: want {"x":1}`},
		{"length", object(`"a":{"minLength":2},"b":{"maxLength":1}`), `{"a":"é","b":"éé"}`, `a: want at least 2 characters, got 1; b: want at most 1 characters, got 2`},
		{"elements", object(`"a":{"minItems":1},"b":{"maxItems":0},"c":{"uniqueItems":true}`), `{"a":[],"b":[1],"c":[1,2,1.0]}`, `a: want at least 1 elements, got 0; b: want at most 0 elements, got 1; c: elements 0 and 2 are equal`},
		{"numbers", object(`"a":{"minimum":1},"b":{"exclusiveMaximum":1.5},"c":{"multipleOf":0.1}`), `{"a":0,"b":1.5,"c":0.25}`, `a: want at least 1, got 0; b: want less than 1.5, got 1.5; c: want a multiple of 0.1, got 0.25`},
		{"pattern", object(`"a":{"pattern":"^[a-z]+$"}`), `{"a":"A"}`, `a: want text that matches ^[a-z]+$`},
		{"big number keeps its digits", object(`"a":{"maximum":9007199254740992}`), `{"a":9007199254740993}`, `a: want at most 9007199254740992, got 9007199254740993`},
		{"huge number", object(`"a":{"maximum":10}`), `{"a":1e400}`, `a: want at most 10, got 1e+400`},
		{"alternatives by type", object(`"a":{"anyOf":[{"type":"string"},{"type":"null"}]}`), `{"a":1}`, `a: want null or string, got number`},
		{"nearest alternative", object(`"a":{"oneOf":[{"type":"string"},{"type":"object","required":["x"]}]}`), `{"a":{}}`, `a.x: is missing`},
		{"alternative a fixed value chooses", object(`"a":{"oneOf":[
			{"properties":{"kind":{"const":"file"},"path":{"type":"string"}},"required":["path"]},
			{"properties":{"kind":{"const":"url"},"url":{"type":"string"},"n":{"type":"null"}},"required":["url"]}]}`),
			`{"a":{"kind":"url","n":1}}`, `a.n: want null, got number; a.url: is missing`},
		{"more than one of oneOf", object(`"a":{"oneOf":[{},{}]}`), `{"a":1}`, `a: matches several alternatives, want exactly one`},
		{"not", object(`"a":{"not":{"type":"null"}}`), `{"a":null}`, `a: matches what "not" forbids`},
		{"dependency", `{"type":"object","dependentRequired":{"a":["b"]}}`, `{"a":1}`, `b: is missing, required with a`},
		{"property name", `{"type":"object","propertyNames":{"maxLength":1}}`, `{"ab":1}`, `ab: is not an allowed property name`},
		{"contains", object(`"a":{"contains":{"type":"null"}}`), `{"a":[1]}`, `a: too few elements match`},
		{"no further arguments", `{"type":"object","maxProperties":0}`, `{"a":1}`, `want at most 0 properties, got 1`},
		{"format of an older draft", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"format":"email"}}}`, `{"a":"x"}`, `a: want a valid email`},
		{"reference", `{"type":"object","$defs":{"n":{"type":"null"}},"properties":{"a":{"$ref":"#/$defs/n"}}}`, `{"a":1}`, `a: want null, got number`},
		{"five problems of nine", `{"type":"object","additionalProperties":{"type":"null"}}`, `{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1,"i":1}`,
			`a: want null, got number; b: want null, got number; c: want null, got number; d: want null, got number; e: want null, got number; and 4 more`},
		{"schema that refers to itself alone", `{"type":"object","properties":{"a":{"$ref":"#/properties/a"}}}`, `{"a":1}`, `a: fits no schema that refers to itself alone`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, args := compile(t, tt.input), json.RawMessage(tt.args)
			if err := s.Parse(args); err != nil {
				t.Fatal(err)
			}
			err := s.Validate(args)
			wantInvalid(t, err, tt.want)
			if diff := cmp.Diff(errcode.Message(err), tt.want); diff != "" {
				t.Errorf("message (-got +want):\n%s", diff)
			}
		})
	}
}

func TestSchema_ValidateAccepts(t *testing.T) {
	tests := []struct{ name, input, args string }{
		{"integer beyond 64 bits", object(`"a":{"type":"integer"}`), `{"a":123456789012345678901234567890}`},
		{"integer with a fraction of zero", object(`"a":{"type":"integer"}`), `{"a":1.0}`},
		{"document of the schema's depth", `{"type":"object","properties":{"next":{"$ref":"#"}}}`, `{"next":{"next":{}}}`},
		{"format of the newest draft is a hint", object(`"a":{"format":"email"}`), `{"a":"x"}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := compile(t, tt.input).Validate(json.RawMessage(tt.args)); err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	}
}

func TestSchema_ValidateErrorIsShort(t *testing.T) {
	s := compile(t, `{"type":"object","additionalProperties":false}`)
	err := s.Validate(json.RawMessage(`{"` + strings.Repeat("é", 1<<20) + `":1}`))
	if got := len(errcode.Message(err)); got > 200 {
		t.Errorf("got a message of %d bytes, want at most 200", got)
	}
}

// No schema and no arguments take Validate long, and a million problems take no longer to
// describe than five.
func TestSchema_ValidateIsBounded(t *testing.T) {
	const filter = `{"type":"object","properties":{"where":{"$ref":"#/$defs/node"}},"$defs":{"node":{"oneOf":[
		{"properties":{"op":{"const":"and"},"of":{"type":"array","items":{"$ref":"#/$defs/node"}}}},
		{"properties":{"op":{"const":"or"},"of":{"type":"array","items":{"$ref":"#/$defs/node"}}}},
		{"properties":{"op":{"const":"is"}},"additionalProperties":{"$ref":"#/$defs/node"}}]}}}`
	var doubling strings.Builder
	for i := range 40 {
		fmt.Fprintf(&doubling, `"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, i+1, i+1)
	}
	nested := func(n int) string {
		return `{"where":` + strings.Repeat(`{"op":"or","of":[`, n) + `{"op":"is"}` + strings.Repeat(`]}`, n) + `}`
	}
	list := func(n int, element string) string { // with element formatted for 0 to n-1
		var elements []string
		for i := range n {
			elements = append(elements, fmt.Sprintf(element, i))
		}
		return strings.Join(elements, ",")
	}
	const tooMany = "arguments take too many steps"
	tests := []struct{ name, input, args, want string }{
		{"filter of six levels", filter, nested(6), ""},
		{"filter of thirty levels", filter, nested(30), tooMany},
		{"alternatives that double 40 times", `{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + doubling.String() + `"d40":{"type":"null"}}}`, `{"a":1}`, tooMany},
		{"long lists of required names", object(`"a":{"items":{"required":[` + list(5000, `"w%d"`) + `]}}`), `{"a":[` + list(2000, `{"n":%d}`) + `]}`, tooMany},
		{"long lists of values", object(`"a":{"items":{"enum":[` + list(5000, `"w%d"`) + `]}}`), `{"a":[` + list(2000, `"v%d"`) + `]}`, tooMany},
		{"many names for many patterns", `{"type":"object","patternProperties":{` + list(500, `"^([ab]*a){%d}x":{}`) + `}}`, `{` + list(10000, `"aaaaaaaaaaaaaaaa%d":1`) + `}`, tooMany},
		{"long names for many patterns", `{"type":"object","patternProperties":{` + list(6000, `"^([ab]*a){2}x%d":{}`) + `}}`, `{` + list(300, `"`+strings.Repeat("a", 20_000)+`%d":1`) + `}`, tooMany},
		{"long names for a pattern of names", object(`"a":{"propertyNames":{"allOf":[` + list(2000, `{"pattern":"^([ab]*a){2}x%d"}`) + `]}}`), `{"a":{` + list(300, `"`+strings.Repeat("a", 20_000)+`%d":1`) + `}}`, tooMany},
		{"long text for many patterns", object(`"a":{"allOf":[` + list(2000, `{"pattern":"^([ab]*a){2}x%d"}`) + `]}`), `{"a":"` + strings.Repeat("a", 7<<20) + `"}`, tooMany},
		{"reference to itself", object(`"a":{"$ref":"#/properties/a"}`), `{"a":[1]}`, "a: fits no schema that refers to itself alone"},
		{"long text", `{"type":"object","properties":{"a":{"type":"string"},"next":{"$ref":"#"}}}`, `{"a":"` + strings.Repeat("a", 4<<20) + `"}`, ""},
		{"many problems", object(`"a":{"items":{"minimum":0.1}}`), `{"a":[` + strings.Repeat("1e-399,", 1<<14) + `1]}`, "a[0]: want at least 0.1, got 1e-399; a[1]: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, args := compile(t, tt.input), json.RawMessage(tt.args)
			start := time.Now()
			err := s.Validate(args)
			if took := time.Since(start); took > 3*time.Minute {
				t.Errorf("took %v, want less, also on a busy machine", took)
			}
			if tt.want != "" {
				wantInvalid(t, err, tt.want)
			} else if err != nil {
				t.Errorf("got %v, want nil", err)
			}
		})
	}
}

// Decoded arguments take up to sixty times their size, so those with very many values are not
// decoded.
func TestSchema_ValidateDoesNotDecodeManyValues(t *testing.T) {
	s := compile(t, object(`"a":{"type":"string"}`))
	args := json.RawMessage(`{"a":[` + strings.Repeat(`{"a":1},`, 1<<18) + `1]}`)
	allocated := testing.AllocsPerRun(1, func() { wantInvalid(t, s.Validate(args), "arguments have 524291 values") })
	if allocated > 1000 {
		t.Errorf("Validate made %v allocations", allocated)
	}
}

// FuzzParse checks that Validate and encoding/json read whatever Parse accepts, without a panic
// and with the same value of a field.
func FuzzParse(f *testing.F) {
	s := compile(f, `{"type":"object","properties":{
		"path":{"type":"string","pattern":"^[a-z]*$","maxLength":9},
		"n":{"type":"integer","minimum":0,"maximum":10,"multipleOf":2},
		"list":{"uniqueItems":true,"items":{"anyOf":[{"type":"number"},{"$ref":"#"}]}}}}`)
	for _, seed := range []string{`{}`, `{"path":"a","n":4}`, `{"Path":"a"}`, `{"n":1e400,"list":[1,2,{"path":"x"},1e-400]}`, `{"list":[[],{"n":-1}]}`, `{"\u0070ath":"\ud83d\ude00"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		if s.Parse(args) != nil {
			return
		}
		_ = s.Validate(args)
		var bound struct{ Path json.RawMessage }
		var exact map[string]json.RawMessage
		if err := json.Unmarshal(args, &exact); err != nil {
			t.Fatalf("decode what Parse accepted: %v", err)
		}
		if err := json.Unmarshal(args, &bound); err != nil {
			t.Fatalf("decode what Parse accepted: %v", err)
		}
		if diff := cmp.Diff(string(bound.Path), string(exact["path"])); diff != "" {
			t.Errorf("path as encoding/json binds it (-got +want):\n%s", diff)
		}
	})
}

// FuzzCompile checks that Compile and Validate do not panic.
func FuzzCompile(f *testing.F) {
	for _, seed := range []string{
		object(`"a":{"$ref":"#/$defs/x"}`), `{"type":"object","$id":"x","$defs":{"a":{"$id":"y","$anchor":"z"}}}`,
		`{"type":"object","allOf":[{"$ref":"#"}],"$dynamicAnchor":"a","properties":{"a":{"$dynamicRef":"#a"}}}`,
		`{"$schema":"http://json-schema.org/draft-04/schema#","id":"#a","type":"object","dependencies":{"a":["b"]}}`,
	} {
		f.Add([]byte(seed), []byte(`{"a":[1,{"b":"c"}]}`))
	}
	f.Fuzz(func(t *testing.T, input, args []byte) {
		s, err := argschema.Compile(input)
		if err == nil && s.Parse(args) == nil {
			_ = s.Validate(args)
		}
	})
}

func BenchmarkSchema(b *testing.B) {
	s := compile(b, `{"type":"object","properties":{"path":{"type":"string"},"limit":{"type":"integer","minimum":1},"tags":{"type":"array","items":{"type":"string"}}},"required":["path"],"additionalProperties":false}`)
	args := json.RawMessage(`{"path":"src/main.go","limit":25,"tags":["a","b","c"]}`)
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Parse(args); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("validate", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.Validate(args); err != nil {
				b.Fatal(err)
			}
		}
	})
}
