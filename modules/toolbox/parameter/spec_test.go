package parameter_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
)

// services are the auth services that the parameters of tests may name.
var services = []string{"my_auth", "other-auth"}

// specsOf parses parameters from JSON: a list of them, or one. A missing name becomes
// a, b, c …, a missing description "d".
func specsOf(text string) (list []parameter.Spec) {
	for i, r := range gjson.Parse(text).Array() {
		list = append(list, specOf(r, string(rune('a'+i))))
	}
	return list
}

func specOf(r gjson.Result, name string) parameter.Spec {
	s := parameter.Spec{Name: name, Type: r.Get("type").Str, Description: "d",
		Default: literalAt(r, "default"), Min: literalAt(r, "minValue"), Max: literalAt(r, "maxValue"),
		Allowed: literalsAt(r, "allowedValues"), Excluded: literalsAt(r, "excludedValues"),
		Escape: r.Get("escape").Str, ValueType: r.Get("valueType").Str, From: r.Get("valueFromParam").Str,
		Secure: r.Get("secure").Bool(), EmbeddedBy: r.Get("embeddedBy").Str,
	}
	if given := r.Get("name"); given.Exists() {
		s.Name = given.Str
	}
	if given := r.Get("description"); given.Exists() {
		s.Description = given.Str
	}
	if given := r.Get("required"); given.Exists() {
		required := given.Bool()
		s.Required = &required
	}
	for _, service := range r.Get("authServices").Array() {
		s.Auth = append(s.Auth, parameter.Claim{Service: service.Get("name").Str, Field: service.Get("field").Str})
	}
	if items := r.Get("items"); items.Exists() {
		of := specOf(items, "x")
		s.Items = &of
	}
	return s
}

func literalAt(r gjson.Result, field string) *parameter.Literal {
	value := r.Get(field)
	if !value.Exists() {
		return nil
	}
	l := literalOf(value)
	return &l
}

func literalsAt(r gjson.Result, field string) (list []parameter.Literal) {
	for _, value := range r.Get(field).Array() {
		list = append(list, literalOf(value))
	}
	return list
}

func literalOf(r gjson.Result) parameter.Literal {
	switch {
	case r.Type == gjson.String:
		return parameter.Literal{Text: r.Str, Kind: parameter.KindString}
	case r.Type == gjson.Number:
		return parameter.Literal{Text: r.Raw, Kind: parameter.KindNumber}
	case r.IsBool():
		return parameter.Literal{Text: r.Raw, Kind: parameter.KindBool}
	case r.IsArray():
		return parameter.Literal{Text: r.Raw, Kind: parameter.KindSequence}
	case r.IsObject():
		return parameter.Literal{Text: r.Raw, Kind: parameter.KindMapping}
	}
	return parameter.Literal{Text: r.Raw, Kind: parameter.KindNull}
}

// compile returns the Set of valid parameters.
func compile(t testing.TB, ordinary, template string) *parameter.Set {
	t.Helper()
	set, problems := parameter.CompileSet(parameter.Options{Services: services}, specsOf(ordinary), specsOf(template))
	if len(problems) > 0 {
		t.Fatalf("parameters %s, template %s: %v", ordinary, template, problems)
	}
	return set
}

// claimsFrom returns Claims with the verified claims of each service.
func claimsFrom(claims map[string]string) parameter.Claims {
	return func(service string) (json.RawMessage, bool) {
		doc, ok := claims[service]
		return json.RawMessage(doc), ok
	}
}

// parseArgs parses valid arguments.
func parseArgs(t testing.TB, set *parameter.Set, args string) parameter.Values {
	t.Helper()
	values, err := set.ParseArguments(json.RawMessage(args), nil, nil)
	if err != nil {
		t.Fatalf("args %s: %v", args, err)
	}
	return values
}

// wantError checks that err has the code, and all the words in its message.
func wantError(t testing.TB, err error, code errcode.Code, words ...string) {
	t.Helper()
	e, ok := errors.AsType[*errcode.Error](err)
	if !ok || e.Code != code {
		t.Fatalf("got %v, want an error with the code %s", err, code)
	}
	if strings.Contains(e.Message, "%!") {
		t.Errorf("the message has a formatting error: %s", e.Message)
	}
	for _, word := range words {
		if !strings.Contains(e.Message, word) {
			t.Errorf("message %q lacks %q", e.Message, word)
		}
	}
}

func fields(problems []parameter.Problem) (list []string) {
	for _, p := range problems {
		list = append(list, p.Field)
	}
	slices.Sort(list)
	return list
}
