package toolbox

import (
	"reflect"
	"slices"

	"github.com/rolecall/rolecall/errcode"
)

// checkRectangular rejects nested lists of different lengths. PostgreSQL has no arrays
// of that form, and its driver would silently drop elements.
func (t *declaredTool) checkRectangular(args []any) error {
	for i, arg := range args {
		if _, ok := dimensions(reflect.ValueOf(arg)); !ok {
			name := t.config.Parameters.OrdinaryNames()[i]
			return errcode.New(errcode.InvalidArguments, "parameter %q contains lists of different lengths; an array needs lists of one length", name).With("parameter", name)
		}
	}
	return nil
}

// dimensions returns the lengths of a list and of the lists in it, and reports whether
// lists at the same depth have the same length.
func dimensions(v reflect.Value) (lengths []int, ok bool) {
	if v.Kind() != reflect.Slice {
		return nil, true
	}
	var first []int
	for i := range v.Len() {
		inner, ok := dimensions(v.Index(i))
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
