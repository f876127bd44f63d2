// Package pictures makes small pictures for tests.
package pictures

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/png"
)

// Dot is a PNG of one red pixel.
var Dot = dot()

func dot() []byte {
	m := image.NewNRGBA(image.Rect(0, 0, 1, 1))
	m.Set(0, 0, color.NRGBA{R: 255, A: 255})
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		panic(err) // it is in memory
	}
	return b.Bytes()
}

// PNG returns a file of a few bytes whose header has the given size, like that of a
// decompression bomb.
func PNG(width, height uint32) []byte {
	const header, sum = 16, 29 // where the size is, and the checksum of the header
	b := bytes.Clone(Dot)
	binary.BigEndian.PutUint32(b[header:], width)
	binary.BigEndian.PutUint32(b[header+4:], height)
	binary.BigEndian.PutUint32(b[sum:], crc32.ChecksumIEEE(b[header-4:sum]))
	return b
}
