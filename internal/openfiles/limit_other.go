//go:build !unix

package openfiles

import "math"

// Limit returns how many files this process may open.
func Limit() int { return math.MaxInt32 }
