package chat

import "strings"

// ThinkingFilter takes thinking out of a text that arrives in parts, as BuildAnswer does with
// the whole text, so that it is not shown. Thinking without a beginning is not recognized.
// The zero ThinkingFilter has seen no text. Not safe for concurrent use.
type ThinkingFilter struct {
	held    string // may be the beginning of a tag
	end     string // tag that ends the thinking; "" outside of it
	thought bool   // thinking came before
	open    bool   // the answer has begun, so the rest is part of it
}

// maxHeld bounds the bytes that are held back before an answer begins: white space and a part
// of a tag.
const maxHeld = 4 << 10

// Show returns what can be shown after the next part.
func (f *ThinkingFilter) Show(part string) string {
	if f.open || part == "" {
		return part
	}
	text := f.held + part
	f.held = ""
	for {
		if f.end != "" {
			_, rest, ended := strings.Cut(text, f.end)
			if !ended {
				f.held = text[max(0, len(text)-len(f.end)+1):]
				return ""
			}
			text, f.end, f.thought = rest, "", true
		}
		if text = f.begin(text); f.end == "" {
			return text
		}
	}
}

// begin looks for thinking at the beginning of a text. It sets end and returns what is behind
// the tag, or returns what can be shown.
func (f *ThinkingFilter) begin(text string) string {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	for _, tag := range thinkingTags {
		start := "<" + tag + ">"
		if rest, ok := strings.CutPrefix(trimmed, start); ok {
			f.end = "</" + tag + ">"
			return rest
		}
		if strings.HasPrefix(start, trimmed) && len(text) <= maxHeld {
			f.held = text
			return ""
		}
	}
	f.open = true
	if f.thought {
		return trimmed
	}
	return text
}
