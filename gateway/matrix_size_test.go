package gateway

import "testing"

// An answer of the matrix has at most 100,000 pairs, and one role at least.
func TestMatrixRows_BoundsPairs(t *testing.T) {
	for _, test := range []struct{ limit, tools, want int }{
		{100, 10, 100}, {1000, 1000, 100}, {1000, 100_001, 1}, {1000, 0, 1000}, {1, 1000, 1},
	} {
		if got := matrixRows(test.limit, test.tools); got != test.want {
			t.Errorf("limit %d, %d tools: %d roles, want %d", test.limit, test.tools, got, test.want)
		}
	}
}
