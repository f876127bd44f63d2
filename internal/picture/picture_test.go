package picture_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"image"
	"image/gif"
	"image/jpeg"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/picture"
	"github.com/rolecall/rolecall/internal/test/pictures"
)

func Example() {
	fmt.Println(picture.Inspect(pictures.Dot))
	_, err := picture.Inspect([]byte("<svg></svg>"))
	fmt.Println(err)
	// Output:
	// {image/png 1 1} <nil>
	// it is no picture but text/plain; charset=utf-8
}

// Files of WebP: lossy with 550 x 368 pixels, lossless with 1 x 1, and animated with 400 x 400.
var webp = map[string]string{
	"lossy":    "RIFF\x24\x00\x00\x00WEBPVP8 \x18\x00\x00\x00\x30\x01\x00\x9d\x01\x2a\x26\x02\x70\x01" + strings.Repeat("\x00", 14),
	"lossless": string(decode("UklGRhoAAABXRUJQVlA4TA0AAAAvAAAAEAcQERGIiP4HAA==")),
	"extended": "RIFF\x36\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x8f\x01\x00\x8f\x01\x00",
}

func decode(text string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		panic(err)
	}
	return data
}

func TestInspect_ReadsSize(t *testing.T) {
	var asGIF, asJPEG bytes.Buffer
	if err := gif.Encode(&asGIF, image.NewGray(image.Rect(0, 0, 3, 2)), nil); err != nil {
		t.Fatal(err)
	}
	if err := jpeg.Encode(&asJPEG, image.NewGray(image.Rect(0, 0, 5, 4)), nil); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		data string
		want picture.Info
	}{
		{string(pictures.PNG(7, 8)), picture.Info{MediaType: "image/png", Width: 7, Height: 8}},
		{string(pictures.PNG(picture.MaxSide, 1)), picture.Info{MediaType: "image/png", Width: picture.MaxSide, Height: 1}},
		{asGIF.String(), picture.Info{MediaType: "image/gif", Width: 3, Height: 2}},
		{asJPEG.String(), picture.Info{MediaType: "image/jpeg", Width: 5, Height: 4}},
		{webp["lossy"], picture.Info{MediaType: "image/webp", Width: 550, Height: 368}},
		{webp["lossless"], picture.Info{MediaType: "image/webp", Width: 1, Height: 1}},
		{webp["extended"], picture.Info{MediaType: "image/webp", Width: 400, Height: 400}},
	} {
		if got, err := picture.Inspect([]byte(c.data)); err != nil || got != c.want {
			t.Errorf("got %+v, %v, want %+v", got, err, c.want)
		}
	}
}

func TestInspect_RefusesWhatIsNotShown(t *testing.T) {
	const canvas = "RIFF\x36\x00\x00\x00WEBPVP8X\x0a\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	for name, c := range map[string]struct{ data, want string }{
		"too wide":                     {string(pictures.PNG(picture.MaxSide+1, 1)), "8001 x 1 pixels"},
		"too high":                     {string(pictures.PNG(1, 1<<31-1)), "pixels"},
		"a header with a wrong sum":    {strings.Replace(string(pictures.Dot), "IHDR\x00", "IHDR\x01", 1), "cannot be read"},
		"a header that is cut":         {string(pictures.Dot[:12]), "cannot be read"},
		"a text":                       {"GIF", "no picture but text/plain"},
		"a page":                       {"<html>", "no picture but text/html"},
		"a sound":                      {"RIFF\x00\x00\x00\x00WAVE", "no picture but audio/wave"},
		"a frame larger than canvas":   {canvas + "VP8L\x05\x00\x00\x00\x2f\xff\xff\xff\xff\x00", "16384 x 16384"},
		"a frame of an animation":      {canvas + "ANMF\x0c\x00\x00\x00\x00\x00\x00\x00\x00\x00\xff\xff\x00\xff\xff\x00", "65536 x 65536"},
		"no chunk with a size":         {"RIFF\x00\x00\x00\x00WEBPVP8 \xff\xff\xff\xff", "no size found"},
		"a chunk longer than the file": {"RIFF\x00\x00\x00\x00WEBPVP8X\xff\xff\xff\xff\x00", "no size found"},
	} {
		if got, err := picture.Inspect([]byte(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %+v, %v, want %q", name, got, err, c.want)
		}
	}
}

// No bytes make the header readers panic.
func FuzzInspect(f *testing.F) {
	f.Add(pictures.Dot)
	for _, text := range webp {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if got, err := picture.Inspect(data); err == nil && (!picture.IsSupported(got.MediaType) || got.Width < 1 || got.Height > picture.MaxSide) {
			t.Errorf("%+v", got)
		}
	})
}
