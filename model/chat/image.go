package chat

import (
	"bytes"
	"encoding/base64"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// What one request may show: the newest pictures of a conversation.
const (
	maxImage  = 5 << 20  // bytes of one
	maxShown  = 20 << 20 // bytes of all
	maxImages = 20
)

// imageTypes are the media types that every provider takes.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// imageSet is the pictures that a request shows, by the *model.Message or
// *model.Result they came with.
type imageSet struct {
	find   func(ref string) (model.Image, error)
	byItem map[any][]model.Image
	texts  map[*model.Result]string // results whose picture is in no text
	read   map[string]model.Image   // by reference, each read once
	count  int
	bytes  int
}

func newAlbum(r model.Request, items []model.Item) *imageSet {
	a := &imageSet{find: r.Image, byItem: map[any][]model.Image{}, texts: map[*model.Result]string{}, read: map[string]model.Image{}}
	for _, item := range slices.Backward(items) {
		switch {
		case item.Message != nil && bytes.Contains(item.Message.Payload, []byte(`"images"`)):
			a.message(item.Message)
		case item.Result != nil && !item.Result.IsError && bytes.Contains(item.Result.Content, []byte("base64")):
			a.result(item.Result)
		}
	}
	return a
}

// message takes in the pictures a message names in its field images:
// references to artifacts, or objects {mediaType, data} with base64. What
// cannot be shown is left out: the payload, which the model reads too, still
// names it.
func (a *imageSet) message(m *model.Message) {
	list, tries := gjson.GetBytes(m.Payload, "images"), 0
	if !list.IsArray() || a.full() {
		return
	}
	list.ForEach(func(_, entry gjson.Result) bool {
		if image, err := a.image(entry); err == nil {
			a.add(m, image)
		}
		tries++
		return tries < maxImages && !a.full()
	})
}

func (a *imageSet) full() bool { return a.count == maxImages || a.bytes >= maxShown }

func (a *imageSet) image(entry gjson.Result) (image model.Image, err error) {
	if entry.Type != gjson.String {
		image.MediaType = entry.Get("mediaType").Str
		image.Data, err = base64.StdEncoding.DecodeString(entry.Get("data").Str)
		return image, err
	}
	if known, ok := a.read[entry.Str]; ok {
		return known, nil
	}
	if a.find == nil || len(a.read) >= maxImages {
		return image, errcode.New(errcode.ArtifactNotFound, "there are no more artifacts to be shown")
	}
	image, err = a.find(entry.Str)
	a.read[entry.Str] = image
	return image, err
}

func (a *imageSet) add(from any, i model.Image) bool {
	if !shown(i) || a.count == maxImages || a.bytes+len(i.Data) > maxShown {
		return false
	}
	a.byItem[from] = append(a.byItem[from], i)
	a.count, a.bytes = a.count+1, a.bytes+len(i.Data)
	return true
}

// result takes in the picture that a result is, if it is one as get_artifact
// and read_file answer it: base64 content of an image's type.
func (a *imageSet) result(r *model.Result) {
	image, before, after, ok := picture(r.Content)
	if !ok {
		return
	}
	note := `"(an image that is no longer shown)"`
	if a.add(r, image) {
		note = `"(shown as an image)"`
	}
	a.texts[r] = before + note + after
}

// text gives a result as the model reads it.
func (a *imageSet) text(r *model.Result) string {
	if text, ok := a.texts[r]; ok {
		return text
	}
	return string(r.Content)
}

func shown(i model.Image) bool {
	return slices.Contains(imageTypes, i.MediaType) && len(i.Data) > 0 && len(i.Data) <= maxImage
}

// picture finds the picture in a result, and what stands around its bytes.
func picture(result []byte) (image model.Image, before, after string, ok bool) {
	if gjson.GetBytes(result, "encoding").Str != "base64" {
		return image, "", "", false
	}
	text := string(result)
	content := gjson.Get(text, "content")
	data, err := base64.StdEncoding.DecodeString(content.Str)
	image = model.Image{MediaType: gjson.Get(text, "mediaType").Str, Data: data}
	if err != nil || content.Index == 0 || !shown(image) {
		return image, "", "", false
	}
	return image, text[:content.Index], text[content.Index+len(content.Raw):], true
}

// IsImage says whether Turns shows a result as a picture.
func IsImage(result []byte) bool {
	_, _, _, ok := picture(result)
	return ok
}

// Images gives how many pictures a message's payload names, at most as many
// as a request shows.
func Images(payload []byte) (n int) {
	if !bytes.Contains(payload, []byte(`"images"`)) {
		return 0
	}
	gjson.GetBytes(payload, "images").ForEach(func(gjson.Result, gjson.Result) bool {
		n++
		return n < maxImages
	})
	return n
}
