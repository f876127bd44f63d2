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

// reader is the state of one Load, Read or Reload: the configuration so far, and
// the checks that have to wait until every document is read.
type reader struct {
	config         *Config
	env            Env
	open           func(path string) ([]byte, error) // reads a file that a document names
	included       map[string][]byte                 // the content of those files, by path
	kinds          map[string]kind
	toolTypes      []toolType
	names          map[docKey]Pos            // of all documents, for duplicates and references
	refs           []reference               // checked when all documents are read
	tools          []*pendingTool            // declared tools that wait for the sources and services they name
	reused         []int                     // indexes in config.Tools of tools from an earlier configuration
	deferredChecks []func(used models)       // checks that need the whole configuration
	parameterSets  map[string]*parameter.Set // compiled sets, shared by tools with the same parameters
	scratch        []byte                    // buffer for fingerprints
	partial        bool                      // a file could not be read, so a missing name is not an error
	errs           Errors
}

// docKey identifies a document: names are unique within a kind.
type docKey struct{ kind, name string }

// reference is a field that names another document, and its position.
type reference struct {
	docKey
	at value
}

// newReader returns a reader that looks up variables in env and calls open to read
// the files that documents name.
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

// read works in three steps: it reads every document by itself, checks the
// references between them, and sorts the errors. If a file could not be read, it
// leaves out the second step: most of its errors would follow from the first.
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

// readFile reads the documents of one file, up to the first that is not YAML.
func (r *reader) readFile(src *source) {
	for doc, err := range src.documents() {
		if err != nil {
			r.errs = append(r.errs, err)
			r.partial = true
			return
		}
		d := newDocument(r, src)
		if root := doc.Content[0]; d.checkStructure(root) {
			d.read(d.value(root, ""))
		}
	}
}

// kindsByName returns the kinds by name.
func kindsByName(list []kind) map[string]kind {
	all := make(map[string]kind, len(list))
	for _, k := range list {
		all[k.name] = k
	}
	return all
}

// newDocument returns the state of reading a document of src.
func newDocument(r *reader, src *source) *document {
	return &document{reader: r, src: src, expansions: make(map[*yaml.Node]expansion), digests: make(map[*yaml.Node]string)}
}

// maxErrors is the largest number of errors that are listed. A file with more is
// most likely not a configuration.
const maxErrors = 1000

// report adds an error. After maxErrors it adds one that says so, and then none.
func (r *reader) report(at Pos, src *source, field, message, hint string) {
	switch n := len(r.errs); {
	case n < maxErrors:
		r.errs = append(r.errs, src.errorAt(at, field, message, hint))
	case n == maxErrors:
		r.errs = append(r.errs, &Error{File: at.File, Message: fmt.Sprintf("more than %d errors; the rest is not listed", maxErrors)})
	}
}

// checkReferences reports references to documents that do not exist.
func (r *reader) checkReferences() {
	for _, ref := range r.refs {
		if _, ok := r.names[ref.docKey]; !ok && len(r.errs) <= maxErrors {
			ref.at.fail(fmt.Sprintf("no %s is named %q", ref.kind, ref.name), r.referenceHint(ref.docKey))
		}
	}
}

// referenceHint suggests an existing document instead of a missing one.
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

// include returns the content of a file that a document names. It opens a file
// once.
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

// includedFiles returns the files that documents name, sorted by path.
func (r *reader) includedFiles() []File {
	var files []File
	for _, path := range slices.Sorted(maps.Keys(r.included)) {
		files = append(files, File{Path: path, Data: r.included[path], Included: true})
	}
	return files
}
