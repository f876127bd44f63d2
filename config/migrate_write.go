package config

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/tool"
)

// rewrite makes the documents anew, with all comments above the first.
func (s *v1Splitter) rewrite() (string, bool) {
	var list []docItem
	s.entries(s.root, func(it docItem) bool { list = append(list, it); return true })
	marked := s.first == s.root.node.Line && strings.HasPrefix(s.src.line(s.first), "---")
	ok := s.rewriteDoc(s.first, s.last, list...)
	if marked {
		return "---\n" + s.out.String(), ok
	}
	return s.out.String(), ok
}

// documentOf gives an entry as a document of its own.
func documentOf(it docItem) *yaml.Node {
	v := it.value
	if v.node.Kind == yaml.SequenceNode {
		v = listed(v)
	}
	entry := plainCopy(v.node)
	text := func(s string) *yaml.Node { return &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s} }
	head := []*yaml.Node{text("kind"), text(it.kind), text("name"), text(it.name)}
	return &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: append(head, entry.Content...)}
}

// plainCopy gives a node without aliases, anchors and comments.
func plainCopy(n *yaml.Node) *yaml.Node {
	for n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	c := &yaml.Node{Kind: n.Kind, Style: n.Style, Tag: n.Tag, Value: n.Value}
	for _, child := range n.Content {
		c.Content = append(c.Content, plainCopy(child))
	}
	return c
}

// rewriteDoc writes entries from their values, the comments of their lines above.
func (s *v1Splitter) rewriteDoc(first, last int, list ...docItem) bool {
	for line := first; line < last; line++ {
		s.note(line)
	}
	for _, it := range list {
		text, err := yaml.Dump(documentOf(it), yaml.WithIndent(2))
		if err != nil {
			return false
		}
		s.begin()
		s.out.Write(bytes.TrimPrefix(text, []byte("---\n")))
	}
	return true
}

// spelled writes a name so that it is read as text.
func spelled(name string) string {
	var n yaml.Node
	if tool.CheckName(name) == nil && !strings.HasPrefix(name, "-") && yaml.Load([]byte(name), &n) == nil && len(n.Content) == 1 && n.Content[0].Tag == "!!str" {
		return name
	}
	quoted, _ := json.Marshal(name) // of a string never fails
	return string(quoted)
}
