package parameter

import "github.com/tidwall/gjson"

// equalExact reports whether two JSON values are equal. Numbers are compared
// exactly: 1 equals 1.0, and 0.1 does not equal 0.10000000000000001.
func equalExact(a, b gjson.Result) bool {
	return equalWith(a, b, func(a, b gjson.Result) bool { return compareNumbers(a.Raw, b.Raw) == 0 })
}

// equal reports whether two JSON values become the same value of f's type. So an
// excluded 0.1 also excludes what rounds to it.
func (f *typeSpec) equal(a, b gjson.Result) bool {
	if f.kind == TypeInteger {
		return equalExact(a, b)
	}
	if f.items != nil {
		return equalMembers(a, b, f.items.equal)
	}
	return equalWith(a, b, equalRounded)
}

// equalRounded reports whether two numbers are equal as float64.
func equalRounded(a, b gjson.Result) bool {
	x, ok := parseFloat(a.Raw)
	y, okay := parseFloat(b.Raw)
	return ok && okay && x == y
}

// equalWith reports whether two values of no stated type are equal, with their
// elements. numbers compares numbers.
func equalWith(a, b gjson.Result, numbers func(a, b gjson.Result) bool) bool {
	switch {
	case a.Type != b.Type:
		return false
	case a.Type == gjson.Number:
		return numbers(a, b)
	case a.Type == gjson.String:
		return a.Str == b.Str
	case a.Type != gjson.JSON:
		return true
	}
	return equalMembers(a, b, func(a, b gjson.Result) bool { return equalWith(a, b, numbers) })
}

// equalMembers reports whether two arrays or two objects have the same members.
func equalMembers(a, b gjson.Result, same func(a, b gjson.Result) bool) bool {
	switch {
	case a.IsArray() && b.IsArray():
		return equalElements(a.Array(), b.Array(), same)
	case a.IsObject() && b.IsObject():
		return equalValues(a.Map(), b.Map(), same)
	}
	return false
}

func equalElements(a, b []gjson.Result, same func(a, b gjson.Result) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !same(a[i], b[i]) {
			return false
		}
	}
	return true
}

func equalValues(a, b map[string]gjson.Result, same func(a, b gjson.Result) bool) bool {
	if len(a) != len(b) {
		return false
	}
	for key, v := range a {
		if other, ok := b[key]; !ok || !same(v, other) {
			return false
		}
	}
	return true
}
