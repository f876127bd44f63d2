package docset

import (
	"cmp"
	"fmt"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// Item is a document of a known kind, or an entry of a section: a mapping of names to
// documents of one kind. Kind.Read gets one and does not depend on the form.
type Item struct {
	yamldoc.Value
	*Set
	Kind    string
	Name    string // "" if it is missing or invalid, which has been reported
	NameAt  yamldoc.Value
	IsEntry bool // an entry of a section: the key above is its name, and the field kind is left to Read
}

// item returns the Item of a document and reads its name. An invalid name is
// reported, and the rest of the document is read to report its errors too.
func (s *Set) item(k Kind, root yamldoc.Value) Item {
	it := Item{Value: root, Set: s, Kind: cmp.Or(k.Current, k.Name)}
	var ok bool
	if it.NameAt, ok = root.FindField("name"); !ok {
		it.NameAt = root.MissingField("name")
		if !k.Nameless {
			it.NameAt.AddError("is missing", "every document has a name")
		}
		return it
	}
	it.readName()
	return it
}

// NewEntry returns the Item of an entry of a section of kind k and reads its name.
// Its position is the position of the name.
func (s *Set) NewEntry(k Kind, name, entry yamldoc.Value) Item {
	it := Item{Value: entry, Set: s, Kind: k.Name, NameAt: name, IsEntry: true}
	it.Pos = name.Pos
	if name.Node.Tag != "!!str" { // the key 5 is the name "5"
		it.NameAt.Node = &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: name.Node.Value}
	}
	it.readName()
	return it
}

// readName reads the name at NameAt and checks it.
func (it *Item) readName() {
	var ok bool
	if it.Name, ok = it.NameAt.ReadNonEmpty(); !ok {
		return
	}
	if problem := yamldoc.NameProblem(it.Name); problem != "" {
		it.NameAt.AddError(problem, "")
	}
}

// DeclareItem registers the name. It rejects a name that another document of the kind has.
func (it Item) DeclareItem() {
	if it.Name == "" {
		return
	}
	if first, ok := it.DeclareName(it.Kind, it.Name, it.NameAt.Pos); !ok {
		it.NameAt.AddError(fmt.Sprintf("%s %s is declared twice; the first is at %s", it.Kind, yamldoc.QuoteText(it.Name), first), "")
	}
}

// ReadFields reads the fields of the document other than kind and name, which it adds
// to known.
func (it Item) ReadFields(known yamldoc.Fields) {
	known["kind"] = yamldoc.SkipField
	if !it.IsEntry {
		known["name"] = yamldoc.SkipField
	}
	it.Value.ReadFields(known)
}

// RequireFields reports required fields that are missing.
func (it Item) RequireFields(names ...string) {
	for _, name := range names {
		if _, ok := it.FindField(name); !ok {
			it.MissingField(name).AddError("is missing", "")
		}
	}
}
