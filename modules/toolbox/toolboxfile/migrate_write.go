package toolboxfile

import (
	"bytes"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/internal/yamldoc/docset"
)

// write returns the documents as text and checks that the text has the same
// meaning and all comments. The YAML writer drops some comments: write puts these
// at the top of the file. It puts all comments there if the text with comments in
// place would have another meaning.
func (m *migration) write(docs []*yaml.Node) ([]byte, error) {
	want := m.fingerprints(docs)
	if err := m.reader.ListErrors(); err != nil {
		return nil, err
	}
	for range 2 {
		out, err := dumpDocuments(docs)
		if err != nil {
			return nil, err
		}
		if written, err := newMigration(out); err == nil && slices.Equal(written.fingerprints(written.docs), want) {
			return m.restoreComments(out, written), nil
		}
		for _, doc := range docs {
			stripComments(doc)
		}
	}
	return nil, yamldoc.Errors{{Line: 1, Column: 1, Message: "the file cannot be rewritten without changing its meaning", Hint: "write documents with kind, name and type by hand"}}
}

// dumpDocuments returns the documents as text, separated by "---".
func dumpDocuments(docs []*yaml.Node) ([]byte, error) {
	var out []byte
	for i, doc := range docs {
		text, err := yaml.Dump(doc, yaml.WithIndent(2), yaml.WithCompactSeqIndent(false), yaml.WithLineWidth(-1))
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, "---\n"...)
		}
		out = append(out, bytes.TrimPrefix(text, []byte("---\n"))...)
	}
	return out, nil
}

// fingerprints returns a digest of each document's content.
func (m *migration) fingerprints(docs []*yaml.Node) []string {
	list := make([]string, len(docs))
	for i, doc := range docs {
		it := docset.Item{Value: m.document.ValueOf(doc.Content[0], "")}
		if kind, ok := it.FindField("kind"); ok {
			it.Kind = kind.Node.Value
		}
		if name, ok := it.FindField("name"); ok {
			it.Name = name.Node.Value
		}
		list[i] = hexDigest(appendItem(nil, it))
	}
	return list
}

// restoreComments returns out with the comments of m that it lacks at the top.
// written is the migration of out.
func (m *migration) restoreComments(out []byte, written *migration) []byte {
	left := map[string]int{}
	for _, comment := range written.comments() {
		left[comment]++
	}
	var missing strings.Builder
	for _, comment := range m.comments() {
		if left[comment]--; left[comment] < 0 {
			missing.WriteString(comment + "\n")
		}
	}
	return append([]byte(missing.String()), out...)
}

// stripComments removes the comments of a node and of all nodes below it.
func stripComments(n *yaml.Node) {
	n.HeadComment, n.LineComment, n.FootComment = "", "", ""
	for _, child := range n.Content {
		stripComments(child)
	}
}
