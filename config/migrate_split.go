package config

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// split gives data with a document for each entry of the v1 form. It moves
// lines; where that would not do, as an alias leads from one entry to another,
// it writes the document anew.
func split(data []byte) ([]byte, error) {
	want, err := decodedValues(data)
	if err != nil {
		return nil, err
	}
	for _, write := range []func(*v1Splitter) (string, bool){(*v1Splitter).moveOrRewrite, (*v1Splitter).rewrite} {
		m, err := newMigration(data)
		if err != nil {
			return nil, err
		}
		out, ok := m.split(write)
		if got, err := decodedValues(out); ok && err == nil && slices.Equal(got, want) && m.keepsComments(out) {
			return out, nil
		}
	}
	return nil, Errors{{Line: 1, Column: 1, Message: errChanged.Error(), Hint: "write documents with kind, name and type by hand"}}
}

// keepsComments says whether every comment is in the text that was made.
func (m *migration) keepsComments(out []byte) bool {
	other, err := newMigration(out)
	if err != nil {
		return false
	}
	left := map[string]int{}
	for _, at := range other.comments() {
		left[strings.TrimSpace(other.src.text[at.start:at.end])]++
	}
	for _, at := range m.comments() {
		text := strings.TrimSpace(m.src.text[at.start:at.end])
		if left[text]--; left[text] < 0 {
			return false
		}
	}
	return true
}

// split gives the text with what write makes of each document in the v1 form.
func (m *migration) split(write func(*v1Splitter) (string, bool)) (out []byte, ok bool) {
	var edits []edit
	ends, comments := m.markers(), m.comments()
	for _, root := range m.roots {
		if _, ok := root.child("kind"); ok {
			continue
		}
		s := &v1Splitter{migration: m, root: root, comments: comments}
		s.first, s.last = m.lines(root, ends)
		text, ok := write(s)
		if !ok {
			return nil, false
		}
		edits = append(edits, edit{m.startOf(s.first), m.startOf(s.last), text})
	}
	if edits == nil {
		return []byte(m.src.text), true
	}
	return apply(m.src.text, edits), true
}

// markers are the lines that begin or end a document.
func (m *migration) markers() (lines []int) {
	for i := range m.src.starts() {
		line := m.src.line(i + 1)
		if head, _, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " "); head == "---" || head == "..." {
			lines = append(lines, i+1)
		}
	}
	return lines
}

// lines gives the lines of a document: from first up to but not last.
func (m *migration) lines(root value, markers []int) (first, last int) {
	first, last = 1, len(m.src.starts())+1
	for _, line := range markers {
		switch {
		case line < root.node.Line:
			first = line + 1
		case line == root.node.Line: // it begins behind the marker
			first = line
		default:
			return first, line
		}
	}
	return first, last
}

// startOf is where a line begins; the end of the text for the one after it.
func (m *migration) startOf(line int) int {
	if starts := m.src.starts(); line <= len(starts) {
		return starts[line-1]
	}
	return len(m.src.text)
}

// v1Splitter makes documents of one in the v1 form.
type v1Splitter struct {
	*migration
	root        value
	comments    map[int]span
	first, last int // lines: from first up to but not last

	out             strings.Builder
	pendingComments []string // comments for the next document
	any             bool     // a document is written
}

// moveOrRewrite moves lines if they stand so that they can be moved.
func (s *v1Splitter) moveOrRewrite() (string, bool) {
	fresh := *s
	if text, ok := s.move(); ok {
		return text, true
	}
	return fresh.rewrite()
}

// move makes the documents out of the lines of their entries.
func (s *v1Splitter) move() (string, bool) {
	heads := s.keys()
	if heads == nil || heads[0].line < s.first {
		return "", false
	}
	s.pendingComments = s.slice(s.first, heads[0].line)
	for i, h := range heads {
		end := s.last
		if i+1 < len(heads) {
			end = heads[i+1].line
		}
		if end <= h.line {
			return "", false
		}
		body := s.bodyEnd(h.line+1, end)
		if i+1 == len(heads) {
			body = end // what stands last stays
		}
		if !s.entry(h, body) {
			return "", false
		}
		s.pendingComments = append(s.pendingComments, s.slice(body, end)...)
	}
	s.out.WriteString(strings.Join(s.pendingComments, ""))
	return s.out.String(), true
}

// entryKey is the key of a section or, with a kind, of an entry.
type entryKey struct {
	line       int
	kind       string
	key, value *yaml.Node
}

// keys gives the keys in the order of lines; nil if they stand in braces. A
// section in braces, or behind an anchor or a tag, is one head with all its
// entries.
func (s *v1Splitter) keys() (list []entryKey) {
	known := sections()
	if s.root.node.Style&yaml.FlowStyle != 0 {
		return nil
	}
	for section := range slices.Chunk(s.root.node.Content, 2) {
		kind, h := known[section[0].Value], entryKey{line: section[0].Line, key: section[0], value: section[1]}
		block := inBlock(section[1])
		if list = append(list, h); section[1].Tag == "!!null" || !block {
			continue
		}
		for entry := range slices.Chunk(section[1].Content, 2) {
			list = append(list, entryKey{entry[0].Line, kind, entry[0], entry[1]})
		}
	}
	return list
}

