package proptest

// Choices is a list of random choices. Each call consumes one.
type Choices []uint8

// Pick returns a number below n, which is at most 256. It returns 0 when no choice is
// left.
func (c *Choices) Pick(n int) int {
	if len(*c) == 0 {
		return 0
	}
	choice := int((*c)[0]) % n
	*c = (*c)[1:]
	return choice
}

// OneIn reports true with probability 1/n.
func (c *Choices) OneIn(n int) bool { return c.Pick(n) == n-1 }

// IsEmpty reports whether no choice is left.
func (c *Choices) IsEmpty() bool { return len(*c) == 0 }

// PickFrom returns an element of a non-empty list.
func PickFrom[T any](c *Choices, list ...T) T { return list[c.Pick(len(list))] }
