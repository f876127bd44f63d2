package config

import (
	"crypto/sha256"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Reload is Load, which takes from c the tools whose documents stand as they
// stood: a change of one tool in thousands is read in little time. c itself
// stays as it is; errors, and the Config beside one, are Load's.
func (c *Config) Reload(paths []string, env Env) (*Config, error) {
	files, faults := readPaths(paths)
	if len(faults) == 0 {
		if cfg, ok := c.reloadTools(files, env); ok {
			return cfg, nil
		}
	}
	return loadFiles(files, faults, env)
}

// maxPatched is the most documents that are read by themselves; more are read
// together.
const maxPatched = 64

// reloadTools reads files with the tools of c. It is not ok if that may differ
// from reading all of them, and if anything is wrong with them.
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

// docText is the text of one document, from its marker on.
type docText struct {
	line int // that it begins on
	text string
	sum  [sha256.Size]byte
}

// splitDocuments gives the documents of a file as text. It is not ok for a file that
// cannot be read document by document.
func (s *source) splitDocuments() (list []docText, ok bool) {
	if s.checkText() != nil {
		return nil, false
	}
	begin, line := 0, 1
	cut := func(end, next int) {
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
			cut(start, i+1)
		}
	}
	cut(len(s.text), 0)
	return list, true
}

// isMarker says whether a document begins with the line.
func isMarker(line string) bool {
	rest, ok := strings.CutPrefix(line, "---")
	return ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t')
}

// reusableTool is a tool whose document is known by its text.
type reusableTool struct {
	tool   int // among Config.Tools
	below  int // lines from the beginning of the part to the tool's
	column int
}

// reusableTools gives the tools of c that a document alone makes, by its text.
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
			if count == 1 && c.Tools[first].cacheable && !strings.Contains(p.text, "${") {
				pos := c.Tools[first].Pos
				known[p.sum] = reusableTool{first, pos.Line - p.line, pos.Column}
			}
		}
	}
	return known
}

// reuseTool takes a tool over; whether it is still right finish says.
func (r *reader) reuseTool(t DeclaredTool, at Pos) {
	key := docKey{"tool", t.Name}
	if _, taken := r.names[key]; taken {
		r.invalidate()
	}
	t.Pos, r.names[key] = at, at
	r.reused = append(r.reused, len(r.config.Tools))
	r.config.Tools = append(r.config.Tools, t)
}

// invalidate notes that something is wrong, which a full reading finds and words.
func (r *reader) invalidate() { r.errs = append(r.errs, new(Error)) }

// readPart reads one document of a file.
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
