package persist

import (
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"hash/crc32"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The kinds of frames.
const (
	kindEvent   = 'e'
	kindIndex   = 'i'
	kindMessage = 'm'
	kindRecord  = 'r'
	kindAgent   = 'a'
	kindNumber  = 'n'
)

const (
	frameVersion = 1
	frameHead    = 6 // version, kind, checksum
)

// castagnoli is the table of CRC-32C.
var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame returns the frame of a payload. Its checksum covers the bucket and the key, so that
// a frame is valid in its own place only.
func frame(bucket, key []byte, kind byte, payload []byte) []byte {
	f := make([]byte, frameHead, frameHead+len(payload))
	f[0], f[1] = frameVersion, kind
	binary.BigEndian.PutUint32(f[2:], checksum(bucket, key, f[:2], payload))
	return append(f, payload...)
}

// unframe returns the payload of a frame. It returns ErrDamaged if the frame was changed,
// or was written under another key. The payload is a part of f.
func unframe(bucket, key []byte, kind byte, f []byte) ([]byte, error) {
	fail := func(why string) ([]byte, error) { return nil, damagedError("%s %s: %s", bucket, keyText(key), why) }
	switch {
	case len(f) < frameHead:
		return fail("too short")
	case f[0] != frameVersion:
		return fail(fmt.Sprintf("unknown version %d", f[0]))
	case f[1] != kind:
		return fail(fmt.Sprintf("kind %q instead of %q", f[1], kind))
	case binary.BigEndian.Uint32(f[2:]) != checksum(bucket, key, f[:2], f[frameHead:]):
		return fail("checksum differs")
	}
	return f[frameHead:], nil
}

// checksum returns the CRC-32C of the concatenation of parts.
func checksum(parts ...[]byte) uint32 {
	var sum uint32
	for _, part := range parts {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// keyText returns a key in a form for errors: kind/key for a record, text if the key is
// text, else hexadecimal digits.
func keyText(key []byte) string {
	text := strings.ReplaceAll(string(key), "\x00", "/")
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) || strings.HasPrefix(text, "/") {
		return hex.EncodeToString(key)
	}
	return text
}
