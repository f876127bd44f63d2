package toolbox

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"text/template"
	"unicode"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/parameter"
)

// escaping is how a text is written where it stands, so that it ends nothing
// there.
type escaping uint8

const (
	escapeNone escaping = iota // as it is
	escapePath
	escapeForm
	escapeXML
	escapeJSON
	escapeStrict // nobody knows what means something there
)

func (s escaping) escape(text string) string {
	switch s {
	case escapePath:
		if text == "" {
			return string(markValueStart) // a part less: refused
		}
		return strings.ReplaceAll(url.QueryEscape(text), "+", "%20")
	case escapeForm:
		return url.QueryEscape(text)
	case escapeXML:
		var out strings.Builder
		_ = xml.EscapeText(&out, []byte(text)) // a Builder takes everything
		return out.String()
	case escapeJSON:
		return string(markStringStart) + jsonStringBody(text) + string(markStringEnd)
	case escapeStrict:
		if strings.ContainsFunc(text, isSpecial) {
			return string(markValueStart) // refused
		}
	}
	return text
}

// isSpecial says whether a character may, in some format of a body.
func isSpecial(c rune) bool {
	return !unicode.IsLetter(c) && !unicode.IsDigit(c) && !strings.ContainsRune(" -_.@/", c)
}

// Marks around what values become in JSON; unmark takes them out. Values have
// none themselves.
const (
	markStringStart = '\uE000' // what follows stands within quotes
	markStringEnd   = '\uE001'
	markValueStart  = '\uE002' // what follows stands where a value does
	markValueEnd    = '\uE003'
)

var marks = strings.NewReplacer(string(markStringStart), `\ue000`, string(markStringEnd), `\ue001`, string(markValueStart), `\ue002`, string(markValueEnd), `\ue003`)

// jsonStringBody gives a text as JSON, without the quotes.
func jsonStringBody(text string) string {
	quoted, _ := json.Marshal(text) // a string always marshals, and never looks like noValue
	return marks.Replace(string(quoted[1 : len(quoted)-1]))
}

// safeTemplate is a text with places for values, which change nothing but these
// places.
type safeTemplate struct {
	style  escaping
	names  []string
	plain  string             // the text, if there are no names
	parsed *template.Template // else
	loops  bool               // form has ranges
}

// newSafeTemplate reads a template of Go's text/template. Beside what Go has, json
// gives a value as JSON and array joins texts with ", ".
func newSafeTemplate(text string, s escaping, names []string) (*safeTemplate, error) {
	f := &safeTemplate{style: s, names: names, plain: text}
	if (s == escapeJSON || s == escapeStrict) && marks.Replace(text) != text {
		return nil, errors.New("it has a character from U+E000 to U+E003, which has a meaning here")
	}
	if len(names) == 0 {
		return f, nil
	}
	form, err := template.New("it").Option("missingkey=error").Funcs(template.FuncMap{"json": f.json, "array": f.array}).Parse(text)
	if err != nil {
		return nil, fmt.Errorf("template does not parse: %s", strings.TrimPrefix(err.Error(), "template: "))
	}
	f.parsed, f.loops = form, hasRange(form.Root)
	return f, nil
}

// noValue is what Go prints for what is missing; no escaped text is like it.
const noValue = "<no value>"

// text gives the text for the values of a call.
func (f *safeTemplate) text(v parameter.Values) (string, error) {
	text := f.plain
	if f.parsed != nil {
		var err error
		if text, err = f.execute(v); err != nil {
			return "", errors.New(strings.TrimPrefix(err.Error(), "template: "))
		}
	}
	switch {
	case strings.Contains(text, noValue):
		return "", errors.New("a parameter has no value: give one, or guard it with {{if}}")
	case f.style == escapeJSON:
		return removeMarks(text)
	case f.style == escapePath && strings.ContainsRune(text, markValueStart):
		return "", errors.New("a parameter is empty: a path needs all its parts")
	case f.style == escapeStrict && strings.ContainsRune(text, markValueStart):
		return "", errors.New("a parameter has characters that could mean something in a body of this type; in JSON, XML, a form and text/plain they cannot")
	}
	return text, nil
}

func (f *safeTemplate) execute(v parameter.Values) (string, error) {
	form, err := f.clone()
	if err != nil {
		return "", err
	}
	out := limitedBuilder{most: parameter.MaxText}
	err = form.Execute(&out, f.data(v))
	return out.text.String(), err
}

// limitedBuilder is an io.Writer that takes so many bytes.
type limitedBuilder struct {
	most int
	text strings.Builder
}

// Write implements io.Writer.
func (b *limitedBuilder) Write(text []byte) (int, error) {
	if b.text.Len()+len(text) > b.most {
		return 0, fmt.Errorf("the text is longer than %d bytes", b.most)
	}
	return b.text.Write(text)
}

func (f *safeTemplate) data(v parameter.Values) map[string]any {
	data := make(map[string]any, len(f.names))
	for _, name := range f.names {
		data[name] = f.value(gjson.GetBytes(v.JSON(name), gjson.Escape(name)))
	}
	return data
}

// removeMarks takes the marks out of JSON, and refuses it if a value does not stand
// where its mark says, or the whole is none.
func removeMarks(text string) (string, error) {
	var out strings.Builder
	quoted, escaped := false, false
	for _, c := range text {
		switch {
		case c == markStringStart && !quoted, c == markValueStart && quoted:
			return "", errors.New(`write {{json .name}} for a value with its quotes, or "{{.name}}" within them`)
		case c == markStringStart || c == markStringEnd || c == markValueStart || c == markValueEnd:
			continue
		case escaped:
			escaped = false
		case c == '\\':
			escaped = quoted
		case c == '"':
			quoted = !quoted
		}
		out.WriteRune(c)
	}
	if !json.Valid([]byte(out.String())) {
		return "", errors.New("it is no JSON with these values")
	}
	return out.String(), nil
}
