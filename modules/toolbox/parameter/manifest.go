package parameter

import "encoding/json"

// Manifest returns the parameters as the HTTP API of Toolbox lists them. This is a
// JSON array of the parameters that take their value from arguments or claims:
//
//	{"name","type","required","description","authServices":[],"default"?,"items"?,"additionalProperties"?}
//
// The type of a map is "object", of a float "float".
func (s *Set) Manifest() json.RawMessage {
	list := []any{}
	for _, p := range s.list {
		if !p.isArgument() && len(p.auth) == 0 {
			continue
		}
		o := p.spec.manifest(p.name, !p.isOptional(), p.auth)
		if p.hasDefault {
			o = append(o, member{"default", rawJSON(p.defaultJSON.Raw)})
		}
		list = append(list, o)
	}
	return appendJSON(nil, list)
}

// elementRequired is the value of required for elements of an array.
const elementRequired = true

// manifest describes one parameter or element.
func (f *typeSpec) manifest(name string, required bool, auth []Claim) object {
	services := []any{}
	for _, c := range auth {
		services = append(services, c.Service)
	}
	o := object{{"name", name}, {"type", manifestType(f.kind)}, {"required", required}, {"description", f.description}, {"authServices", services}}
	switch {
	case f.kind == TypeArray:
		o = append(o, member{"items", f.items.manifest(f.items.name, elementRequired, nil)})
	case f.kind == TypeMap && f.items != nil:
		o = append(o, member{"additionalProperties", object{{"type", f.items.kind}}})
	case f.kind == TypeMap:
		o = append(o, member{"additionalProperties", true})
	}
	return o
}

func manifestType(kind string) string {
	if kind == TypeMap {
		return "object"
	}
	return kind
}
