package parameter_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// Each problem names the field.
func TestCompileSet_Rejects(t *testing.T) {
	for name, c := range map[string]struct{ ordinary, template, field, words string }{
		"no name":                   {`[{"name":"","type":"string"}]`, ``, "parameters[0].name", "missing"},
		"no type":                   {`[{}]`, ``, "parameters[0].type", "missing"},
		"no description":            {`[{"type":"string","description":""}]`, ``, "parameters[0].description", "missing"},
		"a control character":       {`[{"name":"a\nb","type":"string"}]`, ``, "parameters[0].name", "U+000A"},
		"a long name":               {`[{"name":"` + strings.Repeat("a", 257) + `","type":"string"}]`, ``, "parameters[0].name", "257 bytes"},
		"an unknown type":           {`[{"type":"int"}]`, ``, "parameters[0].type", `"int"`},
		"one name twice":            {`[{"name":"a","type":"string"},{"name":"a","type":"integer"}]`, ``, "parameters[1].name", `"a"`},
		"one name in both lists":    {`[{"name":"a","type":"string"}]`, `[{"name":"a","type":"string"}]`, "templateParameters[0].name", `"a"`},
		"limits of a string":        {`[{"type":"string","minValue":1}]`, ``, "parameters[0].minValue", "integer and float"},
		"limits of an array":        {`[{"type":"array","items":{"type":"integer"},"maxValue":1}]`, ``, "parameters[0].maxValue", "belongs"},
		"an integer escaped":        {`[{"type":"integer","escape":"backticks"}]`, ``, "parameters[0].escape", "belongs to type string"},
		"an unknown escape":         {`[{"type":"string","escape":"pipes"}]`, ``, "parameters[0].escape", `"pipes"`},
		"items of a string":         {`[{"type":"string","items":{"type":"string"}}]`, ``, "parameters[0].items", "array"},
		"valueType of an array":     {`[{"type":"array","items":{"type":"string"},"valueType":"string"}]`, ``, "parameters[0].valueType", "map"},
		"an array without items":    {`[{"type":"array"}]`, ``, "parameters[0].items", "without items"},
		"items without a type":      {`[{"type":"array","items":{}}]`, ``, "parameters[0].items.type", "missing"},
		"items of claims":           {`[{"type":"array","items":{"type":"string","authServices":[{"name":"my_auth","field":"sub"}]}}]`, ``, "parameters[0].items.authServices", "belongs"},
		"items that are secure":     {`[{"type":"array","items":{"type":"string","secure":true}}]`, ``, "parameters[0].items.secure", "belongs"},
		"items that are copied":     {`[{"type":"array","items":{"type":"string","valueFromParam":"a"}}]`, ``, "parameters[0].items.valueFromParam", "belongs"},
		"items of items":            {`[{"type":"array","items":{"type":"array","items":{"type":"strings"}}}]`, ``, "parameters[0].items.items.type", "strings"},
		"a default of items":        {`[{"type":"string"},{"type":"string"},{"type":"array","items":{"type":"integer","default":"x"}}]`, ``, "parameters[2].items.default", "x"},
		"a map of arrays":           {`[{"type":"map","valueType":"array"}]`, ``, "parameters[0].valueType", `"array"`},
		"default: another type":     {`[{"type":"integer","default":"x"}]`, ``, "parameters[0].default", "x"},
		"default: a number quoted":  {`[{"type":"integer","default":"5"}]`, ``, "parameters[0].default", "text"},
		"default: a fraction":       {`[{"type":"integer","default":1.5}]`, ``, "parameters[0].default", "whole number"},
		"default: beyond int64":     {`[{"type":"integer","default":9223372036854775808}]`, ``, "parameters[0].default", "64 bits"},
		"default: beyond float64":   {`[{"type":"float","default":1e309}]`, ``, "parameters[0].default", "float64"},
		"default: a text":           {`[{"type":"boolean","default":"true"}]`, ``, "parameters[0].default", "text"},
		"default: a list":           {`[{"type":"string","default":["x"]}]`, ``, "parameters[0].default", "list"},
		"default: not allowed":      {`[{"type":"string","default":"zz","allowedValues":["x"]}]`, ``, "parameters[0].default", `want "x"`},
		"default: excluded":         {`[{"type":"string","default":"zz","excludedValues":["z"]}]`, ``, "parameters[0].default", "excluded"},
		"default: below":            {`[{"type":"integer","default":0,"minValue":5}]`, ``, "parameters[0].default", "under the minimum value 5"},
		"default: an element":       {`[{"type":"array","items":{"type":"integer","maxValue":1},"default":[1,2]}]`, ``, "parameters[0].default", "element #1"},
		"default: a member":         {`[{"type":"map","valueType":"integer","default":{"k":true}}]`, ``, "parameters[0].default", "true"},
		"default: a NUL":            {``, `[{"type":"string","default":"a\u0000"}]`, "templateParameters[0].default", "U+0000"},
		"limits that cross":         {`[{"type":"integer","minValue":10,"maxValue":1}]`, ``, "parameters[0].minValue", "minimum 10 is above"},
		"limits that just cross":    {`[{"type":"float","minValue":0.10000000000000001,"maxValue":0.1}]`, ``, "parameters[0].minValue", "is above"},
		"a limit in quotes":         {`[{"type":"integer","minValue":"1"}]`, ``, "parameters[0].minValue", "text"},
		"a limit of a fraction":     {`[{"type":"integer","maxValue":1.5}]`, ``, "parameters[0].maxValue", "1.5"},
		"allowed: half anchored":    {`[{"type":"string","allowedValues":["x","^a"]}]`, ``, "parameters[0].allowedValues[1]", "slashes"},
		"allowed: a flag first":     {`[{"type":"string","allowedValues":["(?i)^a$"]}]`, ``, "parameters[0].allowedValues[0]", "slashes"},
		"allowed: a dollar at last": {`[{"type":"string","allowedValues":["^a\\$"]}]`, ``, "parameters[0].allowedValues[0]", "slashes"},
		"allowed: a parenthesis":    {`[{"type":"string","allowedValues":["("]}]`, ``, "parameters[0].allowedValues[0]", "slashes"},
		"allowed: no expression":    {`[{"type":"string","allowedValues":["/(/"]}]`, ``, "parameters[0].allowedValues[0]", "not a regular expression"},
		"allowed: out of the group": {`[{"type":"string","allowedValues":["/a)|(b/"]}]`, ``, "parameters[0].allowedValues[0]", "not a regular expression"},
		"allowed: an open quote":    {`[{"type":"string","allowedValues":["/\\Qa/"]}]`, ``, "parameters[0].allowedValues[0]", "unclosed quote"},
		"allowed: a lookahead":      {`[{"type":"string","allowedValues":["^(?=a)$"]}]`, ``, "parameters[0].allowedValues[0]", "not a regular expression"},
		"allowed: null":             {`[{"type":"string","allowedValues":[null]}]`, ``, "parameters[0].allowedValues[0]", "null"},
		"allowed: another type":     {`[{"type":"integer","allowedValues":[1,"x"]}]`, ``, "parameters[0].allowedValues[1]", "x"},
		"allowed: a fraction":       {`[{"type":"integer","allowedValues":[1.5]}]`, ``, "parameters[0].allowedValues[0]", "1.5"},
		"allowed: no boolean":       {`[{"type":"boolean","allowedValues":[1]}]`, ``, "parameters[0].allowedValues[0]", "1"},
		"allowed: no array":         {`[{"type":"array","items":{"type":"string"},"allowedValues":["a"]}]`, ``, "parameters[0].allowedValues[0]", "a"},
		"allowed: other elements":   {`[{"type":"array","items":{"type":"integer"},"allowedValues":[["a"]]}]`, ``, "parameters[0].allowedValues[0]", "a"},
		"allowed: in items":         {`[{"type":"array","items":{"type":"string","allowedValues":["a|b"]}}]`, ``, "parameters[0].items.allowedValues[0]", "slashes"},
		"excluded: no expression":   {`[{"type":"string","excludedValues":["a","("]}]`, ``, "parameters[0].excludedValues[1]", "not a regular expression"},
		"excluded: another type":    {`[{"type":"float","excludedValues":["x"]}]`, ``, "parameters[0].excludedValues[0]", "x"},
		"an unknown service":        {`[{"type":"string","authServices":[{"name":"my_auth","field":"sub"},{"name":"nope","field":"sub"}]}]`, ``, "parameters[0].authServices[1].name", "nope"},
		"a claim without a name":    {`[{"type":"string","authServices":[{"name":"my_auth"}]}]`, ``, "parameters[0].authServices[0].field", "missing"},
		"a copy of itself":          {`[{"type":"string","valueFromParam":"a"}]`, ``, "parameters[0].valueFromParam", "own value"},
		"a copy of nothing":         {`[{"type":"string","valueFromParam":"z"}]`, ``, "parameters[0].valueFromParam", `"z"`},
		"a copy of another type":    {`[{"type":"integer"},{"type":"string","valueFromParam":"a"}]`, ``, "parameters[1].valueFromParam", "another type"},
		"a copy of other elements":  {`[{"type":"array","items":{"type":"float"}},{"type":"array","items":{"type":"integer"},"valueFromParam":"a"}]`, ``, "parameters[1].valueFromParam", "another type"},
		"a copy of any map":         {`[{"type":"map"},{"type":"map","valueType":"string","valueFromParam":"a"}]`, ``, "parameters[1].valueFromParam", "another type"},
		"a copy of a copy":          {`[{"type":"string"},{"type":"string","valueFromParam":"a"},{"type":"string","valueFromParam":"b"}]`, ``, "parameters[2].valueFromParam", "itself a copy"},
		"secure with a default":     {`[{"type":"string","secure":true,"default":"x"}]`, ``, "parameters[0].default", "secure"},
		"secure but optional":       {`[{"type":"string","secure":true,"required":false}]`, ``, "parameters[0].required", "secure"},
		"secure and a claim":        {`[{"type":"string","secure":true,"authServices":[{"name":"my_auth","field":"sub"}]}]`, ``, "parameters[0]", "exclude each other"},
		"an embedding":              {`[{"type":"string","embeddedBy":"m"}]`, ``, "parameters[0].embeddedBy", `"m"`},
		"an embedded integer":       {`[{"type":"integer","embeddedBy":"m"}]`, ``, "parameters[0].embeddedBy", `"m"`},
		"a template of numbers":     {``, `[{"type":"array","items":{"type":"integer"}}]`, "templateParameters[0].items.type", "string"},
		"too long a description":    {`[{"type":"string","description":"` + strings.Repeat("d", parameter.MaxSchema) + `"}]`, ``, "parameters", "bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			set, problems := parameter.CompileSet(parameter.Options{Services: services}, specsOf(cmp.Or(c.ordinary, "[]")), specsOf(cmp.Or(c.template, "[]")))
			if set != nil {
				t.Error("got a set in addition to the problems")
			}
			if len(problems) != 1 || problems[0].Field != c.field || !strings.Contains(problems[0].Message, c.words) {
				t.Errorf("got %q, want one problem in %s with %q", problems, c.field, c.words)
			}
		})
	}
}

