package payload

import (
	"errors"
	"strconv"
	"strings"
)

// maxPointer is the longest pointer, in bytes.
const maxPointer = 500

// Pointer is a JSON pointer (RFC 6901). The zero Pointer leads to the whole document.
type Pointer struct{ names []string }

// unescape undoes the escapes of a name in a pointer.
var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// ParsePointer parses a JSON pointer: "", or names and indexes that each begin with "/".
func ParsePointer(text string) (Pointer, error) {
	if text == "" {
		return Pointer{}, nil
	}
	rest := strings.NewReplacer("~0", "", "~1", "").Replace(text)
	if text[0] != '/' || len(text) > maxPointer || strings.Contains(rest, "~") {
		return Pointer{}, errors.New("is not a JSON pointer, such as /alerts/0/labels")
	}
	var p Pointer
	for _, name := range strings.Split(text[1:], "/") {
		p.names = append(p.names, unescape.Replace(name))
	}
	return p, nil
}

// find returns the value of a document at a pointer. It reports false if there is none.
func (p Pointer) find(document any) (any, bool) {
	at := document
	for _, name := range p.names {
		var ok bool
		switch container := at.(type) {
		case map[string]any:
			at, ok = container[name]
		case []any:
			var i int
			if i, ok = indexOf(name, len(container)); ok {
				at = container[i]
			}
		}
		if !ok {
			return nil, false
		}
	}
	return at, true
}

// indexOf parses the index of a list of n values, without a sign or leading zeros.
func indexOf(name string, n int) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && i >= 0 && i < n && strconv.Itoa(i) == name
}
