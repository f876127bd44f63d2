package chat

import "github.com/rolecall/rolecall/model"

// ItemTokens returns an estimate of the tokens of an item.
func ItemTokens(item model.Item) int {
	const overhead = 16 // for the sender, or for the call of a result
	switch {
	case item.Message != nil:
		return overhead + EstimateTokens(item.Message.Payload) + imageTokens*CountImages(item.Message.Payload)
	case item.Result != nil:
		return overhead + resultTokens(item.Result.Content)
	}
	n := EstimateTokens(item.Answer.Text) + EstimateTokens(item.Answer.Value) + EstimateTokens(item.Answer.Reasoning)
	for _, c := range item.Answer.Calls {
		n += overhead + EstimateTokens(c.Name) + EstimateTokens(c.Args)
	}
	return n
}

// imageTokens is the estimate for an image.
const imageTokens = 1600

// resultTokens returns an estimate of the tokens of a result. The result may be an image, or name
// images.
func resultTokens(content []byte) int {
	const minImageSize = 4 << 10 // smaller content is not parsed
	if len(content) > minImageSize && IsImage(content) {
		return imageTokens
	}
	return EstimateTokens(content) + imageTokens*len(imagesInResult(content))
}

// BytesPerToken is the approximate number of ASCII bytes in a token.
const BytesPerToken = 4

// EstimateTokens returns an estimate of the tokens of a text. BytesPerToken ASCII characters count
// as one token. Every other character counts as one token too, since tokenizers know fewer words in
// other alphabets.
func EstimateTokens[T ~string | ~[]byte](text T) int {
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

// FrameTokens returns an estimate of the tokens of a request without its conversation.
func FrameTokens(r model.Request) int {
	return EstimateTokens(r.System) + EstimateTokens(r.Opening) + EstimateTokens(r.Note) + len(r.ToolJSON)/BytesPerToken
}

// RequestTokens returns an estimate of the tokens of a whole request.
func RequestTokens(r model.Request) int {
	items, n := r.Items, FrameTokens(r)
	if c := r.Compact; c != nil {
		items = items[min(c.Items, len(items)):]
		n += EstimateTokens(c.Text)
	}
	for _, item := range items {
		n += ItemTokens(item)
	}
	return n
}
