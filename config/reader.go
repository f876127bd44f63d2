package config

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/parameter"
)

// reader carries one Load or Read.
type reader struct {
	config         *Config
	env            Env
	open           func(path string) ([]byte, error) // a file that a document names
	included       map[string][]byte                 // those opened
	kinds          map[string]kind
	toolTypes      []toolType
	names          map[docKey]Pos
	refs           []reference
	tools          []*pendingTool            // declared ones, until all that they name is read
	reused         []int                     // tools of an earlier configuration, among config.Tools
	deferredChecks []func(used models)       // of what only the whole configuration shows
	parameterSets  map[string]*parameter.Set // of parameters that are written alike
	scratch        []byte                    // of prints
	partial        bool                      // something could not be read, so a missing name proves nothing
	errs           Errors
}

// docKey is what a name is unique within.
type docKey struct{ kind, name string }

// reference is a field that names another document.
type reference struct {
	docKey
	at value
}

func newReader(env Env, open func(string) ([]byte, error)) *reader {
	if env == nil {
		env = func(string) (string, bool) { return "", false }
	}
	return &reader{
		config:        new(Config),
		env:           env,
		open:          open,
		included:      make(map[string][]byte),
		kinds:         kindsByName(kinds()),
		toolTypes:     toolTypes(),
		parameterSets: make(map[string]*parameter.Set),
		names:         make(map[docKey]Pos),
	}
}

// read works in three steps: every document by itself, then what they name
// among each other, then the list of errors in reading order.
func (r *reader) read(files []File) (*Config, error) {
	r.config.Files = files
	for _, f := range files {
		r.readFile(newSource(f))
	}
	r.config.Files = append(r.config.Files[:len(files):len(files)], r.includedFiles()...)
	if !r.partial {
		r.checkReferences()
		r.runDeferred()
		r.checkTools()
	}
	return r.config, Join(nil, r.errs...)
}

// readFileModel reads the documents of one file, up to the first that is not YAML.
func (r *reader) readFile(src *source) {
	for doc, fault := range src.documents() {
		if fault != nil {
			r.errs = append(r.errs, fault)
			r.partial = true
			return
		}
		d := newDocument(r, src)
		if root := doc.Content[0]; d.checkStructure(root) {
			d.read(d.value(root, ""))
		}
	}
}

func kindsByName(list []kind) map[string]kind {
	all := make(map[string]kind, len(list))
	for _, k := range list {
		all[k.name] = k
	}
	return all
}

func newDocument(r *reader, src *source) *document {
	return &document{reader: r, src: src, expansions: make(map[*yaml.Node]expansion), digests: make(map[*yaml.Node]string)}
}

// maxErrors is the most errors that are listed; past it somebody loaded
// something that is no configuration.
const maxErrors = 1000

// report lists an error.
func (r *reader) report(at Pos, src *source, field, message, hint string) {
	switch n := len(r.errs); {
	case n < maxErrors:
		r.errs = append(r.errs, src.errorAt(at, field, message, hint))
	case n == maxErrors:
		r.errs = append(r.errs, &Error{File: at.File, Message: fmt.Sprintf("more than %d errors; no others are listed", maxErrors)})
	}
}

// checkReferences refuses references to documents that do not exist.
func (r *reader) checkReferences() {
	for _, ref := range r.refs {
		if _, ok := r.names[ref.docKey]; !ok && len(r.errs) <= maxErrors {
			ref.at.fail(fmt.Sprintf("no %s is named %q", ref.kind, ref.name), r.referenceHint(ref.docKey))
		}
	}
}

func (r *reader) referenceHint(missing docKey) string {
	var known []string
	for d := range r.names {
		if d.kind == missing.kind {
			known = append(known, d.name)
		}
	}
	if len(known) > maxErrors {
		return ""
	}
	if len(known) == 0 {
		return "there is no document of kind " + missing.kind
	}
	return cmp.Or(Suggest(missing.name, known), listHint("there are ", known))
}

// include opens a file that a document names, once.
func (r *reader) include(path string) ([]byte, error) {
	if data, ok := r.included[path]; ok {
		return bytes.Clone(data), nil
	}
	data, err := r.open(path)
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, errTooLarge
	}
	r.included[path] = data
	return bytes.Clone(data), nil
}

func (r *reader) includedFiles() []File {
	var files []File
	for _, path := range slices.Sorted(maps.Keys(r.included)) {
		files = append(files, File{Path: path, Data: r.included[path], Included: true})
	}
	return files
}