// Two parameters that copy each other are rejected without following the copies.
func TestCompileSet_RejectsCyclicCopies(t *testing.T) {
	_, problems := parameter.CompileSet(parameter.Options{}, specsOf(`[{"type":"string","valueFromParam":"b"},{"type":"string","valueFromParam":"a"}]`), nil)
	if got, want := fields(problems), []string{"parameters[0].valueFromParam", "parameters[1].valueFromParam"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want problems in %q", problems, want)
	}
}

// A schema can contain valid UTF-8 only.
func TestCompileSet_RejectsInvalidUTF8Name(t *testing.T) {
	_, problems := parameter.CompileSet(parameter.Options{}, []parameter.Spec{{Name: "\xff", Type: "string", Description: "d"}}, nil)
	if len(problems) != 1 || problems[0].Field != "parameters[0].name" {
		t.Errorf("got %q, want one problem with the name", problems)
	}
}

// A specification that contains itself is rejected, not followed forever.
func TestCompileSet_RejectsEndlessItems(t *testing.T) {
	s := parameter.Spec{Name: "a", Type: "array", Description: "d"}
	s.Items = &s
	_, problems := parameter.CompileSet(parameter.Options{}, []parameter.Spec{s}, nil)
	if len(problems) != 1 || !strings.Contains(problems[0].Message, "nested more than 32") {
		t.Errorf("got %q, want one problem", problems)
	}
}

