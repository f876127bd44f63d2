// Package roman writes and reads Roman numbers.
package roman

import (
	"fmt"
	"strings"
)

var digits = []struct {
	value int
	text  string
}{
	{1000, "M"}, {900, "CM"}, {500, "D"}, {400, "CD"}, {100, "C"}, {90, "XC"},
	{50, "L"}, {40, "XL"}, {10, "X"}, {9, "IX"}, {5, "V"}, {4, "IV"}, {1, "I"},
}

// Format writes n, from 1 to 3999.
func Format(n int) (string, error) {
	if n < 1 || n > 3999 {
		return "", fmt.Errorf("roman: there is no number %d", n)
	}
	var b strings.Builder
	for _, d := range digits {
		for ; n >= d.value; n -= d.value {
			b.WriteString(d.text)
		}
	}
	return b.String(), nil
}

// Parse reads what Format writes.
func Parse(text string) (int, error) {
	n, rest := 0, text
	for _, d := range digits {
		for strings.HasPrefix(rest, d.text) {
			n, rest = n+d.value, rest[len(d.text):]
		}
	}
	if again, err := Format(n); err != nil || again != text {
		return 0, fmt.Errorf("roman: %q is not a number", text)
	}
	return n, nil
}
