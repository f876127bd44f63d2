package parameter

import (
	"encoding/json"

	"github.com/tidwall/gjson"
)

// Schema gives the JSON schema of the arguments that a model writes and the
// gate checks: the parameters that callers give, in order. Null stands for a
// missing value and is allowed where one may be missing. Names that are no
// parameters are allowed, as Given ignores them.
//
// What a schema can say, it says as Given has it: types, minimum and maximum,
// enum where only literals are allowed, pattern where one expression is, and
// it is one that other dialects have too. It is silent on excluded values, on
// several expressions, and on numbers beyond int64 or float64. Callers must not
// change it.
func (s *Set) Schema() json.RawMessage {
	if s.schema != nil {
		return s.schema
	}
	return s.describe(func(p *parameter) (wanted, nullable, required bool) {
		return p.offered(), p.optional(), !p.optional()
	})
}

// ClientSchema gives the schema as clients of Toolbox read it: each property
// has one type, so null is not allowed, and parameters that claims give are
// properties too, required ones, which clients know from Services.
func (s *Set) ClientSchema() json.RawMessage {
	return s.describe(func(p *parameter) (wanted, nullable, required bool) {
		return p.offered() || len(p.auth) > 0, false, !p.optional()
	})
}

// SecureSchema gives the schema of the secure arguments; nil if there are none.
func (s *Set) SecureSchema() json.RawMessage {
	if !s.Secure() {
		return nil
	}
	return s.describe(func(p *parameter) (wanted, nullable, required bool) { return p.secure, false, true })
}

func (s *Set) describe(pick func(p *parameter) (wanted, nullable, required bool)) json.RawMessage {
	properties, needed := object{}, []any{}
	for _, p := range s.list {
		wanted, nullable, required := pick(p)
		if !wanted {
			continue
		}
		described := p.form.schema(nullable)
		if p.hasDefault {
			described = append(described, member{"default", rawJSON(p.raw.Raw)})
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

// schemaTypes are the names of the types where they differ.
var schemaTypes = map[string]string{TypeFloat: "number", TypeMap: "object"}

func schemaType(kind string) string {
	if name, ok := schemaTypes[kind]; ok {
		return name
	}
	return kind
}

// schema describes the values of f.
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
		o = append(o, member{"items", f.items.schema(false)})
	case f.kind == TypeMap && f.items != nil:
		o = append(o, member{"additionalProperties", f.items.schema(false)})
	case f.kind == TypeMap:
		o = append(o, member{"additionalProperties", true})
	}
	return o
}

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

// enumOf lists values, each once.
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
