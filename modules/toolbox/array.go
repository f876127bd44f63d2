package toolbox

import (
	"reflect"
	"slices"

	"github.com/rolecall/rolecall/errcode"
)

// checkRectangular refuses lists of lists that are not of one length, for which PostgreSQL
// has no array: its driver would leave out what the first of them has not got.
func (t *declared) checkRectangular(args []any) error {
	for i, arg := range args {
		if _, ok := lengths(reflect.ValueOf(arg)); !ok {
			name := t.config.Parameters.Ordinary()[i]
			return errcode.New(errcode.InvalidArguments, "parameter %q holds lists of different lengths, which are no array: give all the same", name).With("parameter", name)
		}
	}
	return nil
}

// lengths gives those of a list and of the lists in it; false if they differ
// at one depth.
func lengths(v reflect.Value) (list []int, ok bool) {
	if v.Kind() != reflect.Slice {
		return nil, true
	}
	var first []int
	for i := range v.Len() {
		inner, ok := lengths(v.Index(i))
		switch {
		case !ok:
			return nil, false
		case i == 0:
			first = inner
		case !slices.Equal(inner, first):
			return nil, false
		}
	}
	return append([]int{v.Len()}, first...), true
}
