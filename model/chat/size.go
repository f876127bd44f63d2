package chat

import (
	"encoding/base64"

	"github.com/rolecall/rolecall/model"
)

// SizeHint guesses the bytes that turns take in a request, escapes included, so
// that it is written in one go.
func SizeHint(turns []Turn) (n int) {
	for i := range turns {
		t := &turns[i]
		n += 128 + len(t.Text)*9/8 + len(t.Reasoning) + pixels(t.Images)
		for _, c := range t.Calls {
			n += 128 + (len(c.Args)+len(c.RawArgs))*9/8
		}
		for _, r := range t.Results {
			n += 192 + len(r.Text)*9/8 + pixels(r.Images)
		}
	}
	return n
}

func pixels(images []model.Image) (n int) {
	for _, i := range images {
		n += 128 + base64.StdEncoding.EncodedLen(len(i.Data))
	}
	return n
}
