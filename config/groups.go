package config

import "go.yaml.in/yaml/v4"

// Groups is an optional list of tool groups. The zero Groups means that the field
// is absent; an empty list is Given without All and IDs.
type Groups struct {
	Given bool     // the field is present
	All   bool     // every group, also those that are registered later
	IDs   []string // as written; the caller checks that the groups exist

	at []Pos // position of each id
}

// Pos returns the position of the i-th id, or the zero Pos for Groups that were
// not read from a file.
func (g Groups) Pos(i int) Pos {
	if i < len(g.at) {
		return g.at[i]
	}
	return Pos{}
}

// groupsField reads `all`, `"*"`, `["*"]` or a list of ids.
func groupsField(to *Groups) func(value) {
	return func(v value) {
		to.Given = true
		switch {
		case v.node.Kind == yaml.SequenceNode && hasTag(v, "!!seq"):
			to.readList(v)
		case v.node.Kind == yaml.ScalarNode && !v.isNull():
			to.readWord(v)
		default:
			v.failType("all or a list of tool groups", "[] means none; without the field the default applies")
		}
	}
}

// readWord reads a value that is not a list: all or *.
func (g *Groups) readWord(v value) {
	word, ok := v.text()
	if !ok {
		return
	}
	if g.All = word == "all" || word == "*"; !g.All {
		v.failType("all or a list of tool groups", "write ["+clip(v.node.Value)+"]")
	}
}

// readList reads a list of ids. A "*" must be the only entry.
func (g *Groups) readList(v value) {
	seen := make(map[string]bool)
	for _, item := range v.items() {
		id, ok := item.nonEmpty()
		switch {
		case !ok:
		case seen[id]:
			item.fail(quote(id)+" is listed twice", "")
		case id == "*" && len(v.node.Content) > 1:
			item.fail(`"*" means every group and must be the only entry`, "")
		case id == "*":
			g.All = true
		default:
			g.IDs = append(g.IDs, id)
			g.at = append(g.at, item.pos)
			seen[id] = true
		}
	}
}

// hasTag reports whether a collection has the tag want or none. It excludes
// collections with another tag, such as !!set.
func hasTag(v value, want string) bool { return v.node.Tag == want || v.node.Tag == "" }
