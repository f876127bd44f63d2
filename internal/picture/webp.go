package picture

import (
	"encoding/binary"
	"errors"
)

// Sizes of the parts of a WebP file, in bytes.
const (
	webpHeader  = 12 // RIFF, the size, WEBP
	chunkHeader = 8  // its name and size
)

// errWebP is returned for a file without the size of a picture.
var errWebP = errors.New("no size found")

// webpSize returns the size of a WebP file. This is the largest size that any of its chunks names.
// A decoder may use the size of the canvas, or the size of an image on it.
func webpSize(data []byte) (width, height int, err error) {
	for rest := data[min(webpHeader, len(data)):]; len(rest) >= chunkHeader; {
		name, size := string(rest[:4]), int64(binary.LittleEndian.Uint32(rest[4:]))
		body := rest[chunkHeader:]
		w, h := chunkSize(name, body[:min(size, int64(len(body)))])
		width, height = max(width, w), max(height, h)
		rest = body[min(size+size%2, int64(len(body))):] // chunks begin at even offsets
	}
	if width == 0 || height == 0 {
		return 0, 0, errWebP
	}
	return width, height, nil
}

// chunkSize returns the size that a chunk names; 0, 0 if it names none.
func chunkSize(name string, body []byte) (width, height int) {
	switch {
	case name == "VP8X" && len(body) >= 10: // the canvas
		return 1 + uint24(body[4:]), 1 + uint24(body[7:])
	case name == "ANMF" && len(body) >= 12: // a frame of an animation
		return 1 + uint24(body[6:]), 1 + uint24(body[9:])
	case name == "VP8L" && len(body) >= 5: // a picture without loss
		bits := binary.LittleEndian.Uint32(body[1:])
		return 1 + int(bits&0x3fff), 1 + int(bits>>14&0x3fff)
	case name == "VP8 " && len(body) >= 10: // a picture with loss
		return int(binary.LittleEndian.Uint16(body[6:]) & 0x3fff), int(binary.LittleEndian.Uint16(body[8:]) & 0x3fff)
	}
	return 0, 0
}

// uint24 decodes three bytes, of which the lowest comes first.
func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }
