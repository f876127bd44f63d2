package yamldoc

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// LocatePath returns the value at a path below v. If it does not exist, it returns the
// nearest value above, with the full path, for an error there.
func (v Value) LocatePath(path string) Value {
	here := v
	for rest := path; rest != ""; {
		var next Value
		var ok bool
		if next, rest, ok = here.descend(rest); !ok {
			break
		}
		here = next
	}
	here.Path = v.pathBelow(path)
	return here
}

// pathBelow returns the full path of a field below v.
func (v Value) pathBelow(path string) string {
	if v.Path == "" {
		return path
	}
	return v.Path + "." + path
}

// descend follows the first name or index of a path and returns the rest.
func (v Value) descend(path string) (next Value, rest string, ok bool) {
	if index, found := strings.CutPrefix(path, "["); found {
		digits, rest, _ := strings.Cut(index, "]")
		i, err := strconv.Atoi(digits)
		if err != nil || v.Node.Kind != yaml.SequenceNode || i >= len(v.Node.Content) {
			return v, "", false
		}
		return v.doc.ValueOf(v.Node.Content[i], v.Path), strings.TrimPrefix(rest, "."), true
	}
	end := strings.IndexAny(path, ".[")
	if end < 0 {
		end = len(path)
	}
	if v.Node.Kind != yaml.MappingNode {
		return v, "", false
	}
	next, ok = v.FindField(path[:end])
	return next, strings.TrimPrefix(path[end:], "."), ok
}
