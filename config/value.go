package config

import (
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// value is a node of a document with its place. Its methods give what the node
// holds in the asked type, or report and give false.
type value struct {
	doc   *document
	node  *yaml.Node // never an alias
	field string     // path from the document's root
	pos   Pos        // of the alias, where one leads here
}

func (d *document) value(n *yaml.Node, field string) value {
	v := value{d, n, field, Pos{d.src.path, n.Line, n.Column}}
	for v.node.Kind == yaml.AliasNode {
		v.node = v.node.Alias
	}
	return v
}

// missing is v as the place of a field that is not there.
func (v value) missing(field string) value {
	v.field = join(v.field, field)
	return v
}

func (v value) fail(message, hint string) {
	v.doc.report(v.pos, v.doc.src, v.field, message, hint)
}

// failRedacted reports what may hold a secret, so without an excerpt.
func (v value) failRedacted(message, hint string) {
	v.doc.report(v.pos, &source{}, v.field, message, hint)
}

// failType reports a value of another type than wanted.
func (v value) failType(want, hint string) {
	if v.isNull() {
		v.fail("has no value; it must be "+want, hint)
		return
	}
	v.fail("must be "+want+", not "+v.describe(), hint)
}

// text gives a scalar's text with its variables substituted. What is typed
// before substitution decides: ${PORT} is text whatever PORT holds.
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

// nonEmpty is text that may not be empty.
func (v value) nonEmpty() (string, bool) {
	s, ok := v.text()
	if ok && s == "" {
		v.fail("must not be empty", "")
		return "", false
	}
	return s, ok
}

// positiveInt gives a whole number from 1 on.
func (v value) positiveInt() (int, bool) {
	n, ok := v.integer(1, math.MaxInt32, "a whole number from 1")
	return int(n), ok
}

// integer gives a whole number from least to most; want says what it has to
// be. A variable may hold it, also a quoted one: within { } there is no other
// way to write it.
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

// items gives the values of a list.
func (v value) items() iter.Seq2[int, value] {
	return func(yield func(int, value) bool) {
		for i, n := range v.node.Content {
			if !yield(i, v.doc.value(n, fmt.Sprintf("%s[%d]", v.field, i))) {
				return
			}
		}
	}
}

// pairs gives the keys and values of a mapping, of a repeated key the first.
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

// child gives a field of a mapping.
func (v value) child(name string) (value, bool) {
	for pair := range slices.Chunk(v.node.Content, 2) {
		if key := v.doc.value(pair[0], "").node; key.Kind == yaml.ScalarNode && key.Value == name {
			return v.doc.value(pair[1], join(v.field, name)), true
		}
	}
	return value{}, false
}

func (v value) isNull() bool { return v.node.Kind == yaml.ScalarNode && v.node.Tag == "!!null" }

// describe says what the node is, as it is written: the value of a variable
// may be a secret.
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

// join extends a path by a key; a key that is no plain word is quoted.
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

func needsQuote(r rune) bool { return r <= ' ' || r == '.' || r == ':' || r >= 0x7f }

// quote shows text in a message, on one line and not too much of it.
func quote(s string) string { return strconv.Quote(clip(s)) }

func clip(s string) string {
	const most = 60
	if r := []rune(s[:min(len(s), 4*(most+1))]); len(r) > most {
		return string(r[:most]) + "…"
	}
	return s
}
