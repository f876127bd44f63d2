package tool

import (
	"fmt"
	"unicode/utf8"
)

// MaxName is the maximum length of a tool's name in bytes.
const MaxName = 128

// CheckName returns an error if name is not a valid tool name: 1 to 128 ASCII letters, digits,
// '_', '.' or '-'. The error has the invalid character and its offset. So a letter that only
// looks like an ASCII letter can be found: `tool name "reаd" has U+0430 at byte 2`.
func CheckName(name string) error {
	switch {
	case name == "":
		return fmt.Errorf("tool name is empty")
	case len(name) > MaxName:
		return fmt.Errorf("tool name %.32q... has %d bytes, more than %d", name, len(name), MaxName)
	}
	for at, r := range name {
		if isNameRune(r) {
			continue
		}
		if _, size := utf8.DecodeRuneInString(name[at:]); r == utf8.RuneError && size == 1 {
			return fmt.Errorf("tool name %q has the byte 0x%02X at byte %d", name, name[at], at)
		}
		return fmt.Errorf("tool name %q has %U at byte %d", name, r, at)
	}
	return nil
}

// isNameRune reports whether a tool name may contain r.
func isNameRune(r rune) bool {
	switch {
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z', '0' <= r && r <= '9':
		return true
	}
	return r == '_' || r == '.' || r == '-'
}