// All problems are returned at once, each with its field in the document.
func TestCompileSet_ReturnsAllProblems(t *testing.T) {
	ordinary := specsOf(`[{"type":"string","escape":"x","default":"("},{"type":"integer","minValue":"a","allowedValues":["b"]}]`)
	ordinary[1].At = "bodyParams[0]"
	_, problems := parameter.CompileSet(parameter.Options{}, ordinary, specsOf(`[{"type":"string","authServices":[{"name":"my_auth","field":"sub"}]}]`))
	want := []string{"bodyParams[0].allowedValues[0]", "bodyParams[0].minValue", "parameters[0].escape", "templateParameters[0].authServices[0].name", "templateParameters[0].name"}
	if got := fields(problems); !slices.Equal(got, want) {
		t.Errorf("got %q, want problems in %q", problems, want)
	}
}

// A hint shows how to write what was probably meant.
func TestCompileSet_Hints(t *testing.T) {
	_, problems := parameter.CompileSet(parameter.Options{}, specsOf(`[{"type":"string","allowedValues":["a("]}]`), nil)
	if got := fmt.Sprint(problems); !strings.Contains(got, `/a(/`) || !strings.Contains(got, `/a\(/`) {
		t.Errorf("got %s, want both ways to write the entry", got)
	}
}

