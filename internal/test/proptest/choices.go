package proptest

// Choices is a list of random choices still to be made.
type Choices []uint8

// Pick chooses one of n, at most 256; an empty tape chooses the first.
func (t *Choices) Pick(n int) int {
	if len(*t) == 0 {
		return 0
	}
	choice := int((*t)[0]) % n
	*t = (*t)[1:]
	return choice
}

// Chance is true once in n.
func (t *Choices) Chance(n int) bool { return t.Pick(n) == n-1 }

// Done says whether no choice is left.
func (t *Choices) Done() bool { return len(*t) == 0 }

// OneOf chooses an element of a list that is not empty.
func OneOf[T any](t *Choices, list ...T) T { return list[t.Pick(len(list))] }
