package builtin

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestEncode_PrefersText(t *testing.T) {
	for _, c := range []struct {
		name, data        string
		more              bool
		content, encoding string
		n                 int
	}{
		{"empty", "", false, "", "", 0},
		{"text", "añb", false, "añb", "", 4},
		{"text with more to follow", "añb", true, "añb", "", 4},
		{"partial character with more to follow", "a€"[:3], true, "a", "", 1},
		{"partial character of four bytes", "ab😀"[:5], true, "ab", "", 2},
		{"partial character at the end", "a€"[:3], false, "YeKC", "base64", 3},
		{"less than one character", "€"[:1], true, "4g==", "base64", 1},
		{"rest of a character", "€"[1:] + "a", true, "gqxh", "base64", 3},
		{"invalid UTF-8", "\xff\xfea", true, "//5h", "base64", 3},
		{"invalid last byte", "a\xff", true, "Yf8=", "base64", 2},
		{"only continuation bytes", "\x80\x80\x80\x80\x80", true, "gICAgIA=", "base64", 5},
		{"text with NUL byte", "a\x00b", false, "a\x00b", "", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			content, encoding, n := encodePart([]byte(c.data), c.more, math.MaxInt)
			if content != c.content || encoding != c.encoding || n != c.n {
				t.Errorf("got %q %q %d, want %q %q %d", content, encoding, n, c.content, c.encoding, c.n)
			}
		})
	}
}

// Content of any kind fits the limit as JSON, and is never empty while data follows.
func TestEncode_KeepsLimit(t *testing.T) {
	for _, data := range []string{
		strings.Repeat("x", 100), strings.Repeat("\"\\\n", 40), strings.Repeat("<é\u2028", 30), strings.Repeat("\x01😀", 30), strings.Repeat("\xff", 100),
	} {
		for limit := range 90 {
			content, encoding, n := encodePart([]byte(data), false, limit)
			text, _ := json.Marshal(content)
			decoded := content
			if encoding == inBase64 {
				plain, _ := base64.StdEncoding.DecodeString(content)
				decoded = string(plain)
			}
			smallest := n <= 3 || utf8.RuneCountInString(content) == 1
			if len(text)-2 > limit && !smallest || n == 0 || decoded != data[:n] {
				t.Errorf("%.10q, limit %d: %d bytes of data in %s", data, limit, n, text)
			}
		}
	}
}
