package workspace

import (
	"github.com/rolecall/rolecall/errcode"
)

// MaxContent is the maximum size in bytes of decoded content in one call.
const MaxContent = 8 << 20

// TooLarge returns the error, invalid_arguments, for content of size bytes with a limit in bytes.
func TooLarge(size, limit int64) error {
	return errcode.New(errcode.InvalidArguments, "content of %d bytes is over the limit of %d; split it into parts", size, limit).
		With("size", size).With("limit", limit)
}

// CheckSize rejects content of more than MaxContent bytes.
func CheckSize(size int) error {
	if size <= MaxContent {
		return nil
	}
	return TooLarge(int64(size), MaxContent)
}
