package config

import (
	"crypto/sha256"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Reload returns the same configuration and errors as Load, but reuses the tools
// of c whose documents are unchanged. That makes a change of one tool in thousands
// fast. It does not change c.
func (c *Config) Reload(paths []string, env Env) (*Config, error) {
	files, errs := readPaths(paths)
	if len(errs) == 0 {
		if cfg, ok := c.reloadTools(files, env); ok {
			return cfg, nil
		}
	}
	return loadFiles(files, errs, env)
}

// maxPatched is the largest number of changed documents that are read one by one.
// With more changes, Reload reads all files again.
const maxPatched = 64

// reloadTools reads files and reuses the tools of c. It returns false if there is
// an error, or if the result could differ from reading all files again.
//
// It splits the files into the texts of their documents. A document with the text
// of an earlier one that declares a single tool yields that tool, moved to its new
// position. All other documents are read. The checks between documents run as in
// Load, so that a reused tool whose source has changed is still found invalid.
func (c *Config) reloadTools(files []File, env Env) (*Config, bool) {
	known := c.reusableTools()
	if len(known) == 0 {
		return nil, false
	}
	r := newReader(env, readIncluded)
	r.config.Files, r.config.Tools = files, make([]DeclaredTool, 0, len(c.Tools)+1)
	fresh := 0
	for _, f := range files {
		src := newSource(f)
		parts, ok := src.splitDocuments()
		if !ok {
			return nil, false
		}
		for _, p := range parts {
			if old, ok := known[p.sum]; ok {
				r.reuseTool(c.Tools[old.tool], Pos{f.Path, p.line + old.below, old.column})
				continue
			}
			if fresh++; fresh > maxPatched || !r.readPart(src, p) {
				return nil, false
			}
		}
	}
	return r.patchedConfig(files)
}

// patchedConfig checks the configuration after its documents are read. It returns
// false if there are errors.
func (r *reader) patchedConfig(files []File) (*Config, bool) {
	r.config.Files = append(files[:len(files):len(files)], r.includedFiles()...)
	if len(r.config.Tools) == 0 {
		r.config.Tools = nil
	}
	r.checkReferences()
	r.runDeferred()
	r.checkTools()
	return r.config, len(r.errs) == 0
}

// docText is the text of one document, beginning with its "---" line.
type docText struct {
	line int // first line, from 1
	text string
	sum  [sha256.Size]byte
}

// splitDocuments returns the documents of a file as text. It returns false for a
// file whose documents depend on each other, because of directives or "...".
func (s *source) splitDocuments() (list []docText, ok bool) {
	if s.checkText() != nil {
		return nil, false
	}
	begin, line := 0, 1
	add := func(end, next int) {
		if text := s.text[begin:end]; strings.TrimSpace(text) != "" {
			list = append(list, docText{line, text, sha256.Sum256([]byte(text))})
		}
		begin, line = end, next
	}
	for i, start := range s.starts() {
		switch {
		case strings.HasPrefix(s.text[start:], "%") || strings.HasPrefix(s.text[start:], "..."):
			return nil, false
		case start > 0 && isMarker(s.line(i+1)):
			add(start, i+1)
		}
	}
	add(len(s.text), 0)
	return list, true
}

// isMarker reports whether a document begins at the line.
func isMarker(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// reusableTool is a tool that is the only one in its document. Its position is
// relative to the beginning of the document, which may move.
type reusableTool struct {
	tool   int // index in Config.Tools
	below  int // lines from the beginning of the document to the tool
	column int
}

// reusableTools returns the tools of c that can be reused, by the digest of their
// document's text.
func (c *Config) reusableTools() map[[sha256.Size]byte]reusableTool {
	known := make(map[[sha256.Size]byte]reusableTool, len(c.Tools))
	at := 0 // tools are in the order of files and documents
	for _, f := range c.Files {
		if f.Included {
			continue
		}
		parts, ok := newSource(f).splitDocuments()
		if !ok {
			return nil
		}
		for i, p := range parts {
			first, count := at, 0
			for at < len(c.Tools) && c.Tools[at].Pos.File == f.Path && (i+1 == len(parts) || c.Tools[at].Pos.Line < parts[i+1].line) {
				at, count = at+1, count+1
			}
			// The same text has another meaning when a variable changes.
			if count == 1 && c.Tools[first].cacheable && !strings.Contains(p.text, "${") {
				pos := c.Tools[first].Pos
				known[p.sum] = reusableTool{first, pos.Line - p.line, pos.Column}
			}
		}
	}
	return known
}

// reuseTool adds a tool of the earlier configuration. checkTools checks later that
// it is still valid.
func (r *reader) reuseTool(t DeclaredTool, at Pos) {
	key := docKey{"tool", t.Name}
	if _, taken := r.names[key]; taken {
		r.invalidate()
	}
	t.Pos, r.names[key] = at, at
	r.reused = append(r.reused, len(r.config.Tools))
	r.config.Tools = append(r.config.Tools, t)
}

// invalidate aborts the reload with a placeholder error. Reading all files again
// then reports the real one.
func (r *reader) invalidate() { r.errs = append(r.errs, new(Error)) }

// readPart reads one document of a file. It pads the text with empty lines, so
// that positions are those in the file.
func (r *reader) readPart(src *source, p docText) bool {
	text := strings.Repeat("\n", p.line-1) + p.text
	loader, err := yaml.NewLoader(strings.NewReader(text), limits())
	if err != nil {
		return false
	}
	var doc yaml.Node
	if err := loader.Load(&doc); err != nil {
		return false
	}
	if !isEmpty(&doc) {
		d := newDocument(r, src)
		if root := doc.Content[0]; d.checkStructure(root) {
			d.read(d.value(root, ""))
		}
	}
	return len(r.errs) == 0
}
