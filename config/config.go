// Package config owns the declarative files: YAML documents with kind, name
// and, where a kind has several, type.
//
// Load reads them from disk, Read from a record of them:
//
//	cfg, err := config.Load([]string{"org.yaml", "roles.d"}, os.LookupEnv)
//
// Both are strict and report everything that is wrong at once, as Errors with
// file, line, column and excerpt. Who knows more than the files say (which
// tool groups exist, whether a script compiles) adds to that list with
// Config.Fault and Join.
//
// What MCP Toolbox declares (sources, tools, toolsets, prompts, auth services) is read in
// its three spellings, mixed as one likes; Migrate writes the first two in the
// third. Reload reads again only what has changed of thousands of tools.
//
// A document has no effect here: the package builds no role, no model and no
// group, it only says what the files ask for. A new kind is one entry in kinds,
// a new type of model one in modelTypes. A key is read from a variable and is a
// Secret, which prints as ***.
package config

import (
	"errors"
	"fmt"
)

// Env looks a variable up; os.LookupEnv is one. A nil Env has no variables.
type Env func(name string) (value string, ok bool)

// File is one file as it was read. A record of Config.Files is enough to Read
// the same configuration again, without the disk.
type File struct {
	Path     string `json:"path"`
	Data     []byte `json:"data"`
	Included bool   `json:"named,omitempty"` // named by a document (a model's script), itself no document
}

// Config is what the files ask for, in the order of files and documents.
type Config struct {
	Organization Organization // the zero Organization when no document describes it
	Network      Network      // the zero Network when no document describes it
	Command      Command      // the zero Command when no document describes it
	Gateway      Gateway      // the zero Gateway when no document describes it
	Roles        []Role
	Models       []Model
	Modules      []Module
	MCPServers   []MCPServer
	Sources      []Source       `json:",omitempty"`
	Tools        []DeclaredTool `json:",omitempty"`
	Toolsets     []Toolset      `json:",omitempty"`
	Prompts      []Prompt       `json:",omitempty"`
	AuthServices []AuthService  `json:",omitempty"`
	Files        []File         // everything read: documents first, then what they name
}

// Load reads configuration from disk. Each path is a file or a directory; of a
// directory its *.yaml and *.yml files, sorted, without hidden ones and
// subdirectories. A file reached twice is read once.
//
// The error is nil or an Errors. The Config is never nil: beside an error it
// holds what could be read, for further checks, not for use.
func Load(paths []string, env Env) (*Config, error) {
	files, faults := readPaths(paths)
	return loadFiles(files, faults, env)
}

func loadFiles(files []File, faults Errors, env Env) (*Config, error) {
	r := newReader(env, readIncluded)
	r.errs = append(r.errs, faults...)
	r.partial = len(faults) > 0
	return r.read(files)
}

// Read reads configuration from recorded files, as Load leaves them in
// Config.Files. A file that a document names must be among them; the disk is
// not asked. Errors are as of Load.
func Read(files []File, env Env) (*Config, error) {
	var documents []File
	named := make(map[string][]byte)
	for _, f := range files {
		if f.Included {
			named[f.Path] = f.Data
			continue
		}
		documents = append(documents, f)
	}
	r := newReader(env, func(path string) ([]byte, error) {
		if data, ok := named[path]; ok {
			return data, nil
		}
		return nil, errors.New("is not among the recorded files")
	})
	return r.read(documents)
}

// Fault makes an Error about a place in the configuration, with its excerpt.
// Use it for what only the caller can know, and Join to report it.
func (c *Config) Fault(at Pos, field, message, hint string) *Error {
	e := &Error{File: at.File, Line: at.Line, Column: at.Column, Field: field, Message: message, Hint: hint}
	for _, f := range c.Files {
		if f.Path == at.File && !f.Included {
			e.Excerpt = newSource(f).excerpt(at)
			break
		}
	}
	return e
}

// Pos is a place in a file. The zero Pos is nowhere.
type Pos struct {
	File         string
	Line, Column int // from 1, in lines and characters; 0 is unknown
}

// String gives file:line:column, as far as known.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}
