package config

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/textutil"
)

// value is a node of a document with its position and path. Methods that return a
// bool return the value in a type, or report an error and return false. Callers
// then go on with the next field, so that one reading reports all errors.
type value struct {
	doc   *document
	node  *yaml.Node // never an alias
	field string     // path from the document's root
	pos   Pos        // position of the node, or of the alias that refers to it
}

// value returns the value of a node at a path. It follows aliases.
func (d *document) value(n *yaml.Node, field string) value {
	v := value{d, n, field, Pos{d.src.path, n.Line, n.Column}}
	for v.node.Kind == yaml.AliasNode {
		v.node = v.node.Alias
	}
	return v
}

// missing returns the value to report errors of an absent field on: it has the
// field's path and the position of v.
func (v value) missing(field string) value {
	v.field = join(v.field, field)
	return v
}

// fail reports an error at v.
func (v value) fail(message, hint string) {
	v.doc.report(v.pos, v.doc.src, v.field, message, hint)
}

// failRedacted reports an error without an excerpt, because v may contain a secret.
func (v value) failRedacted(message, hint string) {
	v.doc.report(v.pos, &source{}, v.field, message, hint)
}

// failType reports that v is not what want describes.
func (v value) failType(want, hint string) {
	if v.isNull() {
		v.fail("has no value; it must be "+want, hint)
		return
	}
	v.fail("must be "+want+", not "+v.describe(), hint)
}

// text returns the text of a scalar with variables substituted. Its type is that
// before substitution: ${PORT} is text, whatever the value of PORT.
func (v value) text() (string, bool) {
	if v.node.Kind != yaml.ScalarNode {
		v.failType("text", "")
		return "", false
	}
	switch v.node.Tag {
	case "!!str", "!", "!!timestamp", "!!merge": // a date is text in YAML 1.2; << too, as a value
		return v.substituted()
	case "!!int", "!!float", "!!bool":
		v.failType("text", "write "+quote(v.node.Value))
		return "", false
	}
	v.failType("text", "")
	return "", false
}

// nonEmpty returns text, but rejects empty text.
func (v value) nonEmpty() (string, bool) {
	s, ok := v.text()
	if ok && s == "" {
		v.fail("must not be empty", "")
		return "", false
	}
	return s, ok
}

// positiveInt returns a whole number from 1 to math.MaxInt32.
func (v value) positiveInt() (int, bool) {
	n, ok := v.integer(1, math.MaxInt32, "a whole number from 1")
	return int(n), ok
}

// integer returns a whole number from least to most; want describes it in errors.
// The number may be in a variable, even a quoted one, because within { } a
// variable must be quoted.
func (v value) integer(least, most int64, want string) (int64, bool) {
	digits, ok := v.node.Value, v.node.Tag == "!!int"
	if v.hasVariable() {
		if digits, ok = v.text(); !ok {
			return 0, false
		}
	}
	n, err := strconv.ParseInt(digits, 10, 64)
	if !ok || err != nil || n < least || n > most {
		v.failType(want, "")
		return 0, false
	}
	return n, true
}

// items yields the index and value of each entry of a list.
func (v value) items() iter.Seq2[int, value] {
	return func(yield func(int, value) bool) {
		for i, n := range v.node.Content {
			if !yield(i, v.doc.value(n, fmt.Sprintf("%s[%d]", v.field, i))) {
				return
			}
		}
	}
}

// pairs yields the keys and values of a mapping, the first one of a duplicate key.
// It reports keys that are not text.
func (v value) pairs() iter.Seq2[value, value] {
	return func(yield func(key, val value) bool) {
		seen := make(map[string]bool)
		for pair := range slices.Chunk(v.node.Content, 2) {
			key := v.doc.value(pair[0], v.field)
			if key.node.Kind != yaml.ScalarNode || key.node.Tag == "!!null" {
				key.fail("a field's name must be text, not "+key.describe(), "")
				continue
			}
			key.field = join(v.field, key.node.Value)
			if seen[key.node.Value] {
				continue
			}
			seen[key.node.Value] = true
			if !yield(key, v.doc.value(pair[1], key.field)) {
				return
			}
		}
	}
}

// child returns the value of a field of a mapping.
func (v value) child(name string) (value, bool) {
	for pair := range slices.Chunk(v.node.Content, 2) {
		if key := v.doc.value(pair[0], "").node; key.Kind == yaml.ScalarNode && key.Value == name {
			return v.doc.value(pair[1], join(v.field, name)), true
		}
	}
	return value{}, false
}

// isNull reports whether v is null or has no value.
func (v value) isNull() bool { return v.node.Kind == yaml.ScalarNode && v.node.Tag == "!!null" }

// describe returns what the node is, for an error. It does not substitute
// variables, whose values may be secret.
func (v value) describe() string {
	switch v.node.Tag {
	case "!!map":
		return "a mapping"
	case "!!seq":
		return "a list"
	case "!!null":
		return "empty"
	case "!!int", "!!float":
		return "the number " + clip(v.node.Value)
	case "!!bool":
		return v.node.Value
	case "!!str", "!", "!!timestamp", "!!merge":
		return "the text " + quote(v.node.Value)
	}
	return "a value with the tag " + quote(v.node.Tag)
}

// join appends a key to a path. It quotes a key that is not a plain word.
func join(path, key string) string {
	key = clip(key)
	if strings.ContainsFunc(key, needsQuote) || key == "" {
		key = strconv.Quote(key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// needsQuote reports whether a key with r must be quoted in a path.
func needsQuote(r rune) bool { return r <= ' ' || r == '.' || r == ':' || r >= 0x7f }

// quote returns text for a message: quoted, on one line and shortened.
func quote(s string) string { return strconv.Quote(clip(s)) }

// clip shortens text for a message.
func clip(s string) string { return textutil.TruncateWidth(s, 60) }
