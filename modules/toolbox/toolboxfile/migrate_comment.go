package toolboxfile

import (
	"strings"

	"go.yaml.in/yaml/v4"
)

// span is a part of a text, as offsets of bytes.
type span struct{ start, end int }

// comments returns the comments of the file, each from the # to the end of its
// line. It searches the text, because the YAML parser drops some of them: a #
// begins a comment unless it is in a scalar.
func (m *migration) comments() (found []string) {
	var scalars []span
	for _, doc := range m.docs {
		scalars = m.scalarSpans(doc.Content[0], -1, scalars)
	}
	text := m.src.Text
	for i, start := range m.src.LineStarts() {
		end := start + len(m.src.LineText(i+1))
		for at := start; at < end; at++ {
			for len(scalars) > 0 && scalars[0].end <= at {
				scalars = scalars[1:]
			}
			if len(scalars) > 0 && scalars[0].start <= at {
				at = min(scalars[0].end, end) - 1
				continue
			}
			if text[at] == '#' && (at == start || text[at-1] == ' ' || text[at-1] == '\t') {
				found = append(found, strings.TrimSpace(text[at:end]))
				break
			}
		}
	}
	return found
}

// offset returns where a node begins in the text.
func (m *migration) offset(n *yaml.Node) int {
	return m.src.OffsetAt(n.Line, n.Column)
}

// scalarSpans appends the spans of the scalars at and below n, in order. It leaves
// out plain scalars, which cannot contain a comment's #. indent is the indentation
// of the collection that n is in.
func (m *migration) scalarSpans(n *yaml.Node, indent int, list []span) []span {
	switch {
	case n.Kind == yaml.AliasNode:
		return list
	case n.Kind != yaml.ScalarNode:
		if n.Style&yaml.FlowStyle == 0 {
			indent = n.Column - 1
		}
		for _, child := range n.Content {
			list = m.scalarSpans(child, indent, list)
		}
		return list
	case n.Style&yaml.DoubleQuotedStyle != 0:
		return append(list, m.quotedSpan(n, '"'))
	case n.Style&yaml.SingleQuotedStyle != 0:
		return append(list, m.quotedSpan(n, '\''))
	case n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) != 0:
		return append(list, m.blockSpan(n, indent))
	}
	return list
}

// quotedSpan returns the span of a quoted scalar.
func (m *migration) quotedSpan(n *yaml.Node, quote byte) span {
	text, start := m.src.Text, m.offset(n)
	open := start + max(strings.IndexByte(text[start:], quote), 0)
	for at := open + 1; at < len(text); at++ {
		switch {
		case quote == '"' && text[at] == '\\':
			at++
		case quote == '\'' && text[at] == quote && strings.HasPrefix(text[at+1:], "'"):
			at++
		case text[at] == quote:
			return span{start, at + 1}
		}
	}
	return span{start, len(text)}
}

// blockSpan returns the span of the lines of a block scalar. Its header gives its indentation, or
// else its first line.
func (m *migration) blockSpan(n *yaml.Node, indent int) span {
	head := m.src.Text[m.offset(n):]
	head = head[:len(firstLine(head))]
	need := -1
	if at := strings.IndexAny(head, "|>"); at >= 0 {
		for _, c := range head[at+1 : min(at+3, len(head))] {
			if c >= '1' && c <= '9' {
				need = max(indent, 0) + int(c-'0')
			}
		}
	}
	line := n.Line + 1
	for ; line <= len(m.src.LineStarts()); line++ {
		text := m.src.LineText(line)
		deep := len(text) - len(strings.TrimLeft(text, " "))
		if strings.TrimSpace(text) == "" {
			continue
		}
		if need < 0 {
			need = max(deep, indent+1)
		}
		if deep < need {
			break
		}
	}
	starts := m.src.LineStarts()
	last := len(m.src.Text)
	if line <= len(starts) {
		last = starts[line-1]
	}
	first := len(m.src.Text)
	if n.Line < len(starts) {
		first = starts[n.Line]
	}
	return span{first, max(first, last)}
}

// firstLine returns text up to its first line break.
func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
