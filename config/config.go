// Package config reads configuration files: YAML documents with a kind, a name
// and, for kinds that have several, a type.
//
// [Load] reads files from disk, [Read] reads recorded ones:
//
//	cfg, err := config.Load([]string{"org.yaml", "roles.d"}, os.LookupEnv)
//
// Both are strict: unknown fields, duplicates and references to missing
// documents are errors. They report all errors at once, as [Errors] with file,
// line, column and excerpt. Callers that can check more, such as whether a tool
// group exists or a script compiles, add errors with [Config.Fault] and [Join].
//
// The documents of MCP Toolbox (sources, tools, toolsets, prompts, auth services)
// are read in its three spellings, which may be mixed in one file. [Migrate]
// rewrites the two older spellings in the current one. [Config.Reload] reads only
// the tools that changed, which makes a change of one tool in thousands fast.
//
// The package returns declarations only. It creates no role, no model and no
// tool group, and it opens no database. API keys are read from environment
// variables into a [Secret], which prints as ***.
//
// To add a kind, add an entry to kinds; to add a type of model, one to
// modelTypes.
package config

import (
	"errors"
	"fmt"
)

// Env looks up an environment variable, as os.LookupEnv does. A nil Env has no
// variables.
type Env func(name string) (value string, ok bool)

// File is one file as it was read. Read returns the same configuration again for
// the recorded Config.Files, without access to the disk.
type File struct {
	Path     string `json:"path"`
	Data     []byte `json:"data"`
	Included bool   `json:"named,omitempty"` // a file that a document names, such as a model's script; not a document itself
}

// Config is the content of the files. Lists are in the order of files and
// documents.
type Config struct {
	Organization Organization // zero if there is no such document
	Network      Network      // zero if there is no such document
	Command      Command      // zero if there is no such document
	Gateway      Gateway      // zero if there is no such document
	Roles        []Role
	Models       []Model
	Modules      []Module
	MCPServers   []MCPServer
	Sources      []Source       `json:",omitempty"`
	Tools        []DeclaredTool `json:",omitempty"`
	Toolsets     []Toolset      `json:",omitempty"`
	Prompts      []Prompt       `json:",omitempty"`
	AuthServices []AuthService  `json:",omitempty"`
	Files        []File         // all files read: first the documents, then the files they name
}

// Load reads configuration from disk. Each path is a file or a directory. Of a
// directory it reads the *.yaml and *.yml files, sorted by name, without hidden
// files and subdirectories. It reads a file once, even if several paths lead to
// it.
//
// The error is nil or an Errors. The Config is never nil: with an error it
// contains what could be read, which is for further checks only.
func Load(paths []string, env Env) (*Config, error) {
	files, errs := readPaths(paths)
	return loadFiles(files, errs, env)
}

// loadFiles reads the documents in files and adds errs, the errors of opening
// them.
func loadFiles(files []File, errs Errors, env Env) (*Config, error) {
	r := newReader(env, readIncluded)
	r.errs = append(r.errs, errs...)
	r.partial = len(errs) > 0
	return r.read(files)
}

// Read reads configuration from recorded files, as Load returns them in
// Config.Files. A file that a document names must be among them; Read does not
// access the disk. It returns the same errors as Load.
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

// Fault returns an Error for a position in the configuration, with its excerpt.
// It is for checks that only the caller can make; Join adds the Error to those of
// Load or Read.
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

// Pos is a position in a file. The zero Pos is unknown.
type Pos struct {
	File         string
	Line, Column int // counted from 1, Column in characters; 0 is unknown
}

// String returns file:line:column, or only the file if the line is unknown.
func (p Pos) String() string {
	if p.Line == 0 {
		return p.File
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}
