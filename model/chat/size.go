package chat

import (
	"encoding/base64"

	"github.com/rolecall/rolecall/model"
)

// SizeHint estimates the bytes of turns in a request, with escapes, so that the
// buffer for it is allocated once.
func SizeHint(turns []Turn) (n int) {
	for i := range turns {
		t := &turns[i]
		n += 128 + (len(t.Text)+len(t.Note))*9/8 + len(t.Reasoning) + encodedSize(t.Images)
		for _, c := range t.Calls {
			n += 128 + len(c.Args)*9/8
		}
		for _, r := range t.Results {
			n += 192 + len(r.Text)*9/8 + encodedSize(r.Images)
		}
	}
	return n
}

// encodedSize returns the bytes of images in base64, with the JSON around them.
func encodedSize(images []model.Image) (n int) {
	for _, i := range images {
		n += 128 + base64.StdEncoding.EncodedLen(len(i.Data))
	}
	return n
}
