//go:build !unix

package gateway

import "math"

// maxOpenFiles returns how many files this process may open.
func maxOpenFiles() int { return math.MaxInt32 }
