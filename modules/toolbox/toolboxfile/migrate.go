package toolboxfile

import (
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// MigrateFile returns a configuration in the current form, which has documents
// with kind, name and type. Toolbox's v1 form has nested maps, and its older v2
// form has plural kinds. It renames only what the schema names, never a key
// inside a default. Comments and variables are kept; the layout is the YAML
// writer's.
//
// It returns data itself if every document is in the current form. It
// rejects data that is not YAML, not a configuration, or cannot be rewritten
// without changing its meaning, with an Errors whose File is empty.
func MigrateFile(data []byte) ([]byte, error) {
	m, err := newMigration(data)
	if err != nil {
		return nil, err
	}
	docs, changed := m.convert()
	if err := m.reader.ListErrors(); err != nil {
		return nil, err
	}
	if !changed {
		return data, nil
	}
	return m.write(docs)
}

// migration holds the documents of a file as they are written: variables are
// not substituted. newMigration parses the file, convert makes the current form of
// the documents, and write dumps them as YAML. write then parses its result again
// to compare the meaning and the comments with the original.
type migration struct {
	src      *yamldoc.FileText
	reader   *yamldoc.Reader
	document *yamldoc.Document
	docs     []*yaml.Node // document nodes; empty documents are left out
}

// newMigration parses data and returns the errors in its YAML.
func newMigration(data []byte) (*migration, error) {
	src, docs := yamldoc.NewFileText(yamldoc.File{Data: data}), yamldoc.NewReader(nil)
	m := &migration{src: src, reader: docs, document: docs.NewDocument(src)}
	m.document.KeepVariables()
	for doc, err := range m.src.ParseDocuments() {
		if err != nil {
			return nil, yamldoc.Errors{err}
		}
		if m.document.CheckStructure(doc.Content[0]) {
			m.docs = append(m.docs, doc)
		}
	}
	return m, m.reader.ListErrors()
}

// convert returns the documents in the current form and reports whether any of
// them differs from the file's. It reports what is not a configuration.
func (m *migration) convert() (docs []*yaml.Node, changed bool) {
	for _, doc := range m.docs {
		root := m.document.ValueOf(doc.Content[0], "")
		if root.Node.Kind != yaml.MappingNode {
			root.AddError("a document must be a mapping with kind and name, not "+root.DescribeType(), "")
			continue
		}
		if _, ok := root.FindField("kind"); ok {
			current, renamed := m.rename(doc)
			docs, changed = append(docs, current), changed || renamed
			continue
		}
		if !isSections(root) {
			root.MissingField("kind").AddError("is missing", "a document has kind and name, or the sections of Toolbox's v1 form")
			continue
		}
		docs, changed = append(docs, m.split(doc)...), true
	}
	return docs, changed
}

// rename returns a document with its kind and older field names in the current
// spelling. It returns doc itself if it has no older names. It changes a copy
// without aliases, because an alias may stand for a field here and for a
// default there.
func (m *migration) rename(doc *yaml.Node) (current *yaml.Node, renamed bool) {
	current = withoutAliases(doc)
	root := m.document.ValueOf(current.Content[0], "")
	kind, _ := root.FindField("kind")
	if as, ok := pluralKinds[kind.Node.Value]; ok {
		kind.Node.Value, renamed = as, true
	}
	if kind.Node.Value == "tool" && renameClaims(current.Content[0]) {
		renamed = true
	}
	if !renamed {
		return doc, false
	}
	return current, true
}

// claimLists are the lists of a tool whose parameters may name auth services.
var claimLists = []string{"parameters", "templateParameters", "pathParams", "queryParams", "bodyParams", "headerParams"}

// renameClaims renames authSources to authServices in the parameters of a tool
// and reports whether there were any.
func renameClaims(tool *yaml.Node) (renamed bool) {
	for pair := range slices.Chunk(tool.Content, 2) {
		if pair[1].Kind != yaml.SequenceNode || !slices.Contains(claimLists, pair[0].Value) {
			continue
		}
		for _, parameter := range pair[1].Content {
			renamed = renameKey(parameter, "authSources", "authServices") || renamed
		}
	}
	return renamed
}

// renameKey renames a key of a mapping and reports whether it is there.
func renameKey(mapping *yaml.Node, from, to string) bool {
	if mapping.Kind != yaml.MappingNode {
		return false
	}
	for pair := range slices.Chunk(mapping.Content, 2) {
		if key := pair[0]; key.Kind == yaml.ScalarNode && key.Value == from {
			key.Value = to
			return true
		}
	}
	return false
}
