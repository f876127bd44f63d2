package sandbox

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// The cut in the middle splits no character, wherever it falls.
func TestHeadTailBuffer_KeepsWholeCharacters(t *testing.T) {
	for shift := range 4 {
		text := strings.Repeat("x", shift) + strings.Repeat("😀€", 100) + "z"
		b := newHeadTailBuffer(41)
		if _, err := b.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		got := b.output()
		if !utf8.Valid(got.Head) || !utf8.Valid(got.Tail) || !strings.HasPrefix(text, string(got.Head)) || !strings.HasSuffix(text, string(got.Tail)) {
			t.Errorf("shift %d: %q … %q", shift, got.Head, got.Tail)
		}
		if n := len(got.Head) + len(got.Tail); int(got.Omitted) != len(text)-n || n < 34 {
			t.Errorf("shift %d: %d bytes kept, %d omitted of %d", shift, n, got.Omitted, len(text))
		}
	}
}
