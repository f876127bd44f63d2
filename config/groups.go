package config

import "go.yaml.in/yaml/v4"

// Groups is an optional list of tool groups. The zero Groups says nothing; a
// list that is there and empty is Set without All and IDs.
type Groups struct {
	Given bool     // the field is there
	All   bool     // every group, now and later
	IDs   []string // as written; whether such groups exist the caller knows

	at []Pos
}

// Pos gives where the i-th id is written; the zero Pos for Groups that come
// from no file.
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
			v.failType("all or a list of tool groups", "[] is none; without the field the default holds")
		}
	}
}

// readWord reads a value that is not a list: only all and * are.
func (g *Groups) readWord(v value) {
	word, ok := v.text()
	if !ok {
		return
	}
	if g.All = word == "all" || word == "*"; !g.All {
		v.failType("all or a list of tool groups", "write ["+clip(v.node.Value)+"]")
	}
}

func (g *Groups) readList(v value) {
	seen := make(map[string]bool)
	for _, item := range v.items() {
		id, ok := item.nonEmpty()
		switch {
		case !ok:
		case seen[id]:
			item.fail(quote(id)+" stands twice in the list", "")
		case id == "*" && len(v.node.Content) > 1:
			item.fail(`"*" is every group and stands alone`, "")
		case id == "*":
			g.All = true
		default:
			g.IDs = append(g.IDs, id)
			g.at = append(g.at, item.pos)
			seen[id] = true
		}
	}
}

// hasTag refuses a collection with a tag of its own, as !!set.
func hasTag(v value, want string) bool { return v.node.Tag == want || v.node.Tag == "" }
