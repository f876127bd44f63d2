package toolbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// What a template gets for a text: one that prints escaped for its style.
type (
	textInPath string
	textInForm string
	textInXML  string
	textInJSON string
	textInSome string
)

// String implements fmt.Stringer, as do those below.
func (t textInPath) String() string { return escapePath.escape(string(t)) }
func (t textInForm) String() string { return escapeForm.escape(string(t)) }
func (t textInXML) String() string  { return escapeXML.escape(string(t)) }
func (t textInJSON) String() string { return escapeJSON.escape(string(t)) }
func (t textInSome) String() string { return escapeStrict.escape(string(t)) }

// mapping is a map for a template: it can be written as JSON only.
type mapping struct {
	doc  string
	fill *safeTemplate
}

// String implements fmt.Stringer.
func (m mapping) String() string { return m.fill.document(m.doc) }

// value gives a value as templates have it.
func (f *safeTemplate) value(v gjson.Result) any {
	switch {
	case v.Type == gjson.String:
		return f.phrase(v.Str)
	case v.Type == gjson.Number:
		if n, err := strconv.ParseInt(v.Raw, 10, 64); err == nil {
			return n
		}
		return v.Num
	case v.IsArray():
		list := []any{}
		for _, element := range v.Array() {
			list = append(list, f.value(element))
		}
		return list
	case v.IsObject():
		return mapping{v.Raw, f}
	}
	return v.Value() // nil, true, false
}

func (f *safeTemplate) phrase(text string) any {
	switch f.style {
	case escapePath:
		return textInPath(text)
	case escapeForm:
		return textInForm(text)
	case escapeXML:
		return textInXML(text)
	case escapeJSON:
		return textInJSON(text)
	case escapeStrict:
		return textInSome(text)
	}
	return text
}

// document writes JSON where a value may stand.
func (f *safeTemplate) document(doc string) string {
	if f.style == escapeJSON {
		return string(markValueStart) + marks.Replace(doc) + string(markValueEnd)
	}
	if f.style == escapeStrict { // as it is everywhere JSON
		return marks.Replace(doc)
	}
	return f.style.escape(doc)
}

// json is a function of templates.
func (f *safeTemplate) json(value any) (string, error) {
	doc, err := json.Marshal(plain(value))
	return f.document(string(doc)), err
}

// plain undoes value.
func plain(value any) any {
	switch v := value.(type) {
	case []any:
		list := make([]any, len(v))
		for i, element := range v {
			list[i] = plain(element)
		}
		return list
	case mapping:
		return json.RawMessage(v.doc)
	}
	return value // texts marshal as they are
}

// array is a function of templates.
func (f *safeTemplate) array(value any) (any, error) {
	list, ok := value.([]any)
	if !ok {
		return nil, errors.New("array: its argument is no array")
	}
	texts := make([]string, len(list))
	for i, element := range list {
		switch v := element.(type) {
		case textInPath:
			texts[i] = string(v)
		case textInForm:
			texts[i] = string(v)
		case textInXML:
			texts[i] = string(v)
		case textInJSON:
			texts[i] = string(v)
		case textInSome:
			texts[i] = string(v)
		case string:
			texts[i] = v
		default:
			return nil, fmt.Errorf("array: element #%d is no text", i)
		}
	}
	return f.phrase(strings.Join(texts, ", ")), nil
}
