package chat

import (
	"encoding/json"
	"strings"
)

// thinkingTags are the names of the tags in which models write their thinking as text, when
// their server does not take it out.
var thinkingTags = []string{"think", "thinking"}

// splitThinking separates the thinking at the beginning of a text from the answer. It may have
// no end, then there is no answer, or, where the server has written its beginning into the
// prompt, no beginning. Tags elsewhere belong to the answer.
func splitThinking(text string) (thinking, answer string) {
	var parts []string
	answer = text
	for {
		part, rest, ok := cutThinking(answer)
		if !ok {
			break
		}
		parts, answer = append(parts, part), rest
	}
	if parts == nil {
		return cutUnopened(text)
	}
	return strings.Join(parts, "\n"), answer
}

// cutThinking cuts one block of thinking off the beginning of a text. It reports false if
// the text does not begin with one.
func cutThinking(text string) (thinking, rest string, ok bool) {
	trimmed := strings.TrimLeft(text, " \t\r\n")
	for _, tag := range thinkingTags {
		if inner, ok := strings.CutPrefix(trimmed, "<"+tag+">"); ok {
			thinking, rest, _ = strings.Cut(inner, "</"+tag+">")
			return strings.TrimSpace(thinking), strings.TrimLeft(rest, " \t\r\n"), true
		}
	}
	return "", text, false
}

// cutUnopened cuts thinking whose beginning is missing off a text. The end of such thinking
// stands alone at the end of a line, and no other tag of its kind is in the text.
func cutUnopened(text string) (thinking, answer string) {
	for _, tag := range thinkingTags {
		before, after, ok := strings.Cut(text, "</"+tag+">")
		alone := strings.HasSuffix(before, "\n") && (after == "" || after[0] == '\n' || after[0] == '\r')
		if ok && alone && !strings.Contains(before, "<"+tag+">") && !strings.Contains(after, tag+">") {
			return strings.TrimSpace(before), strings.TrimLeft(after, " \t\r\n")
		}
	}
	return "", text
}

// textThinking returns thinking as Answer.Reasoning records it. No provider gets it back:
// it is in none of their formats.
func textThinking(thinking string) json.RawMessage {
	if thinking == "" {
		return nil
	}
	return append(AppendString([]byte(`{"thinking":`), thinking), '}')
}
