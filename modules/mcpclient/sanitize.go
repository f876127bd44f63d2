package mcpclient

import "github.com/rolecall/rolecall/internal/textutil"

// visibleLine returns the visible characters of text on one line of at most n bytes.
func visibleLine(text string, n int) string {
	return textutil.OneLine(textutil.RemoveInvisible(text), n)
}
