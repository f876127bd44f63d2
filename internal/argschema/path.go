package argschema

import (
	"strconv"
	"strings"
)

// formatPath returns a place in doc as a path: items[2].name. Names that are not identifiers
// are quoted: ["a name"].
func formatPath(doc any, at []string) string {
	var b strings.Builder
	for _, token := range at {
		if list, ok := doc.([]any); ok {
			b.WriteString("[" + token + "]")
			doc = element(list, token)
			continue
		}
		b.WriteString(formatStep(token, b.Len() == 0))
		object, _ := doc.(map[string]any)
		doc = object[token]
	}
	return b.String()
}

// element returns the element with an index in decimal, nil if there is none.
func element(list []any, token string) any {
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

// formatStep returns a property name as a step of a path.
func formatStep(name string, first bool) string {
	if text := formatName(name); first || text[0] == '[' {
		return text
	}
	return "." + truncate(name)
}

// formatName returns a property name as a path that begins with it: name or ["two words"].
func formatName(name string) string {
	if name == "" || strings.ContainsFunc(name, func(r rune) bool { return !isIdentifierRune(r) }) {
		return "[" + strconv.Quote(truncate(name)) + "]"
	}
	return truncate(name)
}

// isIdentifierRune reports whether a property name with r needs no quotes.
func isIdentifierRune(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	}
	return r == '_' || r == '-' || r == '$'
}
