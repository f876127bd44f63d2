package bounds

import (
	"strconv"
	"strings"

	"github.com/tidwall/gjson"
)

// maxReferences limits the references of a schema that are followed one after another.
const maxReferences = 16

// resolve returns a part of a schema, after the references that it consists of. The result does
// not exist if a reference leads nowhere.
func resolve(root, part gjson.Result) gjson.Result {
	for range maxReferences {
		ref := member(part, "$ref")
		if !ref.Exists() {
			return part
		}
		if part = pointed(root, ref.Str); !part.Exists() {
			return part
		}
	}
	return gjson.Result{}
}

// pointed returns the part of a schema that a reference within it points to.
func pointed(root gjson.Result, ref string) gjson.Result {
	pointer, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return gjson.Result{}
	}
	if pointer == "" {
		return root
	}
	steps, err := splitPointer(pointer)
	if err != nil {
		return gjson.Result{}
	}
	at := root
	for _, step := range steps {
		at = member(at, step)
	}
	return at
}

// member returns a member of an object by its exact name.
func member(v gjson.Result, name string) (found gjson.Result) {
	if v.IsObject() {
		v.ForEach(func(key, value gjson.Result) bool {
			if key.Str == name {
				found = value
			}
			return !found.Exists()
		})
	}
	return found
}

// below returns the part of a schema for what a step leads to.
func below(root, part gjson.Result, step string) gjson.Result {
	part = resolve(root, part)
	if _, err := strconv.Atoi(step); step == every || err == nil && member(part, "items").Exists() {
		return member(part, "items")
	}
	return member(member(part, "properties"), step)
}

// defaultsOf returns the default that each step of a path has in a schema, nil if there is
// none.
func defaultsOf(root gjson.Result, steps []string) (list []gjson.Result) {
	part := root
	for i, step := range steps {
		part = below(root, part, step)
		value := member(part, "default")
		if !value.Exists() {
			value = member(resolve(root, part), "default")
		}
		if value.Exists() && list == nil {
			list = make([]gjson.Result, len(steps))
		}
		if value.Exists() {
			list[i] = value
		}
	}
	return list
}