// inBlock says whether a collection is in block style, without anchor and tag.
func inBlock(n *yaml.Node) bool {
	return n.Kind != yaml.AliasNode && n.Style&(yaml.FlowStyle|yaml.TaggedStyle) == 0 && n.Anchor == ""
}

// slice gives lines with their ends.
func (s *v1Splitter) slice(first, last int) (lines []string) {
	for line := first; line < last; line++ {
		lines = append(lines, s.src.text[s.startOf(line):s.startOf(line+1)])
	}
	return lines
}

// bodyEnd gives the line after the last of an entry: comments before the next
// key are that one's.
func (s *v1Splitter) bodyEnd(first, last int) int {
	end := last
	for line := last - 1; line >= first; line-- {
		text := s.src.line(line)
		at, comment := s.comments[line]
		switch {
		case comment && strings.TrimSpace(s.src.text[s.startOf(line):at.start]) == "":
			end = line
		case strings.TrimSpace(text) != "":
			return end
		}
	}
	return end
}

// entry writes one document, or a section in braces, with the lines up to last.
func (s *v1Splitter) entry(h entryKey, last int) bool {
	if h.kind == "" {
		return s.section(h, last)
	}
	it := docItem{value: s.value(h.value, ""), kind: h.kind, name: h.key.Value, entry: true}
	rest, ok := s.rest(h)
	flow, below := h.value.Style&yaml.FlowStyle != 0, h.value.Line > h.line
	switch {
	case !ok || h.value.Kind == yaml.AliasNode || h.value.Anchor != "" || h.value.Style&yaml.TaggedStyle != 0:
		return s.rewriteDoc(h.line, last, it)
	case h.value.Kind == yaml.MappingNode && flow:
		if below {
			s.note(h.line)
		}
		s.begin()
		s.flowMapping(h, last)
	case h.value.Kind == yaml.SequenceNode && flow && !below:
		s.writeHeader(h)
		s.out.WriteString("tools:" + rest)
		s.body(h.line+1, last, h.key.Column-1, "")
	case h.value.Kind == yaml.MappingNode && below:
		s.note(h.line)
		s.writeHeader(h)
		s.body(h.line+1, last, h.value.Column-1, "")
	case h.value.Kind == yaml.SequenceNode && below && !flow:
		s.note(h.line)
		s.writeHeader(h)
		s.out.WriteString("tools:\n")
		s.body(h.line+1, last, h.value.Column-1, "  ")
	default:
		return s.rewriteDoc(h.line, last, it)
	}
	return true
}

// section keeps the comments of a section, whose entries follow, or writes
// those that stand in braces.
func (s *v1Splitter) section(h entryKey, last int) bool {
	if h.value.Tag == "!!null" || inBlock(h.value) {
		s.note(h.line)
		s.pendingComments = append(s.pendingComments, s.slice(h.line+1, last)...)
		return true
	}
	var list []docItem
	root := s.root
	root.node = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map", Content: []*yaml.Node{h.key, h.value}}
	s.entries(root, func(it docItem) bool { list = append(list, it); return true })
	return s.rewriteDoc(h.line, last, list...)
}

// rest gives what stands after the colon of a key, with the end of the line.
func (s *v1Splitter) rest(h entryKey) (string, bool) {
	start := s.offset(h.key)
	raw := rawWord(s.src.text[start:], h.key.Value)
	rest := strings.TrimLeft(s.src.text[start+raw:s.startOf(h.line+1)], " ")
	after, ok := strings.CutPrefix(rest, ":")
	return after, ok && raw > 0
}

// note keeps the comment of a line for the next document.
func (s *v1Splitter) note(line int) {
	if at, ok := s.comments[line]; ok {
		s.pendingComments = append(s.pendingComments, s.src.text[at.start:at.end]+"\n")
	}
}

// begin ends the document before and writes the comments of the next.
func (s *v1Splitter) begin() {
	if s.any {
		if text := s.out.String(); !strings.HasSuffix(text, "\n") {
			s.out.WriteString("\n")
		}
		s.out.WriteString("---\n")
		for len(s.pendingComments) > 0 && strings.TrimSpace(s.pendingComments[0]) == "" {
			s.pendingComments = s.pendingComments[1:]
		}
	}
	for _, line := range s.pendingComments {
		s.out.WriteString(strings.TrimLeft(line, " \t"))
	}
	s.any, s.pendingComments = true, nil
}

// writeHeader begins a document with its kind and name.
func (s *v1Splitter) writeHeader(h entryKey) {
	s.begin()
	s.out.WriteString("kind: " + h.kind + "\nname: " + spelled(h.key.Value) + "\n")
}

// flowMapping writes an entry that stands in braces.
func (s *v1Splitter) flowMapping(h entryKey, last int) {
	start := s.offset(h.value)
	s.out.WriteString("{kind: " + h.kind + ", name: " + spelled(h.key.Value))
	if len(h.value.Content) > 0 {
		s.out.WriteString(", ")
	}
	s.out.WriteString(s.src.text[start+1 : s.startOf(last)])
}

// body writes lines with less indent, after a new one.
func (s *v1Splitter) body(first, last, indent int, before string) {
	for _, line := range s.slice(first, last) {
		n := 0
		for n < indent && n < len(line) && line[n] == ' ' {
			n++
		}
		if n == indent && strings.TrimSpace(line) != "" {
			s.out.WriteString(before)
		}
		s.out.WriteString(line[n:])
	}
}
