package yamldoc

import (
	"crypto/sha256"
	"strings"

	"go.yaml.in/yaml/v4"
)

// DocumentText is the text of one document, beginning with its "---" line.
type DocumentText struct {
	Line int // first line, from 1
	Text string
	Sum  [sha256.Size]byte // SHA-256 of Text
}

// SplitDocuments returns the documents of a file as text. It returns false for a
// file whose documents depend on each other, because of directives or "...".
func (f *FileText) SplitDocuments() (list []DocumentText, ok bool) {
	if f.checkText() != nil {
		return nil, false
	}
	begin, line := 0, 1
	add := func(end, next int) {
		if text := f.Text[begin:end]; strings.TrimSpace(text) != "" {
			list = append(list, DocumentText{line, text, sha256.Sum256([]byte(text))})
		}
		begin, line = end, next
	}
	for i, start := range f.LineStarts() {
		switch {
		case strings.HasPrefix(f.Text[start:], "%") || strings.HasPrefix(f.Text[start:], "..."):
			return nil, false
		case start > 0 && isMarker(f.LineText(i+1)):
			add(start, i+1)
		}
	}
	add(len(f.Text), 0)
	return list, true
}

// isMarker reports whether a document begins at the line.
func isMarker(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// ParseDocument parses the document. It returns nil for an empty one. Positions are positions in
// the file: the text is padded with empty lines.
func (d DocumentText) ParseDocument() (*yaml.Node, error) {
	text := strings.Repeat("\n", d.Line-1) + d.Text
	loader, err := yaml.NewLoader(strings.NewReader(text), parserLimits())
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		return nil, err
	}
	if isEmpty(&doc) {
		return nil, nil
	}
	return &doc, nil
}
