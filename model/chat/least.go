package chat

import "github.com/rolecall/rolecall/model"

// lettersPerToken is more than the ASCII letters in a token of any longer text, about four.
const lettersPerToken = 8

// LeastTokens returns how many tokens a request has at least, whatever the tokenizer, or 0
// if these are not more than counted. Only ASCII letters count: servers do not agree about
// images and reasoning, and tokenizers about other alphabets, white space and digits.
func LeastTokens(r model.Request, counted int) int {
	items, n := r.Items, countLetters(r.System)+countLetters(r.ToolJSON)
	if c := r.Compact; c != nil {
		items, n = items[min(c.Items, len(items)):], n+countLetters(c.Text)
	}
	if n+itemBytes(items) <= counted*lettersPerToken { // as usual: the texts need not be read
		return 0
	}
	for _, item := range items {
		switch {
		case item.Message != nil && CountImages(item.Message.Payload) == 0:
			n += countLetters(item.Message.Payload)
		case item.Result != nil && !IsImage(item.Result.Content):
			n += countLetters(item.Result.Content)
		case item.Answer != nil:
			n += countLetters(item.Answer.Text)
		}
	}
	if n <= counted*lettersPerToken {
		return 0
	}
	return n / lettersPerToken
}

// itemBytes returns the size of the texts of items in bytes.
func itemBytes(items []model.Item) (n int) {
	for _, item := range items {
		switch {
		case item.Message != nil:
			n += len(item.Message.Payload)
		case item.Result != nil:
			n += len(item.Result.Content)
		case item.Answer != nil:
			n += len(item.Answer.Text)
		}
	}
	return n
}

// countLetters returns the number of ASCII letters in a text.
func countLetters[T ~string | ~[]byte](text T) (n int) {
	for i := range len(text) {
		if c := text[i] | 0x20; 'a' <= c && c <= 'z' {
			n++
		}
	}
	return n
}
