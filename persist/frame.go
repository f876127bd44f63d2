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

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// frame wraps a payload for its place.
func frame(bucket, key []byte, kind byte, payload []byte) []byte {
	f := make([]byte, frameHead, frameHead+len(payload))
	f[0], f[1] = frameVersion, kind
	binary.BigEndian.PutUint32(f[2:], checksum(bucket, key, f[:2], payload))
	return append(f, payload...)
}

// unframe gives the payload of a frame that stands where it was written, as
// it was written. The payload is valid as long as f.
func unframe(bucket, key []byte, kind byte, f []byte) ([]byte, error) {
	spoilt := func(why string) ([]byte, error) { return nil, damaged("%s %s: %s", bucket, readable(key), why) }
	switch {
	case len(f) < frameHead:
		return spoilt("too short")
	case f[0] != frameVersion:
		return spoilt(fmt.Sprintf("version %d is not known", f[0]))
	case f[1] != kind:
		return spoilt(fmt.Sprintf("kind %q instead of %q", f[1], kind))
	case binary.BigEndian.Uint32(f[2:]) != checksum(bucket, key, f[:2], f[frameHead:]):
		return spoilt("checksum differs")
	}
	return f[frameHead:], nil
}

func checksum(parts ...[]byte) uint32 {
	var sum uint32
	for _, part := range parts {
		sum = crc32.Update(sum, castagnoli, part)
	}
	return sum
}

// readable gives a key as text where it is one: of a record kind/key.
func readable(key []byte) string {
	text := strings.ReplaceAll(string(key), "\x00", "/")
	if !utf8.ValidString(text) || strings.ContainsFunc(text, unicode.IsControl) || strings.HasPrefix(text, "/") {
		return hex.EncodeToString(key)
	}
	return text
}
