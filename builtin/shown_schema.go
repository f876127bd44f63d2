package builtin

import (
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// Two keywords in the schemas of this package tell what models read. They are not part of
// the schema that arguments are checked against.
const (
	keywordHidden   = "x-hidden"   // true: the property is accepted, but models do not read of it
	keywordRequired = "x-required" // what models read in place of required
)

// boundKeywords are the keywords that models do not read: bounds and defaults. The error for
// an argument that exceeds a bound names the bound.
var boundKeywords = []string{
	"minLength", "maxLength", "minItems", "maxItems", "minimum", "maximum", "maxProperties", "pattern", "additionalProperties", "default",
}

// acceptedSchema returns the schema that arguments are checked against.
func acceptedSchema(source string) []byte {
	return []byte(rewriteSchema(gjson.Parse(source), forChecks))
}

// shownSchema returns the schema that models read: it has no bounds and no hidden
// properties, and one type where several are accepted.
func shownSchema(source string) []byte {
	return []byte(rewriteSchema(gjson.Parse(source), forModels))
}

// Values of shown.
const (
	forModels = true
	forChecks = false
)

// rewriteSchema returns one of the two schemas that a source stands for.
func rewriteSchema(source gjson.Result, shown bool) string {
	var fields []string
	source.ForEach(func(key, value gjson.Result) bool {
		switch name := key.Str; {
		case name == keywordHidden || name == keywordRequired || shown && isLeftOut(source, name):
			return true
		case name == "properties":
			fields = append(fields, field(name, rewriteProperties(value, shown)))
		case value.IsObject():
			fields = append(fields, field(name, rewriteSchema(value, shown)))
		case shown && name == "type":
			fields = append(fields, field(name, strconv.Quote(firstType(source))))
		default:
			fields = append(fields, field(name, value.Raw))
		}
		return true
	})
	if required := source.Get(keywordRequired); required.Exists() && shown && firstType(source) == "object" {
		fields = append(fields, field("required", required.Raw))
	}
	return "{" + strings.Join(fields, ",") + "}"
}

// rewriteProperties is rewriteSchema for the value of properties.
func rewriteProperties(source gjson.Result, shown bool) string {
	var fields []string
	source.ForEach(func(key, value gjson.Result) bool {
		if !shown || !value.Get(keywordHidden).Bool() {
			fields = append(fields, field(key.Str, rewriteSchema(value, shown)))
		}
		return true
	})
	return "{" + strings.Join(fields, ",") + "}"
}

// isLeftOut reports whether models do not read a keyword of a schema.
func isLeftOut(schema gjson.Result, keyword string) bool {
	switch keyword {
	case "items":
		return firstType(schema) != "array"
	case "properties":
		return firstType(schema) != "object"
	case "required":
		return firstType(schema) != "object" || schema.Get(keywordRequired).Exists()
	}
	return slices.Contains(boundKeywords, keyword)
}

// firstType returns the first of the types that a schema accepts.
func firstType(schema gjson.Result) string {
	types := schema.Get("type").Array()
	if len(types) == 0 {
		return ""
	}
	return types[0].Str
}

func field(name, value string) string { return strconv.Quote(name) + ":" + value }
