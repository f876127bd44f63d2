package docset_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/internal/yamldoc/docset"
)

// newSet returns a Set of the kinds role and model, the plural roles, and broker, which
// is not available.
func newSet(docs *yamldoc.Reader, read func(docset.Item)) *docset.Set {
	set := docset.NewSet(docs)
	set.ReadWithoutKind = func(root yamldoc.Value) { root.MissingField("kind").AddError("is missing", set.KindsHint()) }
	set.AddKinds(docset.Kind{Name: "role", Read: read}, docset.Kind{Name: "roles", Read: read, Current: "role"},
		docset.Kind{Name: "model", Read: read, Nameless: true}, docset.Kind{Name: "broker"}, docset.Kind{Name: "tape", Hint: "no tapes"})
	return set
}

// read reads documents whose field uses refers to models, and returns the names read and
// the errors without excerpts.
func read(text string) (names []string, errs []string) {
	docs, src := yamldoc.NewReader(nil), yamldoc.NewFileText(yamldoc.File{Path: "f", Data: []byte(text)})
	set := newSet(docs, func(it docset.Item) {
		var uses []string
		it.DeclareItem()
		it.ReadFields(yamldoc.Fields{"uses": it.ReferenceList("model", &uses), "must": yamldoc.SkipField})
		if it.Kind == "role" {
			it.RequireFields("must")
		}
		names = append(names, strings.Join(append([]string{it.Kind, it.Name}, uses...), " "))
	})
	for node := range src.ParseDocuments() {
		set.ReadDocument(docs.NewDocument(src).ValueOf(node.Content[0], ""))
	}
	set.CheckReferences()
	if err := docs.ListErrors(); err != nil {
		for _, e := range err.(yamldoc.Errors) {
			line, _, _ := strings.Cut(e.Error(), "\n")
			errs = append(errs, line)
		}
	}
	return names, errs
}

func TestSet_ReadsKinds(t *testing.T) {
	names, errs := read("{kind: roles, name: a, must: 1, uses: [m, m]}\n---\n{kind: model, name: m}\n---\n{kind: model}\n")
	if diff := cmp.Diff([]string{"role a m", "model m", "model "}, names); diff != "" || errs != nil {
		t.Errorf("%v (-want +got):\n%s", errs, diff)
	}
}

func TestSet_ReportsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"[a]":                        "f:1:1: kind: is missing: a document must be a mapping with kind and name, not a list",
		"name: a":                    "f:1:1: kind: is missing (this version reads model, role)",
		"{kind: rolle, name: a}":     `f:1:8: kind: kind "rolle" is unknown (did you mean "role"?)`,
		"{kind: broker, name: a}":    "f:1:8: kind: kind broker is not available in this version (this version reads model, role)",
		"{kind: tape, name: a}":      "f:1:8: kind: kind tape is not available in this version (no tapes)",
		"{kind: role, must: 1}":      "f:1:1: name: is missing (every document has a name)",
		"{kind: model, name: ' a'}":  "f:1:21: name: must not begin or end with a space",
		"{kind: role, name: a}":      "f:1:1: must: is missing",
		"{kind: model, uses: [b]}":   `f:1:22: uses[0]: no model is named "b" (there is no document of kind model)`,
		"{kind: model, a: 1}":        "f:1:15: a: unknown field (known are kind, must, name, uses)",
		"{kind: model, uses: model}": `f:1:21: uses: must be a list of names, not the text "model" (write [model])`,
		"{kind: model, name: m}\n---\n{kind: model, name: m}":         `f:3:21: name: model "m" is declared twice; the first is at f:1:21`,
		"{kind: model, name: ab}\n---\n{kind: model, uses: [aB, ab]}": `f:3:22: uses[0]: no model is named "aB" (did you mean "ab"?)`,
	} {
		if _, errs := read(text); len(errs) != 1 || errs[0] != want {
			t.Errorf("%s:\ngot  %q\nwant %q", text, errs, want)
		}
	}
}

func TestSet_ListNames(t *testing.T) {
	set := docset.NewSet(yamldoc.NewReader(nil))
	for _, name := range []string{"b", "a"} {
		if _, ok := set.DeclareName("role", name, yamldoc.Pos{File: name}); !ok {
			t.Errorf("%s is taken", name)
		}
	}
	if first, ok := set.DeclareName("role", "a", yamldoc.Pos{}); ok || first.File != "a" {
		t.Errorf("a second name a: %v, %v", first, ok)
	}
	if got := set.ListNames("role"); !slices.Equal(got, []string{"a", "b"}) || set.ListNames("model") != nil {
		t.Errorf("got %v", got)
	}
}
