package parameter

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// Schema returns the JSON schema of the arguments that a model writes and the gate
// checks: the parameters that are arguments, in order. Null is allowed where the
// value may be missing. Unknown names are allowed, as ParseArguments ignores them.
//
// The schema agrees with ParseArguments on types, minimum and maximum. It agrees on enum
// where only literals are allowed. It agrees on pattern where one expression is allowed
// that other dialects can read. It does not express excluded values, several expressions,
// or the range of int64 and float64. Callers must not change it.
func (s *Set) Schema() json.RawMessage {
	if s.schema != nil {
		return s.schema
	}
	return s.describe(func(p *parameter) (wanted, nullable, required bool) {
		return p.isArgument(), p.isOptional(), !p.isOptional()
	})
}

// ClientSchema returns the schema as clients of Toolbox read it. Each property has
// one type, so null is not allowed. Parameters from claims are required properties
// too; clients know them from Services.
func (s *Set) ClientSchema() json.RawMessage {
	return s.describe(func(p *parameter) (wanted, nullable, required bool) {
		return p.isArgument() || len(p.auth) > 0, false, !p.isOptional()
	})
}

// SecureSchema returns the schema of the secure arguments, nil if there are none.
func (s *Set) SecureSchema() json.RawMessage {
	if !s.HasSecure() {
		return nil
	}
	return s.describe(func(p *parameter) (wanted, nullable, required bool) { return p.secure, false, true })
}

// describe returns the schema of an object with the parameters that pick selects.
func (s *Set) describe(pick func(p *parameter) (wanted, nullable, required bool)) json.RawMessage {
	properties, needed := object{}, []any{}
	for _, p := range s.list {
		wanted, nullable, required := pick(p)
		if !wanted {
			continue
		}
		described := p.spec.schema(nullable)
		if p.hasDefault {
			described = append(described, member{"default", rawJSON(p.defaultJSON.Raw)})
		}
		properties = append(properties, member{p.name, described})
		if required {
			needed = append(needed, p.name)
		}
	}
	o := object{{"type", "object"}, {"properties", properties}}
	if len(needed) > 0 {
		o = append(o, member{"required", needed})
	}
	return appendJSON(nil, o)
}

// schemaTypes are the types whose name in a JSON schema is another one.
var schemaTypes = map[string]string{TypeFloat: "number", TypeMap: "object"}

func schemaType(kind string) string {
	if name, ok := schemaTypes[kind]; ok {
		return name
	}
	return kind
}

// notNullable is the value of nullable for elements: they are never null.
const notNullable = false

// schema returns the JSON schema of the values of f.
func (f *typeSpec) schema(nullable bool) (o object) {
	if kind := schemaType(f.kind); nullable {
		o = append(o, member{"type", []any{kind, "null"}})
	} else {
		o = append(o, member{"type", kind})
	}
	if f.description != "" {
		o = append(o, member{"description", f.description})
	}
	o = append(o, f.constraints(nullable)...)
	switch {
	case f.kind == TypeArray:
		o = append(o, member{"items", f.items.schema(notNullable)})
	case f.kind == TypeMap && f.items != nil:
		o = append(o, member{"additionalProperties", f.items.schema(notNullable)})
	case f.kind == TypeMap:
		o = append(o, member{"additionalProperties", true})
	}
	return o
}

// constraints returns the members of the schema that restrict the values.
func (f *typeSpec) constraints(nullable bool) (o object) {
	if enum := f.allowed.values; len(enum) > 0 && len(f.allowed.expressions) == 0 {
		o = append(o, member{"enum", enumOf(enum, nullable)})
	}
	if e := f.allowed.expressions; len(e) == 1 && len(f.allowed.values) == 0 && e[0].pattern() != "" {
		o = append(o, member{"pattern", e[0].pattern()})
	}
	if f.low != "" {
		o = append(o, member{"minimum", rawJSON(f.low)})
	}
	if f.high != "" {
		o = append(o, member{"maximum", rawJSON(f.high)})
	}
	return o
}

// enumOf returns the values of an enum, without duplicates.
func enumOf(values []gjson.Result, nullable bool) []any {
	list, seen := []any{}, map[string]bool{}
	for _, v := range values {
		if !seen[v.Raw] {
			seen[v.Raw] = true
			list = append(list, rawJSON(v.Raw))
		}
	}
	if nullable {
		list = append(list, nil)
	}
	return list
}
