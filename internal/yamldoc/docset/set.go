// Package docset reads sets of YAML documents that have a kind and a name. Names are
// unique within a kind, and documents refer to each other by name.
//
//	set := docset.NewSet(docs)
//	set.AddKinds(docset.Kind{Name: "role", Read: readRole})
//	set.ReadDocument(root) // for each document
//	set.CheckReferences()
//
// The package knows no kind by itself, and keeps nothing of a document but its name and
// its references.
package docset

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// Set holds the kinds of documents that can be read, the names of the documents read
// so far, and the references between them.
type Set struct {
	// ReadWithoutKind reads a mapping without the field kind, or reports it.
	ReadWithoutKind func(root yamldoc.Value)

	docs  *yamldoc.Reader
	kinds map[string]Kind
	names map[key]yamldoc.Pos // of all documents, for duplicates and references
	refs  []reference         // checked when all documents are read
}

// key identifies a document: names are unique within a kind.
type key struct{ kind, name string }

// reference is a field that names another document, and its position.
type reference struct {
	key
	at yamldoc.Value
}

// NewSet returns a Set without kinds. Errors are added to docs.
func NewSet(docs *yamldoc.Reader) *Set {
	return &Set{docs: docs, kinds: make(map[string]Kind), names: make(map[key]yamldoc.Pos)}
}

// AddKinds adds kinds of documents.
func (s *Set) AddKinds(list ...Kind) {
	for _, k := range list {
		s.kinds[k.Name] = k
	}
}

// ReadDocument finds the kind of a document and calls its Read.
func (s *Set) ReadDocument(root yamldoc.Value) {
	if !root.IsMapping() {
		root.MissingField("kind").AddError("is missing: a document must be a mapping with kind and name, not "+root.DescribeType(), "")
		return
	}
	at, ok := root.FindField("kind")
	if !ok {
		s.ReadWithoutKind(root)
		return
	}
	name, ok := at.ReadNonEmpty()
	if !ok {
		return
	}
	if k, ok := s.FindKind(at, name); ok {
		k.Read(s.item(k, root))
	}
}

// FindKind returns the kind with a name. It reports a kind that is unknown or not
// available; at is the position of the name.
func (s *Set) FindKind(at yamldoc.Value, name string) (Kind, bool) {
	k, known := s.kinds[name]
	switch {
	case known && k.Read != nil:
		return k, true
	case known:
		at.AddError("kind "+name+" is not available in this version", cmp.Or(k.Hint, s.KindsHint()))
	default:
		at.AddError("kind "+yamldoc.QuoteText(name)+" is unknown", cmp.Or(textutil.SuggestName(name, slices.Collect(maps.Keys(s.kinds))), s.KindsHint()))
	}
	return Kind{}, false
}

// KindsHint returns a hint that lists the kinds that can be read, each in the current
// spelling.
func (s *Set) KindsHint() string {
	var now []string
	for _, k := range s.kinds {
		if k.Read != nil && k.Current == "" {
			now = append(now, k.Name)
		}
	}
	return yamldoc.ListHint("this version reads ", now)
}

// DeclareName registers the name of a document at a position. If another document of
// the kind has the name, it returns the position of that name and false.
func (s *Set) DeclareName(kind, name string, at yamldoc.Pos) (first yamldoc.Pos, ok bool) {
	if first, taken := s.names[key{kind, name}]; taken {
		return first, false
	}
	s.names[key{kind, name}] = at
	return yamldoc.Pos{}, true
}

// ListNames returns the names of the documents of a kind, sorted.
func (s *Set) ListNames(kind string) (list []string) {
	for k := range s.names {
		if k.kind == kind {
			list = append(list, k.name)
		}
	}
	slices.Sort(list)
	return list
}

// ReferenceField reads the name of a document of a kind. CheckReferences checks that
// there is such a document.
func (s *Set) ReferenceField(kind string, to *string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		name, ok := v.ReadNonEmpty()
		if !ok {
			return
		}
		*to = name
		s.refs = append(s.refs, reference{key{kind, name}, v})
	}
}

// ReferenceList reads a list of names of documents of a kind. It ignores duplicates.
func (s *Set) ReferenceList(kind string, to *[]string) func(yamldoc.Value) {
	return s.ReferenceListOr(kind, to, func(yamldoc.Value) bool { return false })
}

// ReferenceListOr is ReferenceList for a list that may have entries of another form. other
// reads such an entry and returns true; the entry is then no reference.
func (s *Set) ReferenceListOr(kind string, to *[]string, other func(yamldoc.Value) bool) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of names", "write ["+yamldoc.ClipText(v.Node.Value)+"]")
			return
		}
		seen := make(map[string]bool)
		for _, item := range v.ListItems() {
			var name string
			if other(item) {
				name, _ = item.ReadText()
			} else {
				s.ReferenceField(kind, &name)(item)
			}
			if name != "" && !seen[name] {
				seen[name] = true
				*to = append(*to, name)
			}
		}
	}
}

// CheckReferences reports references to documents that do not exist. It is called
// when all documents are read.
func (s *Set) CheckReferences() {
	for _, ref := range s.refs {
		if _, ok := s.names[ref.key]; !ok && s.docs.ErrorCount() <= yamldoc.MaxErrors {
			ref.at.AddError(fmt.Sprintf("no %s is named %q", ref.kind, ref.name), s.referenceHint(ref.key))
		}
	}
}

// referenceHint suggests an existing document instead of a missing one.
func (s *Set) referenceHint(missing key) string {
	known := s.ListNames(missing.kind)
	if len(known) > yamldoc.MaxErrors {
		return ""
	}
	if len(known) == 0 {
		return "there is no document of kind " + missing.kind
	}
	return cmp.Or(textutil.SuggestName(missing.name, known), yamldoc.ListHint("there are ", known))
}
