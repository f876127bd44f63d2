package parameter_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/argschema"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// FuzzParse parses any arguments. Accepted ones are valid by the schema, and are
// accepted again in the form that JSON returns.
func FuzzParse(f *testing.F) {
	set := compile(f, manyParameters, `[{"name":"tab","type":"string","required":false}]`)
	schema, err := argschema.Compile(set.Schema())
	if err != nil {
		f.Fatal(err)
	}
	claims := claimsFrom(map[string]string{"my_auth": `{"sub":"u1"}`})
	for _, args := range []string{``, `null`, `{"s":"x","code":"CY","word":"a","two":"b","go":"A","f":2,"list":[1.0],"any":{"k":[null,1e5]}}`,
		`{"s":"","code":"AA","word":"b","two":"a","go":"a","f":1.5,"list":[],"any":{},"of":{"k":1},"n":null,"tab":"\u0061"}`, `{"s":`, `{"list":[[[[[`} {
		f.Add([]byte(args))
	}
	f.Fuzz(func(t *testing.T, args []byte) {
		values, err := set.ParseArguments(args, claims, json.RawMessage(`{"key":"k"}`))
		if err != nil {
			wantError(t, err, errcode.InvalidArguments)
			return
		}
		if err := schema.Validate(args); err != nil {
			t.Errorf("accepted, but the schema returns %v", err)
		}
		again, err := set.ParseArguments(values.JSON(), claims, json.RawMessage(`{"key":"k"}`))
		if err != nil || again.String() != values.String() {
			t.Errorf("%s was accepted, then: %s, %v", values, again, err)
		}
	})
}

// FuzzTemplate parses any text as a template. The result is bounded, never shows a
// missing value, and is the same each time.
func FuzzTemplate(f *testing.F) {
	set := compile(f, `[]`, allTypes)
	for _, text := range []string{`SELECT {{.s}} {{if .w}}{{.w}}{{end}}`, `{{array .q}}{{range $i, $e := .l}}{{$e}}{{end}}`, `{{with $x := .n}}{{print $x}}{{else}}{{.f}}{{end}}`,
		`{{range .n}}{{range $.n}}{{.}}{{end}}{{end}}`, `{{printf "%v" .m.k}}{{json .}}`, `{{- /* x */ -}}`, `{{define "x"}}{{end}}`, `{{.w}}`} {
		f.Add(text, `{"s":"x","n":3,"l":["a"],"q":["b"],"m":{"k":1}}`)
	}
	f.Fuzz(func(t *testing.T, text, args string) {
		template, err := set.StatementTemplate(text)
		if err != nil {
			return
		}
		values, err := set.ParseArguments(json.RawMessage(args), nil, nil)
		if err != nil {
			return
		}
		got, err := template.RenderText(values)
		if err != nil {
			wantError(t, err, errcode.InvalidArguments)
		}
		if len(got) > parameter.MaxText || strings.Contains(got, "<no value>") && !strings.Contains(text+args, "no value") {
			t.Errorf("got %.100q of %d bytes", got, len(got))
		}
		if again, _ := template.RenderText(values); again != got {
			t.Errorf("got %q, then %q", got, again)
		}
	})
}

// FuzzLiterals compiles parameters with any literals. A Set has a valid schema and
// accepts its own defaults.
func FuzzLiterals(f *testing.F) {
	for _, kind := range []string{"string", "integer", "float", "boolean", "array", "map"} {
		f.Add(kind, "x", uint8(0), "/x|y/", uint8(0), "y$", uint8(0), "1", uint8(1))
		f.Add(kind, "0x1F", uint8(1), "31", uint8(1), "[1]", uint8(4), "-.5e3", uint8(1))
		f.Add(kind, `[1.0,"x"]`, uint8(4), `{"k":null}`, uint8(5), "(", uint8(0), "true", uint8(2))
	}
	f.Fuzz(func(t *testing.T, kind, standard string, a uint8, allowed string, b uint8, excluded string, c uint8, least string, d uint8) {
		literal := func(text string, kind uint8) parameter.Literal {
			return parameter.Literal{Text: text, Kind: parameter.Kind(kind)}
		}
		first, low := literal(standard, a), literal(least, d)
		spec := parameter.Spec{Name: "a", Type: kind, Description: "d", Default: &first}
		if kind == parameter.TypeArray {
			spec.Items = &parameter.Spec{Name: "x", Type: parameter.TypeString, Description: "d"}
		}
		if kind == parameter.TypeInteger || kind == parameter.TypeFloat {
			spec.Min = &low
		}
		spec.Allowed, spec.Excluded = []parameter.Literal{literal(allowed, b)}, []parameter.Literal{literal(excluded, c)}
		set, problems := parameter.CompileSet(parameter.Options{}, []parameter.Spec{spec}, nil)
		if (set == nil) != (len(problems) > 0) {
			t.Fatalf("got %v and %v", set, problems)
		}
		if set == nil {
			return
		}
		schema, err := argschema.Compile(set.Schema())
		if err != nil {
			t.Fatalf("%s: %v", set.Schema(), err)
		}
		values, err := set.ParseArguments(nil, nil, nil)
		if first.Kind == parameter.KindNull {
			wantError(t, err, errcode.InvalidArguments)
			return
		}
		if err != nil {
			t.Fatalf("the default is rejected: %v", err)
		}
		if err := schema.Validate(values.JSON()); err != nil {
			t.Errorf("the default %s is invalid by the schema %s: %v", values, set.Schema(), err)
		}
	})
}
