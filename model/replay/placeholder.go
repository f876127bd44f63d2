package replay

import "strings"

// What is looked for: x is a hexadecimal digit, 0 a decimal one.
const (
	uuidShape = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"
	timeShape = "0000-00-00T00:00:00"
	zoneShape = "00:00"
)

// insertPlaceholders replaces the ids and times of a text and doubles each ⟨.
func insertPlaceholders(text string, id, at func(string) string) string {
	if !strings.ContainsAny(text, "-"+open) {
		return text
	}
	var b strings.Builder
	done := 0 // bytes of text that are in b
	put := func(start, end int, with string) {
		b.WriteString(text[done:start])
		b.WriteString(with)
		done = end
	}
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '-': // the first of an id has eight digits before it, that of a time four
			if start := i - 8; start >= done && fits(text[start:], uuidShape) {
				end := start + len(uuidShape)
				put(start, end, id(text[start:end]))
			} else if start := i - 4; start >= done && timeLen(text[start:]) > 0 {
				end := start + timeLen(text[start:])
				put(start, end, at(text[start:end]))
			}
		case open[0]:
			if strings.HasPrefix(text[i:], open) {
				put(i, i, open)
			}
		}
		i = max(i, done-1)
	}
	b.WriteString(text[done:])
	return b.String()
}

// timeLen gives the length of the RFC 3339 time a text begins with, 0 if it
// begins with none.
func timeLen(text string) int {
	if !fits(text, timeShape) {
		return 0
	}
	n := len(timeShape)
	if n < len(text) && text[n] == '.' {
		for n++; n < len(text) && digit(text[n]); n++ {
		}
	}
	switch rest := text[n:]; {
	case rest == "":
		return 0
	case rest[0]|0x20 == 'z':
		return n + 1
	case (rest[0] == '+' || rest[0] == '-') && fits(rest[1:], zoneShape):
		return n + 1 + len(zoneShape)
	}
	return 0
}

// fits says whether a text begins with a shape.
func fits(text, shape string) bool {
	if len(text) < len(shape) {
		return false
	}
	for i := range len(shape) {
		b, ok := text[i], false
		switch shape[i] {
		case 'x':
			ok = digit(b) || 'a' <= b|0x20 && b|0x20 <= 'f'
		case '0':
			ok = digit(b)
		case 'T':
			ok = b|0x20 == 't'
		default:
			ok = b == shape[i]
		}
		if !ok {
			return false
		}
	}
	return true
}

func digit(b byte) bool { return '0' <= b && b <= '9' }