// Numbers and booleans are accepted in the notation of YAML.
func TestCompileSet_Literals(t *testing.T) {
	for _, c := range []struct {
		kind    string
		literal parameter.Literal
		want    string // "" for a problem
	}{
		{"integer", parameter.Literal{Text: "+5", Kind: parameter.KindNumber}, "5"},
		{"integer", parameter.Literal{Text: "0x1F", Kind: parameter.KindNumber}, "31"},
		{"integer", parameter.Literal{Text: "0o17", Kind: parameter.KindNumber}, "15"},
		{"integer", parameter.Literal{Text: "-0", Kind: parameter.KindNumber}, "0"},
		{"integer", parameter.Literal{Text: "1e3", Kind: parameter.KindNumber}, "1000"},
		{"integer", parameter.Literal{Text: "9223372036854775807", Kind: parameter.KindNumber}, "9223372036854775807"},
		{"integer", parameter.Literal{Text: "-9223372036854775808", Kind: parameter.KindNumber}, "-9223372036854775808"},
		{"integer", parameter.Literal{Text: "010", Kind: parameter.KindNumber}, ""},
		{"integer", parameter.Literal{Text: "1_000", Kind: parameter.KindNumber}, ""},
		{"integer", parameter.Literal{Text: "0x", Kind: parameter.KindNumber}, ""},
		{"integer", parameter.Literal{Text: "", Kind: parameter.KindNumber}, ""},
		{"integer", parameter.Literal{Text: "5 ", Kind: parameter.KindNumber}, ""},
		{"float", parameter.Literal{Text: ".5", Kind: parameter.KindNumber}, "0.5"},
		{"float", parameter.Literal{Text: "-.5", Kind: parameter.KindNumber}, "-0.5"},
		{"float", parameter.Literal{Text: "5.", Kind: parameter.KindNumber}, "5"},
		{"float", parameter.Literal{Text: "5.e2", Kind: parameter.KindNumber}, "500"},
		{"float", parameter.Literal{Text: ".e2", Kind: parameter.KindNumber}, ""},
		{"float", parameter.Literal{Text: ".", Kind: parameter.KindNumber}, ""},
		{"float", parameter.Literal{Text: ".inf", Kind: parameter.KindNumber}, ""},
		{"float", parameter.Literal{Text: "nan", Kind: parameter.KindNumber}, ""},
		{"boolean", parameter.Literal{Text: "True", Kind: parameter.KindBool}, "true"},
		{"boolean", parameter.Literal{Text: "no", Kind: parameter.KindBool}, ""},
		{"string", parameter.Literal{Text: "True", Kind: parameter.KindBool}, `"True"`},
		{"string", parameter.Literal{Text: "007", Kind: parameter.KindNumber}, `"007"`},
		{"string", parameter.Literal{Text: "9007199254740993.10", Kind: parameter.KindNumber}, `"9007199254740993.10"`},
		{"string", parameter.Literal{Text: "a<b>&\"\u2028"}, `"a<b>&\"\u2028"`},
		{"string", parameter.Literal{Text: "\xff"}, ""},
		{"string", parameter.Literal{Text: "x", Kind: 99}, ""},
		{"map", parameter.Literal{Text: `{"b": 1.0, "a": [null]}`, Kind: parameter.KindMapping}, `{"b":1.0,"a":[null]}`},
		{"map", parameter.Literal{Text: `{"b":1,"b":2}`, Kind: parameter.KindMapping}, ""},
		{"map", parameter.Literal{Text: `[]`, Kind: parameter.KindMapping}, ""},
	} {
		spec := parameter.Spec{Name: "a", Type: c.kind, Description: "d", Default: &c.literal}
		set, problems := parameter.CompileSet(parameter.Options{}, []parameter.Spec{spec}, nil)
		if set == nil {
			if c.want != "" {
				t.Errorf("%s of %v: %v", c.kind, c.literal, problems)
			}
			continue
		}
		if got, want := string(parseArgs(t, set, `{}`).JSON()), `{"a":`+c.want+`}`; got != want {
			t.Errorf("%s of %v: got %s, want %s", c.kind, c.literal, got, want)
		}
	}
}

func TestCompileSet_NullDefaultIsNoDefault(t *testing.T) {
	set := compile(t, `[{"type":"string","default":null},{"type":"string","default":null,"secure":true}]`, `[]`)
	_, err := set.ParseArguments(nil, nil, nil)
	wantError(t, err, "invalid_arguments", `parameter "a" is required`)
}
