// Package config reads configuration files: YAML documents with a kind, a name
// and, for kinds that have several, a type.
//
// [LoadFiles] reads files from disk, [ReadFiles] reads recorded files:
//
//	cfg, err := config.LoadFiles([]string{"org.yaml", "roles.d"}, os.LookupEnv)
//
// Both are strict: unknown fields, duplicates and references to missing
// documents are errors. They report all errors at once, as [yamldoc.Errors] with
// file, line, column and excerpt. Some callers can check more, such as whether a tool
// group exists or a script compiles. They add errors with [Config.ErrorAt] and
// [yamldoc.JoinErrors].
//
// The documents of MCP Toolbox are read by package toolboxfile into
// Config.Declarations. [Config.ReloadFiles] reads only the tools that changed. So a
// change of one tool in thousands is fast.
//
// The package returns declarations only. It creates no role, no model and no
// tool group, it opens no database and runs no command. API keys are read from
// environment variables and files into a [yamldoc.Secret], which prints as ***.
//
// To add a kind, add an entry to kinds; to add a provider of models, one to
// catalog.ListProviders.
package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// Config is the content of the files. Lists are in the order of files and
// documents.
type Config struct {
	Organization             Organization // zero if there is no such document
	Network                  Network      // zero if there is no such document
	Command                  Command      // zero if there is no such document
	Gateway                  Gateway      // zero if there is no such document
	Oversight                Oversight    `json:",omitzero"` // zero if there is no such document
	Roles                    []Role
	Models                   []Model
	Modules                  []Module
	MCPServers               []MCPServer
	Workspaces               []Workspace    `json:",omitempty"` // with a name, also those that a field declares
	Triggers                 []Trigger      `json:",omitempty"`
	Brokers                  []Broker       `json:",omitempty"`
	Notifications            []Notification `json:",omitempty"`
	toolboxfile.Declarations                // sources, tools, toolsets, prompts, auth services and tool services
	Files                    []yamldoc.File // all files read except secret ones: first the documents, then the files they name
	SecretFiles              []SecretFile   // files named as ${file:PATH}, sorted by path
	Items                    []Item         `json:"-"` // that were read in addition to Files
}

// LoadFiles reads configuration from disk. Each path is a file or a directory. Of a
// directory it reads the *.yaml and *.yml files, sorted by name, without hidden
// files and subdirectories. It reads a file once, even if several paths lead to
// it. A path prebuilt:NAME is a file of package toolboxfile.
//
// The error is nil or a yamldoc.Errors. The Config is never nil: with an error it
// contains what could be read, which is for further checks only.
func LoadFiles(paths []string, env yamldoc.Env) (*Config, error) {
	files, errs := readPaths(paths)
	return finishLoad(files, errs, env)
}

// finishLoad reads the documents in files and adds errs, the errors of opening
// them.
func finishLoad(files []yamldoc.File, errs yamldoc.Errors, env yamldoc.Env) (*Config, error) {
	r := newReader(env, readIncluded)
	r.docs.AddErrors(errs...)
	r.partial = len(errs) > 0
	return r.read(files, nil)
}

// ReadFiles reads configuration from recorded files, as LoadFiles returns them
// in Config.Files. A file that a document names must be among them. ReadFiles reads
// only secret files from disk, which are never recorded. It returns the same errors as
// LoadFiles.
func ReadFiles(files []yamldoc.File, env yamldoc.Env) (*Config, error) {
	documents, open := recordedFiles(files)
	return newReader(env, open).read(documents, nil)
}

// recordedFiles returns the documents among recorded files, and a function that opens the others.
func recordedFiles(files []yamldoc.File) (documents []yamldoc.File, open func(string) ([]byte, error)) {
	named := make(map[string][]byte)
	for _, f := range files {
		if f.Named {
			named[f.Path] = f.Data
			continue
		}
		documents = append(documents, f)
	}
	return documents, func(path string) ([]byte, error) {
		if data, ok := named[path]; ok {
			return data, nil
		}
		return nil, errors.New("is not among the recorded files")
	}
}

// Digest identifies the contents of the configuration's files, whatever directory they are
// in. It does not depend on variables.
func (c *Config) Digest() string {
	h := sha256.New()
	for _, f := range c.Files {
		fmt.Fprintf(h, "%t %q %d\n", f.Named, filepath.Base(f.Path), len(f.Data))
		h.Write(f.Data)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// ErrorAt returns an Error for a position in the configuration, with its excerpt.
// It is for checks that only the caller can make. yamldoc.JoinErrors adds the Error to
// the errors of LoadFiles or ReadFiles.
func (c *Config) ErrorAt(at yamldoc.Pos, field, message, hint string) *yamldoc.Error {
	src := new(yamldoc.FileText)
	for _, f := range c.Files {
		if f.Path == at.File && !f.Named {
			src = yamldoc.NewFileText(f)
			break
		}
	}
	for _, i := range c.Items {
		if i.Path() == at.File {
			src = yamldoc.NewFileText(yamldoc.File{Path: at.File, Data: []byte(i.Text)})
		}
	}
	return src.ErrorAt(at, field, message, hint)
}
