package toolboxfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// SetLabels returns a file in which the document of a tool has the labels that l sets. name
// is the name of a declared tool, or SERVER/TOOL for a document with the field of. Other
// documents are unchanged. Comments are kept; the layout of the document is the YAML
// writer's. It returns false if the file has no document of kind tool for the tool.
//
// Tools below sections, such as tools in Toolbox's v1 form, are not found.
func SetLabels(data []byte, name string, l Labels) (out []byte, found bool, err error) {
	parts, ok := yamldoc.NewFileText(yamldoc.File{Data: data}).SplitDocuments()
	if !ok {
		return nil, false, nil
	}
	for _, p := range parts {
		text, edited, err := setDocumentLabels(p.Text, name, l)
		if err != nil {
			return nil, false, err
		}
		found = found || edited
		out = append(out, text...)
	}
	return out, found, nil
}

// AppendLabels returns a file with a further document: the labels of a tool of a server or
// module.
func AppendLabels(data []byte, id ToolID, l Labels) ([]byte, error) {
	root := &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{textNode("kind"), textNode("tool"), textNode("of"), textNode(id.String())}}
	setLabels(root, l)
	text, err := dumpDocuments([]*yaml.Node{{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}}})
	if err != nil {
		return nil, err
	}
	out := slices.Clone(data)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	if strings.TrimSpace(string(out)) != "" {
		out = append(out, "---\n"...)
	}
	return append(out, text...), nil
}

// setDocumentLabels returns the text of a document with labels. It returns the text itself if the
// document is not the document of the tool.
func setDocumentLabels(text, name string, l Labels) (out string, edited bool, err error) {
	m, err := newMigration([]byte(text))
	if err != nil {
		return "", false, err
	}
	if len(m.docs) != 1 || !isToolDocument(m.document.ValueOf(m.docs[0].Content[0], ""), name) {
		return text, false, nil
	}
	doc := withoutAliases(m.docs[0])
	setLabels(doc.Content[0], l)
	dumped, err := dumpDocuments([]*yaml.Node{doc})
	if err != nil {
		return "", false, err
	}
	written, err := newMigration(dumped)
	if err != nil {
		return "", false, err
	}
	out = string(m.restoreComments(dumped, written))
	if strings.HasPrefix(text, "---") {
		out = "---\n" + out
	}
	return out, true, nil
}

// isToolDocument reports whether a document declares a tool.
func isToolDocument(root yamldoc.Value, name string) bool {
	if root.Node.Kind != yaml.MappingNode {
		return false
	}
	kind, _ := root.FindField("kind")
	if kind.Node == nil || kind.Node.Value != "tool" && pluralKinds[kind.Node.Value] != "tool" {
		return false
	}
	at, ok := root.FindField("of")
	if !ok {
		at, ok = root.FindField("name")
	}
	return ok && at.Node.Value == name
}

// setLabels sets the fields of a document that l sets.
func setLabels(root *yaml.Node, l Labels) {
	if l.Groups != nil {
		setField(root, listNode(l.Groups), "group")
	}
	if l.State != nil {
		setField(root, quotedNode(*l.State), "state")
	}
	if l.States != nil {
		setField(root, listNode(l.States), "available_in_states", "applicable-states")
	}
	if l.Effect != "" {
		setField(root, textNode(l.Effect), "effect")
	}
	if l.Flags.Known() {
		setField(root, listNode(l.Flags.Names()), "flags")
	}
}

// setField sets the field of a mapping that has one of the names. It removes the others, and
// adds the field under the first name if it is missing.
func setField(root, value *yaml.Node, names ...string) {
	set := false
	var content []*yaml.Node
	for pair := range slices.Chunk(root.Content, 2) {
		if slices.Contains(names, pair[0].Value) {
			if set {
				continue
			}
			set, value.LineComment, pair[1] = true, pair[1].LineComment, value
		}
		content = append(content, pair[0], pair[1])
	}
	if !set {
		content = append(content, textNode(names[0]), value)
	}
	root.Content = content
}

// listNode returns a list of texts on one line.
func listNode(texts []string) *yaml.Node {
	list := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq", Style: yaml.FlowStyle}
	for _, text := range texts {
		list.Content = append(list.Content, quotedNode(text))
	}
	return list
}

// quotedNode returns a text that is never a variable.
func quotedNode(text string) *yaml.Node { return textNode(strings.ReplaceAll(text, "${", "$${")) }
