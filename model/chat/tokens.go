package chat

import "github.com/rolecall/rolecall/model"

// Tokens estimates the tokens of an item of a conversation.
func Tokens(item model.Item) int {
	const around = 16 // who wrote it, which call it belongs to
	switch {
	case item.Message != nil:
		return around + Estimate(item.Message.Payload) + perPicture*Images(item.Message.Payload)
	case item.Result != nil:
		return around + resultSize(item.Result.Content)
	}
	n := Estimate(item.Answer.Text) + Estimate(item.Answer.Value) + Estimate(item.Answer.Reasoning)
	for _, c := range item.Answer.Calls {
		n += around + Estimate(c.Name) + Estimate(c.Args)
	}
	return n
}

// perPicture is what a picture takes, in tokens.
const perPicture = 1600

// resultSize estimates a result; one that is shown as a picture is no text.
func resultSize(content []byte) int {
	const longest = 4 << 10 // bytes that are not worth a look
	if len(content) > longest && IsImage(content) {
		return perPicture
	}
	return Estimate(content)
}

// BytesPerToken is how many bytes of ASCII a token has, about.
const BytesPerToken = 4

// Estimate gives the tokens of a text: four ASCII characters are one, and so
// is every other character, since tokenizers know fewer words of other
// alphabets.
func Estimate[T ~string | ~[]byte](text T) int {
	ascii, other := 0, 0
	for i := range len(text) {
		switch b := text[i]; {
		case b < 0x80:
			ascii++
		case b >= 0xC0: // the first byte of a character
			other++
		}
	}
	return (ascii+BytesPerToken-1)/BytesPerToken + other
}

// Length estimates the tokens of all that a request sends.
func Length(r model.Request) int {
	items, n := r.Items, Estimate(r.System)+len(r.ToolJSON)/BytesPerToken
	if c := r.Compact; c != nil {
		items = items[min(c.Items, len(items)):]
		n += Estimate(c.Text)
	}
	for _, item := range items {
		n += Tokens(item)
	}
	return n
}
