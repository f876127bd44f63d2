package toolboxfile

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// v1Splitter makes one document of each entry of a document in the v1 form. It
// moves the comments of sections and names to the document that follows them.
type v1Splitter struct {
	docs     []*yaml.Node
	comments []string // for the head of the next document
}

// split returns one document for each entry of a document in the v1 form, and
// reports what is not a section or an entry.
func (m *migration) split(doc *yaml.Node) []*yaml.Node {
	root := m.document.ValueOf(doc.Content[0], "")
	s, known := new(v1Splitter), sections()
	s.keepComments(root.Node)
	for key, entries := range root.MapPairs() {
		kind, ok := known[key.Node.Value]
		switch {
		case !ok:
			key.AddError("unknown field", "a document has kind and name, or the sections of Toolbox's v1 form")
		case entries.IsNull():
			s.keepComments(key.Node)
		case entries.Node.Kind != yaml.MappingNode:
			entries.AddTypeError("a mapping of names", "")
		default:
			s.section(kind, key, entries)
		}
	}
	if len(s.docs) > 0 {
		s.docs[0].HeadComment = doc.HeadComment
		s.keepFootComment(root.Node)
		s.keepFootComment(doc)
	}
	return s.docs
}

// section adds a document for each entry of a section.
func (s *v1Splitter) section(kind string, key, entries yamldoc.Value) {
	s.keepComments(key.Node)
	s.keepComments(entries.Node)
	for name, entry := range entries.MapPairs() {
		if entry.Node.Kind == yaml.MappingNode || kind == "toolset" && (entry.Node.Kind == yaml.SequenceNode || entry.IsNull()) {
			node := entry.Node
			if key.Node.Value == trustGraphSection {
				node = s.withoutTitle(node)
			}
			s.entry(kind, name.Node, node)
			continue
		}
		entry.AddTypeError("a mapping", "")
	}
	s.keepFootComment(entries.Node)
	s.keepFootComment(key.Node)
}

// withoutTitle returns an entry without its field name, a title that becomes a comment: the
// name of the tool is the key of the entry.
func (s *v1Splitter) withoutTitle(entry *yaml.Node) *yaml.Node {
	c := withoutAliases(entry)
	c.Content = nil
	for pair := range slices.Chunk(entry.Content, 2) {
		if pair[0].Value != "name" {
			c.Content = append(c.Content, pair...)
			continue
		}
		if title := strings.Join(strings.Fields(pair[1].Value), " "); title != "" {
			s.comments = append(s.comments, "# "+title)
		}
	}
	return c
}

// entry adds the document of one entry. A toolset may be a bare list or null.
func (s *v1Splitter) entry(kind string, name, entry *yaml.Node) {
	s.keepComments(name)
	root := withoutAliases(entry)
	switch entry.Kind {
	case yaml.SequenceNode: // the bare list of a toolset
		root = &yaml.Node{Kind: yaml.MappingNode, Content: []*yaml.Node{textNode("tools"), root}}
	case yaml.ScalarNode: // a toolset without a list
		root = &yaml.Node{Kind: yaml.MappingNode}
	}
	if kind == "tool" {
		renameClaims(root)
	}
	if kind != "toolset" {
		renameKey(root, "kind", "type")
	}
	root.Tag, root.Style = "!!map", root.Style&yaml.FlowStyle
	root.Content = append([]*yaml.Node{textNode("kind"), textNode(kind), textNode("name"), textNode(name.Value)}, root.Content...)
	root.HeadComment, s.comments = joinComments(append(s.comments, root.HeadComment)...), nil
	s.docs = append(s.docs, &yaml.Node{Kind: yaml.DocumentNode, Content: []*yaml.Node{root}})
	s.keepFootComment(name)
}

// keepComments adds the comments above and after a node to the next document's head.
func (s *v1Splitter) keepComments(n *yaml.Node) {
	s.comments = append(s.comments, n.HeadComment, n.LineComment)
}

// keepFootComment adds the comment below a node to the foot of the last document.
func (s *v1Splitter) keepFootComment(n *yaml.Node) {
	if len(s.docs) > 0 {
		last := s.docs[len(s.docs)-1]
		last.FootComment = joinComments(last.FootComment, n.FootComment)
	}
}

// joinComments joins comments, one below another.
func joinComments(list ...string) string {
	return strings.Join(slices.DeleteFunc(list, func(s string) bool { return s == "" }), "\n")
}

// textNode returns a scalar that is read as text.
func textNode(text string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: text}
}

// withoutAliases returns a copy of n without anchors, in which every alias is
// replaced by a copy of its target. The copy of a target has no comments, so that
// they are not repeated.
func withoutAliases(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		c := withoutAliases(n.Alias)
		stripComments(c)
		c.HeadComment, c.LineComment, c.FootComment = n.HeadComment, n.LineComment, n.FootComment
		return c
	}
	c := *n
	c.Anchor, c.Content = "", make([]*yaml.Node, len(n.Content))
	for i, child := range n.Content {
		c.Content[i] = withoutAliases(child)
	}
	return &c
}
