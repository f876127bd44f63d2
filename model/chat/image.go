package chat

import (
	"encoding/base64"
	"slices"
	"strconv"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/model"
)

// What a conversation may show.
const (
	maxImage  = 5 << 20 // bytes of one
	maxImages = 20      // of one message
)

// imageTypes are the media types that every provider takes.
var imageTypes = []string{"image/png", "image/jpeg", "image/gif", "image/webp"}

// images gives the pictures a message names in its field images: references
// to artifacts, or objects {mediaType, data} with base64. What cannot be shown
// is left out: the payload, which the model reads too, still names it.
func (b *builder) images(list gjson.Result) []model.Image {
	if !list.IsArray() {
		return nil
	}
	var images []model.Image
	for _, entry := range list.Array() {
		if len(images) == maxImages {
			break
		}
		if image, err := b.image(entry); err == nil && shown(image) {
			images = append(images, image)
		}
	}
	return images
}

func (b *builder) image(entry gjson.Result) (model.Image, error) {
	if entry.Type == gjson.String {
		if b.request.Image == nil {
			return model.Image{}, errcode.New(errcode.ArtifactNotFound, "there are no artifacts here")
		}
		return b.request.Image(entry.Str)
	}
	data, err := base64.StdEncoding.DecodeString(entry.Get("data").Str)
	return model.Image{MediaType: entry.Get("mediaType").Str, Data: data}, err
}

func shown(i model.Image) bool {
	return slices.Contains(imageTypes, i.MediaType) && len(i.Data) > 0 && len(i.Data) <= maxImage
}

// pictured gives a result as text, and the picture in it if it is one as
// get_artifact and read_file answer it: base64 content of an image's type.
func (b *builder) pictured(r *model.Result) (string, []model.Image) {
	text := string(r.Content)
	if r.IsError || !strings.Contains(text, "base64") || gjson.Get(text, "encoding").Str != "base64" {
		return text, nil
	}
	content := gjson.Get(text, "content")
	data, err := base64.StdEncoding.DecodeString(content.Str)
	image := model.Image{MediaType: gjson.Get(text, "mediaType").Str, Data: data}
	if err != nil || content.Index == 0 || !shown(image) {
		return text, nil
	}
	note := strconv.Quote("(shown as an image)")
	return text[:content.Index] + note + text[content.Index+len(content.Raw):], []model.Image{image}
}

// IsImage says whether Turns shows a result as a picture.
func IsImage(result []byte) bool {
	_, images := (&builder{}).pictured(&model.Result{Content: result})
	return len(images) > 0
}

// DataURL gives an image the way pages embed it.
func DataURL(i model.Image) string {
	return "data:" + i.MediaType + ";base64," + base64.StdEncoding.EncodeToString(i.Data)
}
