package chat

import (
	"bytes"
	"encoding/base64"
	"slices"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/picture"
	"github.com/rolecall/rolecall/model"
)

// Limits of the images in one request, which shows the newest of a conversation.
const (
	maxImage      = 5 << 20  // bytes of one image
	maxImageBytes = 20 << 20 // bytes of all images
	maxImages     = 20
)

// imageSet holds the images that a request shows.
type imageSet struct {
	load   func(ref string) (model.Image, error)
	byItem map[any][]model.Image        // by *model.Message or *model.CallResult
	texts  map[*model.CallResult]string // text of results whose image was taken out
	loaded map[string]model.Image       // by reference; each is loaded once
	count  int
	bytes  int
	hidden bool // the model sees no images
}

func newImageSet(r model.Request, items []model.Item) *imageSet {
	a := &imageSet{hidden: r.NoImages, load: r.Image, byItem: map[any][]model.Image{}, texts: map[*model.CallResult]string{}, loaded: map[string]model.Image{}}
	for _, item := range slices.Backward(items) {
		switch {
		case item.Message != nil && bytes.Contains(item.Message.Payload, []byte(`"images"`)):
			a.addMessage(item.Message)
		case item.Result != nil && !item.Result.IsError:
			a.addResult(item.Result)
		}
	}
	return a
}

// addMessage adds the images in the field "images" of a message: references to
// artifacts, or objects {mediaType, data} with base64 data. Images that cannot be
// shown are left out; the model still sees their names in the payload.
func (s *imageSet) addMessage(m *model.Message) {
	list, tries := gjson.GetBytes(m.Payload, "images"), 0
	if !list.IsArray() || s.isFull() {
		return
	}
	list.ForEach(func(_, entry gjson.Result) bool {
		if image, err := s.image(entry); err == nil {
			s.add(m, image)
		}
		tries++
		return tries < maxImages && !s.isFull()
	})
}

// isFull reports whether no image can be added.
func (s *imageSet) isFull() bool { return s.hidden || s.count == maxImages || s.bytes >= maxImageBytes }

// image returns the image of an entry in "images".
func (s *imageSet) image(entry gjson.Result) (image model.Image, err error) {
	if entry.Type == gjson.String {
		return s.storedImage(entry.Str)
	}
	image.MediaType = entry.Get("mediaType").Str
	image.Data, err = base64.StdEncoding.DecodeString(entry.Get("data").Str)
	return image, err
}

// storedImage returns the image that is stored as an artifact.
func (s *imageSet) storedImage(ref string) (image model.Image, err error) {
	if known, ok := s.loaded[ref]; ok {
		return known, nil
	}
	if s.load == nil || len(s.loaded) >= maxImages {
		return image, errcode.New(errcode.ArtifactNotFound, "no more artifacts can be shown")
	}
	image, err = s.load(ref)
	s.loaded[ref] = image
	return image, err
}

// add adds an image of a message or result and reports whether it fits.
func (s *imageSet) add(from any, i model.Image) bool {
	if s.isFull() || !isSupported(i) || s.bytes+len(i.Data) > maxImageBytes {
		return false
	}
	s.byItem[from] = append(s.byItem[from], i)
	s.count, s.bytes = s.count+1, s.bytes+len(i.Data)
	return true
}

// addResult adds the images of a result. Its contents name images as artifacts. Or the result holds
// one image, in the form that get_artifact and read_file return.
func (s *imageSet) addResult(r *model.CallResult) {
	for _, ref := range imagesInResult(r.Content) {
		if s.isFull() {
			return
		}
		if image, err := s.storedImage(ref); err == nil {
			s.add(r, image)
		}
	}
	if bytes.Contains(r.Content, []byte("base64")) {
		s.addEncoded(r)
	}
}

// addEncoded adds the image that a result holds as base64 content with the media type of an
// image.
func (s *imageSet) addEncoded(r *model.CallResult) {
	image, before, after, ok := imageInResult(r.Content)
	if !ok {
		return
	}
	note := `"(an image that is no longer shown)"`
	switch {
	case s.hidden:
		note = `"(an image, which this model does not see)"`
	case s.add(r, image):
		note = `"(shown as an image)"`
	}
	s.texts[r] = before + note + after
}

// resultText returns a result as the model sees it, without the bytes of its image.
func (s *imageSet) resultText(r *model.CallResult) string {
	if text, ok := s.texts[r]; ok {
		return text
	}
	return string(r.Content)
}

// isSupported reports whether an image is of the type that it says and of a size that providers
// accept, in bytes and in pixels.
func isSupported(i model.Image) bool {
	if len(i.Data) > maxImage || !model.IsImageType(i.MediaType) {
		return false
	}
	info, err := picture.Inspect(i.Data)
	return err == nil && info.MediaType == i.MediaType
}

// imagesInResult returns the artifacts that the contents of a result (tool.Result.Content)
// name as pictures, at most as many as a request shows.
func imagesInResult(result []byte) (refs []string) {
	if !bytes.Contains(result, []byte(`"artifactRef"`)) {
		return nil
	}
	gjson.GetBytes(result, "content").ForEach(func(_, c gjson.Result) bool {
		if ref := c.Get("artifactRef"); ref.Type == gjson.String && !c.Get("note").Exists() && model.IsImageType(c.Get("mimeType").Str) {
			refs = append(refs, ref.Str)
		}
		return len(refs) < maxImages
	})
	return refs
}

// imageInResult returns the image in a result and the text around its data.
func imageInResult(result []byte) (image model.Image, before, after string, ok bool) {
	if gjson.GetBytes(result, "encoding").Str != "base64" {
		return image, "", "", false
	}
	text := string(result)
	content := gjson.Get(text, "content")
	data, err := base64.StdEncoding.DecodeString(content.Str)
	image = model.Image{MediaType: gjson.Get(text, "mediaType").Str, Data: data}
	if err != nil || content.Index == 0 || !isSupported(image) {
		return image, "", "", false
	}
	return image, text[:content.Index], text[content.Index+len(content.Raw):], true
}

// IsImage reports whether BuildTurns turns a result into an image.
func IsImage(result []byte) bool {
	_, _, _, ok := imageInResult(result)
	return ok
}

// CountImages returns the number of images that the payload of a message names, at most
// as many as a request shows.
func CountImages(payload []byte) (n int) {
	if !bytes.Contains(payload, []byte(`"images"`)) {
		return 0
	}
	gjson.GetBytes(payload, "images").ForEach(func(gjson.Result, gjson.Result) bool {
		n++
		return n < maxImages
	})
	return n
}
