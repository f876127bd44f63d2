package parameter

import (
	"log/slog"
	"reflect"
)

// Values are the checked values of one call. Printed, logged or marshalled, they
// redact values that the model did not write. These are secure values, claims,
// and copies of either. The zero Values have no parameters.
type Values struct {
	set  *Set
	list []any // indexed as set.list: nil, string, int64, float64, bool, []any, object
}

// BindValues returns the values of the parameters that are bound, in order, for a database
// driver: nil, string, int64, float64, bool, or for an array a slice such as []int64. A map is a
// string, its JSON.
func (v Values) BindValues() []any {
	return v.boundValues(func(p *parameter, value any) any { return bindValue(p.spec, value) })
}

// BindTexts is BindValues for databases without arrays: an array is a string, its JSON.
func (v Values) BindTexts() []any {
	return v.boundValues(func(_ *parameter, value any) any { return plainValue(value) })
}

// boundValues returns the converted values of all parameters but those of templates.
func (v Values) boundValues(convert func(p *parameter, value any) any) []any {
	list := make([]any, 0, len(v.list))
	for i, value := range v.list {
		if p := v.set.list[i]; !p.template {
			list = append(list, convert(p, value))
		}
	}
	return list
}

// plainValue returns an array or a map as JSON, any other value unchanged.
func plainValue(value any) any {
	switch value.(type) {
	case []any, object:
		return string(appendJSON(nil, value))
	}
	return value
}

// bindValue returns an array as a slice of its elements' type, a map as JSON.
func bindValue(f *typeSpec, value any) any {
	list, ok := value.([]any)
	if !ok || f.kind != TypeArray {
		return plainValue(value)
	}
	slice := reflect.MakeSlice(f.goType(), len(list), len(list))
	for i, element := range list {
		slice.Index(i).Set(reflect.ValueOf(bindValue(f.items, element)))
	}
	return slice.Interface()
}

// goType returns the type of what bindValue returns.
func (f *typeSpec) goType() reflect.Type {
	switch f.kind {
	case TypeInteger:
		return reflect.TypeFor[int64]()
	case TypeFloat:
		return reflect.TypeFor[float64]()
	case TypeBoolean:
		return reflect.TypeFor[bool]()
	case TypeArray:
		return reflect.SliceOf(f.items.goType())
	}
	return reflect.TypeFor[string]()
}

// LookupValue returns the value of any parameter, as BindTexts does, and reports whether the
// parameter exists. A missing value is nil.
func (v Values) LookupValue(name string) (value any, ok bool) {
	if v.set == nil {
		return nil, false
	}
	i, ok := v.set.indexes[name]
	if !ok {
		return nil, false
	}
	return plainValue(v.list[i]), true
}

// JSON returns the values of the named parameters, of all if none is named, as a
// JSON object. It does not redact. Missing values and unknown names are left out.
func (v Values) JSON(names ...string) []byte {
	out, wanted := []byte{'{'}, map[string]bool{}
	for _, name := range names {
		wanted[name] = true
	}
	for i, value := range v.list {
		name := v.set.list[i].name
		if value == nil || len(names) > 0 && !wanted[name] {
			continue
		}
		out = append(appendJSON(appendComma(out, len(out)-1), name), ':')
		out = appendJSON(out, value)
	}
	return append(out, '}')
}

const redacted = "[redacted]"

// MarshalJSON implements json.Marshaler, for logs and records. It redacts: see Values.
func (v Values) MarshalJSON() ([]byte, error) {
	o := make(object, 0, len(v.list))
	for i, value := range v.list {
		if p := v.set.list[i]; p.secret && value != nil {
			o = append(o, member{p.name, redacted})
		} else {
			o = append(o, member{p.name, value})
		}
	}
	return appendJSON([]byte{}, o), nil
}

// String implements fmt.Stringer. It redacts: see Values.
func (v Values) String() string {
	text, _ := v.MarshalJSON()
	return string(text)
}

// GoString implements fmt.GoStringer, so that %#v redacts too.
func (v Values) GoString() string { return "parameter.Values" + v.String() }

// LogValue implements slog.LogValuer. It redacts: see Values.
func (v Values) LogValue() slog.Value { return slog.StringValue(v.String()) }
