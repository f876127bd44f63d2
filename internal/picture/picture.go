// Package picture reports what kind of image some bytes hold and how large it is. It reads
// headers only and decodes no pixel, so a small file cannot take much memory.
package picture

import (
	"bytes"
	"errors"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"net/http"
)

// MaxSide is the largest width and height of a picture that is shown, in pixels.
const MaxSide = 8000

// Info describes a picture.
type Info struct {
	MediaType     string // such as image/png
	Width, Height int    // in pixels, at least 1 and at most MaxSide
}

// sizeOf has the function that reads the size in a header, by media type.
var sizeOf = map[string]func([]byte) (width, height int, err error){
	"image/png":  sizeReader(png.DecodeConfig),
	"image/jpeg": sizeReader(jpeg.DecodeConfig),
	"image/gif":  sizeReader(gif.DecodeConfig),
	"image/webp": webpSize,
}

// IsSupported reports whether Inspect accepts a media type. It accepts image/png, image/jpeg, image/gif
// and image/webp.
func IsSupported(mediaType string) bool { return sizeOf[mediaType] != nil }

// Inspect returns the type and size of the picture in data. The first bytes decide, whatever a
// sender says. It returns an error that says why data is not shown. It is no picture, its header
// is damaged, or it has more than MaxSide pixels in one direction.
func Inspect(data []byte) (Info, error) {
	kind := http.DetectContentType(data)
	size, ok := sizeOf[kind]
	if !ok {
		return Info{}, fmt.Errorf("it is no picture but %s", kind)
	}
	width, height, err := size(data)
	switch {
	case err != nil:
		return Info{}, fmt.Errorf("the header of the picture cannot be read: %w", err)
	case width < 1 || height < 1:
		return Info{}, errors.New("the picture has no pixels")
	case width > MaxSide || height > MaxSide:
		return Info{}, fmt.Errorf("the picture has %d x %d pixels; at most %d x %d are shown", width, height, MaxSide, MaxSide)
	}
	return Info{kind, width, height}, nil
}

// sizeReader returns a function that reads a size with a function of the standard library.
func sizeReader(decode func(io.Reader) (image.Config, error)) func([]byte) (width, height int, err error) {
	return func(data []byte) (width, height int, err error) {
		c, err := decode(bytes.NewReader(data))
		return c.Width, c.Height, err
	}
}
