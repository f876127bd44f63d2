package config

import "github.com/rolecall/rolecall/internal/yamldoc"

// Groups is an optional list of tool groups. The zero Groups means that the field
// is absent; an empty list is Given without All and IDs.
type Groups struct {
	Given bool     // the field is present
	All   bool     // every group, also those that are registered later
	IDs   []string // as written; the caller checks that the groups exist

	at []yamldoc.Pos // position of each id
}

// Pos returns the position of the i-th id, or the zero Pos for Groups that were
// not read from a file.
func (g Groups) Pos(i int) yamldoc.Pos {
	if i < len(g.at) {
		return g.at[i]
	}
	return yamldoc.Pos{}
}

// groupsField reads `all`, `"*"`, `["*"]` or a list of ids.
func groupsField(to *Groups) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		to.Given = true
		switch {
		case v.IsList():
			to.readList(v)
		case v.IsScalar() && !v.IsNull():
			to.readWord(v)
		default:
			v.AddTypeError("all or a list of tool groups", "[] means none; without the field the default applies")
		}
	}
}

// readWord reads a value that is not a list: all or *.
func (g *Groups) readWord(v yamldoc.Value) {
	word, ok := v.ReadText()
	if !ok {
		return
	}
	if g.All = word == "all" || word == "*"; !g.All {
		v.AddTypeError("all or a list of tool groups", "write ["+yamldoc.ClipText(v.Node.Value)+"]")
	}
}

// readList reads a list of ids. A "*" must be the only entry.
func (g *Groups) readList(v yamldoc.Value) {
	seen := make(map[string]bool)
	for _, item := range v.ListItems() {
		id, ok := item.ReadNonEmpty()
		switch {
		case !ok:
		case seen[id]:
			item.AddError(yamldoc.QuoteText(id)+" is listed twice", "")
		case id == "*" && len(v.Node.Content) > 1:
			item.AddError(`"*" means every group and must be the only entry`, "")
		case id == "*":
			g.All = true
		default:
			g.IDs = append(g.IDs, id)
			g.at = append(g.at, item.Pos)
			seen[id] = true
		}
	}
}
