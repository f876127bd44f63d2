package parameter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/strictjson"
	"github.com/rolecall/rolecall/internal/textutil"
)

// Kind is the syntax in which a Literal is written.
type Kind uint8

// The kinds of literals.
const (
	KindString   Kind = iota // quoted, or unquoted and none of the others
	KindNumber               // unquoted
	KindBool                 // unquoted true or false
	KindNull                 // unquoted null, or nothing
	KindSequence             // a list
	KindMapping
)

var kinds = [...]string{"text", "number", "boolean", "null", "list", "map"}

// String returns the name of the kind, for messages.
func (k Kind) String() string {
	if int(k) >= len(kinds) {
		return "unknown"
	}
	return kinds[k]
}

// Literal is a value of a configuration. Text is its source without quotes, so that
// every digit is kept; for a Sequence or Mapping it is JSON.
type Literal struct {
	Text string
	Kind Kind
}

// Values of entry.
const (
	singleValue = false
	listEntry   = true
)

// parseLiteral returns l as the JSON of a value of f's type. An unquoted number or boolean
// is accepted as a string. In an entry of a list of values a quoted number or boolean
// is accepted too.
func (f *typeSpec) parseLiteral(l Literal, entry bool) (gjson.Result, error) {
	text, err := f.formatLiteral(l, entry)
	if err != nil {
		return gjson.Result{}, err
	}
	r := gjson.Parse(text)
	if _, err := f.convert(r); err != nil {
		return gjson.Result{}, describeValue(r, shownInErrors, err)
	}
	return r, nil
}

// formatLiteral returns l as JSON text of f's type, without checking its range.
func (f *typeSpec) formatLiteral(l Literal, entry bool) (string, error) {
	quoted := entry && l.Kind == KindString
	switch f.kind {
	case TypeString:
		if l.Kind == KindString || l.Kind == KindNumber || l.Kind == KindBool {
			return formatText(l.Text)
		}
	case TypeInteger, TypeFloat:
		if number, ok := toJSONNumber(l.Text); ok && (l.Kind == KindNumber || quoted) {
			return f.canonical(number), nil
		}
	case TypeBoolean:
		if word := strings.ToLower(l.Text); (word == "true" || word == "false") && (l.Kind == KindBool || quoted) {
			return word, nil
		}
	case TypeArray, TypeMap:
		if l.Kind == KindSequence && f.kind == TypeArray || l.Kind == KindMapping && f.kind == TypeMap {
			return f.formatMembers(l.Text, entry)
		}
	}
	return "", fmt.Errorf("%s is written as a %s and is not a value of type %s", textutil.Truncate(l.Text, maxQuote), l.Kind, f.kind)
}

// canonical returns an integer in the notation that clients expect: 1000, not 1e3.
func (f *typeSpec) canonical(number string) string {
	if n, ok := parseInteger(number); ok && f.kind == TypeInteger {
		return strconv.FormatInt(n, 10)
	}
	return number
}

func formatText(text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", errors.New("the text is not valid UTF-8")
	}
	return string(appendJSON(nil, text)), nil
}

// formatMembers is format for a list or a map with members of one type.
func (f *typeSpec) formatMembers(text string, entry bool) (string, error) {
	if err := strictjson.CheckKeys([]byte(text), nil); err != nil {
		return "", fmt.Errorf("invalid JSON: %w", err)
	}
	if f.items == nil {
		return text, nil
	}
	var b strings.Builder
	var err error
	r, count := gjson.Parse(text), 0
	r.ForEach(func(key, member gjson.Result) bool {
		var text string
		if text, err = f.items.formatLiteral(literalOf(member), entry); err != nil {
			return false
		}
		if count++; count > 1 {
			b.WriteByte(',')
		}
		if r.IsObject() {
			b.WriteString(key.Raw + ":")
		}
		b.WriteString(text)
		return true
	})
	if r.IsObject() {
		return "{" + b.String() + "}", err
	}
	return "[" + b.String() + "]", err
}

// literalOf returns a member of a list or map as a literal.
func literalOf(r gjson.Result) Literal {
	switch {
	case r.Type == gjson.String:
		return Literal{r.Str, KindString}
	case r.Type == gjson.Number:
		return Literal{r.Raw, KindNumber}
	case r.IsBool():
		return Literal{r.Raw, KindBool}
	case r.IsArray():
		return Literal{r.Raw, KindSequence}
	case r.IsObject():
		return Literal{r.Raw, KindMapping}
	}
	return Literal{r.Raw, KindNull}
}
