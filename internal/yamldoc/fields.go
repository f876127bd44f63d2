package yamldoc

import (
	"cmp"
	"maps"

	"github.com/rolecall/rolecall/internal/textutil"
)

// Fields are the fields of a mapping: the functions that read their values, by name.
// A field with a nil function is documented but not available in this version: it is
// rejected, not ignored.
type Fields map[string]func(Value)

// SkipField ignores a field that has been read before the others.
func SkipField(Value) {}

// MergeFields returns the fields of all arguments.
func MergeFields(list ...Fields) Fields {
	all := Fields{}
	for _, f := range list {
		maps.Copy(all, f)
	}
	return all
}

// ReadFields reads the fields of a mapping and rejects fields that are not among known.
func (v Value) ReadFields(known Fields) {
	for key, val := range v.MapPairs() {
		read, ok := known[key.Node.Value]
		switch {
		case !ok:
			key.AddError("unknown field", v.doc.reader.unknownHint(key.Node.Value, known))
		case read == nil:
			key.AddError("not available in this version", "")
		default:
			read(val)
		}
	}
}

// unknownHint returns the hint for a field name that is not among known.
func (r *Reader) unknownHint(name string, known Fields) string {
	var all, now []string
	for field, read := range known {
		all = append(all, field)
		if read != nil {
			now = append(now, field)
		}
	}
	hint := ""
	if r.FieldHint != nil {
		hint = r.FieldHint(name)
	}
	return cmp.Or(hint, textutil.SuggestName(name, all), ListHint("known are ", now))
}

// EmptyAsAbsent reads a field with read. A field without a value or with an empty text counts as
// absent. A variable may have left the text empty.
func EmptyAsAbsent(read func(Value)) func(Value) {
	return func(v Value) {
		if v.IsNull() {
			return
		}
		if v.Node.Tag == "!!str" && v.IsScalar() {
			if text, ok := v.ReadText(); !ok || text == "" {
				return
			}
		}
		read(v)
	}
}

// MappingField reads a mapping with the fields known.
func MappingField(known Fields) func(Value) {
	return func(v Value) {
		if !v.IsMapping() {
			v.AddTypeError("a mapping", "")
			return
		}
		v.ReadFields(known)
	}
}
