package parameter

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/internal/strictjson"
)

// Kind says how a Literal is written.
type Kind uint8

// The kinds of literals. The zero Kind is a text.
const (
	String   Kind = iota // in quotes, or plain and nothing else
	Number               // plain
	Bool                 // plain true or false
	Null                 // plain null, or nothing
	Sequence             // a list
	Mapping
)

var kinds = [...]string{"text", "number", "boolean", "null", "list", "map"}

// String names the kind.
func (k Kind) String() string {
	if int(k) >= len(kinds) {
		return "unknown"
	}
	return kinds[k]
}

// Literal is a value as it stands in a configuration: its source text, without
// quotes, so that no digit and no zero is lost. Of a Sequence or Mapping Text
// is JSON.
type Literal struct {
	Text string
	Kind Kind
}

// literal gives l as JSON of a value of f's type. A plain number or boolean is
// a text where a text is wanted; an entry of a list of values may also be a
// number or boolean in quotes.
func (f *typeSpec) literal(l Literal, entry bool) (gjson.Result, error) {
	text, err := f.format(l, entry)
	if err != nil {
		return gjson.Result{}, err
	}
	r := gjson.Parse(text)
	if _, err := f.convert(r); err != nil {
		return gjson.Result{}, word(r, false, err)
	}
	return r, nil
}

func (f *typeSpec) format(l Literal, entry bool) (string, error) {
	quoted := entry && l.Kind == String
	switch f.kind {
	case TypeString:
		if l.Kind == String || l.Kind == Number || l.Kind == Bool {
			return spellText(l.Text)
		}
	case TypeInteger, TypeFloat:
		if number, ok := jsonNumber(l.Text); ok && (l.Kind == Number || quoted) {
			return f.shorten(number), nil
		}
	case TypeBoolean:
		if word := strings.ToLower(l.Text); (word == "true" || word == "false") && (l.Kind == Bool || quoted) {
			return word, nil
		}
	case TypeArray, TypeMap:
		if l.Kind == Sequence && f.kind == TypeArray || l.Kind == Mapping && f.kind == TypeMap {
			return f.spellMembers(l.Text, entry)
		}
	}
	return "", fmt.Errorf("%s is written as a %s and is no value of type %s", brief(l.Text), l.Kind, f.kind)
}

// shorten writes an integer as clients expect one: 1000, not 1e3.
func (f *typeSpec) shorten(number string) string {
	if n, ok := integer(number); ok && f.kind == TypeInteger {
		return strconv.FormatInt(n, 10)
	}
	return number
}

func spellText(text string) (string, error) {
	if !utf8.ValidString(text) {
		return "", errors.New("the text is no valid UTF-8")
	}
	return string(appendJSON(nil, text)), nil
}

// spellMembers spells what is inside a list or a map.
func (f *typeSpec) spellMembers(text string, entry bool) (string, error) {
	if err := strictjson.Check([]byte(text), nil); err != nil {
		return "", fmt.Errorf("no JSON: %w", err)
	}
	if f.items == nil {
		return text, nil
	}
	var b strings.Builder
	var err error
	r, count := gjson.Parse(text), 0
	r.ForEach(func(key, member gjson.Result) bool {
		var spelled string
		if spelled, err = f.items.format(literalOf(member), entry); err != nil {
			return false
		}
		if count++; count > 1 {
			b.WriteByte(',')
		}
		if r.IsObject() {
			b.WriteString(key.Raw + ":")
		}
		b.WriteString(spelled)
		return true
	})
	if r.IsObject() {
		return "{" + b.String() + "}", err
	}
	return "[" + b.String() + "]", err
}

// literalOf gives a value inside a literal as one itself.
func literalOf(r gjson.Result) Literal {
	switch {
	case r.Type == gjson.String:
		return Literal{r.Str, String}
	case r.Type == gjson.Number:
		return Literal{r.Raw, Number}
	case r.IsBool():
		return Literal{r.Raw, Bool}
	case r.IsArray():
		return Literal{r.Raw, Sequence}
	case r.IsObject():
		return Literal{r.Raw, Mapping}
	}
	return Literal{r.Raw, Null}
}

// brief cuts a text from outside to what a message can hold.
func brief(text string) string {
	const most = 80
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
