package builtin

import "testing"

func TestEncodeGivesTextWhereItCan(t *testing.T) {
	for _, c := range []struct {
		name, data        string
		more              bool
		content, encoding string
		n                 int
	}{
		{"nothing", "", false, "", "", 0},
		{"text", "añb", false, "añb", "", 4},
		{"text that goes on", "añb", true, "añb", "", 4},
		{"a cut character that goes on", "a€"[:3], true, "a", "", 1},
		{"a cut character of four bytes", "ab😀"[:5], true, "ab", "", 2},
		{"a cut character at the end", "a€"[:3], false, "YeKC", "base64", 3},
		{"less than one character", "€"[:1], true, "4g==", "base64", 1},
		{"the rest of a character", "€"[1:] + "a", true, "gqxh", "base64", 3},
		{"bytes that are no text", "\xff\xfea", true, "//5h", "base64", 3},
		{"a byte no character starts with, last", "a\xff", true, "Yf8=", "base64", 2},
		{"only continuations", "\x80\x80\x80\x80\x80", true, "gICAgIA=", "base64", 5},
		{"a NUL byte, which is text", "a\x00b", false, "a\x00b", "", 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			content, encoding, n := encode([]byte(c.data), c.more)
			if content != c.content || encoding != c.encoding || n != c.n {
				t.Errorf("got %q %q %d, want %q %q %d", content, encoding, n, c.content, c.encoding, c.n)
			}
		})
	}
}
