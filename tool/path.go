package tool

import (
	"strconv"
	"strings"
)

// path words a place in doc as a program would: items[2].name. Names that
// are no identifiers are quoted: ["a name"].
func path(doc any, at []string) string {
	var b strings.Builder
	for _, token := range at {
		if list, ok := doc.([]any); ok {
			b.WriteString("[" + token + "]")
			doc = element(list, token)
			continue
		}
		b.WriteString(property(token, b.Len() == 0))
		object, _ := doc.(map[string]any)
		doc = object[token]
	}
	return b.String()
}

func element(list []any, token string) any {
	i, err := strconv.Atoi(token)
	if err != nil || i < 0 || i >= len(list) {
		return nil
	}
	return list[i]
}

func property(name string, first bool) string {
	switch {
	case name == "" || strings.ContainsFunc(name, func(r rune) bool { return !nameRune(r) && r != '$' || r == '.' }):
		return "[" + strconv.Quote(short(name)) + "]"
	case first:
		return short(name)
	}
	return "." + short(name)
}
