package builtin

import (
	"cmp"
	"encoding/json"

	"github.com/rolecall/rolecall/identity"
)

// Lengths of a part in bytes.
const (
	defaultLength   = 64_000    // of a file
	maxWholeContent = 100_000   // of an artifact; smaller ones are returned whole
	maxLength       = 1_000_000 // of anything
)

// contentRange describes the part of a content that a result has, in bytes.
type contentRange struct {
	Offset     int64 `json:"offset"`
	Length     int   `json:"length"`
	Size       int64 `json:"size"`                 // of the whole content
	Truncated  bool  `json:"truncated"`            // more follows the part
	NextOffset int64 `json:"nextOffset,omitempty"` // where it follows; never 0 if Truncated
}

// newRange returns the range of a part of n bytes.
func newRange(offset int64, n int, size int64) contentRange {
	r := contentRange{Offset: offset, Length: n, Size: size}
	if end := offset + int64(n); end < size {
		r.Truncated, r.NextOffset = true, end
	}
	return r
}

// rangeBytes is how many bytes contentRange, encoding and quotes take at most in a
// result.
const rangeBytes = 160

// maxResult is the size of the largest result that the gate accepts, in bytes of JSON.
const maxResult = 4 << 20

// contentLimit returns how many bytes of JSON the content of a result may take. Up to
// this size, the gate accepts the content and the caller's model reads it whole. The
// result holds everything but the content and its range.
func contentLimit(l CallLimits, by identity.Principal, result any) int {
	limit := cmp.Or(l.ResultLimit(by), maxResult)
	text, _ := json.Marshal(result) // strings, numbers and valid JSON always marshal
	return max(0, limit-len(text)-rangeBytes)
}
