package config

import (
	"bytes"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/internal/yamldoc/docset"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// reader is the state of one LoadFiles, ReadFiles or ReloadFiles. It has the configuration so far,
// and the checks that have to wait until every document is read.
type reader struct {
	docs           *yamldoc.Reader
	set            *docset.Set
	toolbox        *toolboxfile.Reader // reads the documents of MCP Toolbox
	config         *Config
	open           func(path string) ([]byte, error) // reads a file that a document names
	included       map[string][]byte                 // the content of those files, by path
	secrets        secretFiles
	deferredChecks []func(used models) // checks that need the whole configuration
	partial        bool                // a file could not be read, so a missing name is not an error
}

// newReader returns a reader that looks up variables in env and calls open to read
// the files that documents name.
func newReader(env yamldoc.Env, open func(string) ([]byte, error)) *reader {
	docs := yamldoc.NewReader(env)
	r := &reader{
		docs:     docs,
		set:      docset.NewSet(docs),
		config:   new(Config),
		open:     open,
		included: make(map[string][]byte),
		secrets:  make(secretFiles),
	}
	docs.ReadSecret = r.secrets.read
	r.set.AddKinds(r.kinds()...)
	r.toolbox = toolboxfile.NewReader(docs, r.set, &r.config.Declarations)
	return r
}

// read works in three steps: it reads every document by itself, checks the
// references between them, and sorts the errors. If a file could not be read, it
// leaves out the second step: most of its errors would follow from the first. Items are read
// after the files, so that a name or queue of both is a mistake of the item.
func (r *reader) read(files []yamldoc.File, items []Item) (*Config, error) {
	r.config.Files = files
	for _, f := range files {
		r.readFile(yamldoc.NewFileText(f))
	}
	r.recordFiles(files)
	r.readItems(items)
	r.config.setListedPrices()
	if !r.partial {
		r.set.CheckReferences()
		r.runDeferred()
		r.toolbox.CheckNetworks(r.config.Network.PrivateAddresses)
		r.toolbox.CheckTools()
	}
	return r.config, r.docs.ListErrors()
}

// readFile reads the documents of one file, up to the first that is not YAML.
func (r *reader) readFile(src *yamldoc.FileText) {
	for doc, err := range src.ParseDocuments() {
		if err != nil {
			r.docs.AddErrors(err)
			r.partial = true
			return
		}
		r.readDocument(src, doc)
	}
}

// readDocument reads one document of a file.
func (r *reader) readDocument(src *yamldoc.FileText, doc *yaml.Node) {
	d := r.docs.NewDocument(src)
	if root := doc.Content[0]; d.CheckStructure(root) {
		r.set.ReadDocument(d.ValueOf(root, ""))
	}
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
	if len(data) > yamldoc.MaxFileSize {
		return nil, yamldoc.ErrTooLarge
	}
	r.included[path] = data
	return bytes.Clone(data), nil
}

// recordFiles records the files that were read: documents and the files that they name.
func (r *reader) recordFiles(documents []yamldoc.File) {
	r.config.Files = append(documents[:len(documents):len(documents)], r.includedFiles()...)
	r.config.SecretFiles = r.secrets.list()
}

// includedFiles returns the files that documents name, sorted by path.
func (r *reader) includedFiles() []yamldoc.File {
	var files []yamldoc.File
	for _, path := range slices.Sorted(maps.Keys(r.included)) {
		files = append(files, yamldoc.File{Path: path, Data: r.included[path], Named: true})
	}
	return files
}
