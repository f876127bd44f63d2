package config

import (
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// ReloadFiles returns the same configuration and errors as LoadFiles, but reuses the tools
// of c whose documents are unchanged. That makes a change of one tool in thousands
// fast. It does not change c.
func (c *Config) ReloadFiles(paths []string, env yamldoc.Env) (*Config, error) {
	files, errs := readPaths(paths)
	if len(errs) == 0 {
		if cfg, ok := c.reloadTools(files, env); ok {
			return cfg, nil
		}
	}
	return finishLoad(files, errs, env)
}

// maxPatched is the largest number of changed documents that are read one by one.
// With more changes, ReloadFiles reads all files again.
const maxPatched = 64

// reloadTools reads files and reuses the tools of c. It returns false if there is
// an error, or if the result could differ from reading all files again.
//
// It splits the files into the texts of their documents. An earlier document that
// declares a single tool may have the same text. Then the document yields that
// tool, moved to its new position. All other documents are read. The checks between
// documents run as in LoadFiles, so that a reused tool whose source has changed is
// still found invalid.
func (c *Config) reloadTools(files []yamldoc.File, env yamldoc.Env) (*Config, bool) {
	cache := toolboxfile.NewToolCache(c.Files, c.Tools)
	if cache.IsEmpty() {
		return nil, false
	}
	r := newReader(env, readIncluded)
	r.config.Files, r.config.Tools = files, make([]toolboxfile.DeclaredTool, 0, len(c.Tools)+1)
	fresh := 0
	for _, f := range files {
		src := yamldoc.NewFileText(f)
		parts, ok := src.SplitDocuments()
		if !ok {
			return nil, false
		}
		for _, p := range parts {
			if r.toolbox.ReuseTool(cache, f.Path, p) {
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
func (r *reader) patchedConfig(files []yamldoc.File) (*Config, bool) {
	r.recordFiles(files)
	if len(r.config.Tools) == 0 {
		r.config.Tools = nil
	}
	r.set.CheckReferences()
	r.runDeferred()
	r.toolbox.CheckNetworks(r.config.Network.PrivateAddresses)
	valid := r.toolbox.CheckTools()
	return r.config, valid && r.docs.ErrorCount() == 0
}

// readPart reads one document of a file. It returns false if there is an error.
func (r *reader) readPart(src *yamldoc.FileText, p yamldoc.DocumentText) bool {
	doc, err := p.ParseDocument()
	if err != nil {
		return false
	}
	if doc != nil {
		r.readDocument(src, doc)
	}
	return r.docs.ErrorCount() == 0
}
