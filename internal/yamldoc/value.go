package yamldoc

import (
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/textutil"
)

// Value is a node of a document with its position and path. Methods that return a
// bool return the value in a type, or report an error and return false. Callers
// then go on with the next field, so that one reading reports all errors.
type Value struct {
	doc  *Document
	Node *yaml.Node // never an alias
	Path string     // path from the document's root
	Pos  Pos        // position of the node, or of the alias that refers to it

	fileAllowed bool // see FileAllowed; values in a list or mapping inherit it
}

// child returns the value of a node in v.
func (v Value) child(n *yaml.Node, path string) Value {
	inner := v.doc.ValueOf(n, path)
	inner.fileAllowed = v.fileAllowed
	return inner
}

// MissingField returns the value to report errors of an absent field on: it has the
// field's path and the position of v.
func (v Value) MissingField(field string) Value {
	v.Path = join(v.Path, field)
	return v
}

// AddError reports an error at v. If v has the content of a file, which the message may
// quote, a message without it is reported instead.
func (v Value) AddError(message, hint string) {
	if v.doc.expansions[v.Node].fromFile {
		message, hint = "is not valid with the content of its file", "the content is not shown"
	}
	v.doc.reader.report(v.Pos, v.doc.src, v.Path, message, hint)
}

// AddRedactedError reports an error without an excerpt, because v may contain a secret.
func (v Value) AddRedactedError(message, hint string) {
	v.doc.reader.report(v.Pos, &FileText{}, v.Path, message, hint)
}

// AddTypeError reports that v is not what want describes.
func (v Value) AddTypeError(want, hint string) {
	if v.IsNull() {
		v.AddError("has no value; it must be "+want, hint)
		return
	}
	v.AddError("must be "+want+", not "+v.DescribeType(), hint)
}

// ReadText returns the text of a scalar with variables substituted. Its type is that
// before substitution: ${PORT} is text, whatever the value of PORT.
func (v Value) ReadText() (string, bool) {
	if v.Node.Kind != yaml.ScalarNode {
		v.AddTypeError("text", "")
		return "", false
	}
	switch v.Node.Tag {
	case "!!str", "!", "!!timestamp", "!!merge": // a date is text in YAML 1.2; << too, as a value
		return v.substituted()
	case "!!int", "!!float", "!!bool":
		v.AddTypeError("text", "write "+QuoteText(v.Node.Value))
		return "", false
	}
	v.AddTypeError("text", "")
	return "", false
}

// ReadNonEmpty returns text, but rejects empty text.
func (v Value) ReadNonEmpty() (string, bool) {
	s, ok := v.ReadText()
	if ok && s == "" {
		v.AddError("must not be empty", "")
		return "", false
	}
	return s, ok
}

// ListItems yields the index and value of each entry of a list.
func (v Value) ListItems() iter.Seq2[int, Value] {
	return func(yield func(int, Value) bool) {
		for i, n := range v.Node.Content {
			if !yield(i, v.child(n, fmt.Sprintf("%s[%d]", v.Path, i))) {
				return
			}
		}
	}
}

// MapPairs yields the keys and values of a mapping, the first one of a duplicate key.
// It reports keys that are not text.
func (v Value) MapPairs() iter.Seq2[Value, Value] {
	return func(yield func(key, val Value) bool) {
		seen := make(map[string]bool)
		for pair := range slices.Chunk(v.Node.Content, 2) {
			key := v.doc.ValueOf(pair[0], v.Path)
			if key.Node.Kind != yaml.ScalarNode || key.Node.Tag == "!!null" {
				key.AddError("a field's name must be text, not "+key.DescribeType(), "")
				continue
			}
			key.Path = join(v.Path, key.Node.Value)
			if seen[key.Node.Value] {
				continue
			}
			seen[key.Node.Value] = true
			if !yield(key, v.child(pair[1], key.Path)) {
				return
			}
		}
	}
}

// FindField returns the value of a field of a mapping.
func (v Value) FindField(name string) (Value, bool) {
	for pair := range slices.Chunk(v.Node.Content, 2) {
		if key := v.doc.ValueOf(pair[0], "").Node; key.Kind == yaml.ScalarNode && key.Value == name {
			return v.doc.ValueOf(pair[1], join(v.Path, name)), true
		}
	}
	return Value{}, false
}

// IsNull reports whether v is null or has no value.
func (v Value) IsNull() bool { return v.Node.Kind == yaml.ScalarNode && v.Node.Tag == "!!null" }

// DescribeType returns what the node is, for an error. It does not substitute
// variables, whose values may be secret.
func (v Value) DescribeType() string {
	switch v.Node.Tag {
	case "!!map":
		return "a mapping"
	case "!!seq":
		return "a list"
	case "!!null":
		return "empty"
	case "!!int", "!!float":
		return "the number " + ClipText(v.Node.Value)
	case "!!bool":
		return v.Node.Value
	case "!!str", "!", "!!timestamp", "!!merge":
		return "the text " + QuoteText(v.Node.Value)
	}
	return "a value with the tag " + QuoteText(v.Node.Tag)
}

// join appends a key to a path. It quotes a key that is not a plain word.
func join(path, key string) string {
	key = ClipText(key)
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

// QuoteText returns text for a message: quoted, on one line and shortened.
func QuoteText(s string) string { return strconv.Quote(ClipText(s)) }

// ClipText shortens text for a message.
func ClipText(s string) string { return textutil.TruncateWidth(s, 60) }

// ErrorCount returns the number of errors so far in all documents.
func (v Value) ErrorCount() int { return v.doc.reader.ErrorCount() }

// IsScalar reports whether v is a scalar.
func (v Value) IsScalar() bool { return v.Node.Kind == yaml.ScalarNode }

// IsMapping reports whether v is a mapping. It excludes mappings with a tag of their
// own, such as !!set.
func (v Value) IsMapping() bool { return v.Node.Kind == yaml.MappingNode && v.hasTag("!!map") }

// IsList reports whether v is a list. It excludes lists with a tag of their own, such
// as !!omap.
func (v Value) IsList() bool { return v.Node.Kind == yaml.SequenceNode && v.hasTag("!!seq") }

// hasTag reports whether a collection has the tag want or none.
func (v Value) hasTag(want string) bool { return v.Node.Tag == want || v.Node.Tag == "" }
