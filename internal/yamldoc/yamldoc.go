// Package yamldoc reads YAML documents strictly and reports errors with their
// positions.
//
//	docs, src := yamldoc.NewReader(os.LookupEnv), yamldoc.NewFileText(file)
//	for node, err := range src.ParseDocuments() {
//		d := docs.NewDocument(src)
//		if d.CheckStructure(node.Content[0]) {
//			root := d.ValueOf(node.Content[0], "")
//			root.ReadFields(yamldoc.Fields{"name": yamldoc.TextField(&name)})
//		}
//	}
//	err := docs.ListErrors()
//
// A [Value] is a node with its position and path. Its methods and the functions that return a
// func(Value) read it into a Go value. Or they add an [Error] with file, line, column and excerpt
// to the [Reader]. Reading goes on after an error, so that all errors are reported at once.
// Excerpts and messages show no secrets.
//
// Scalars may contain variables, ${NAME} or ${NAME:default}, which are substituted
// after parsing. Secrets may also contain ${file:PATH}, the content of a file, which
// [Reader.ReadSecret] reads. The size of files, their nesting and what their aliases expand to are
// bounded.
//
// The package does not open files and does not know kinds of documents. Package docset, which is
// built on it, reads documents by their kind.
package yamldoc

import "fmt"

// Env looks up an environment variable, as os.LookupEnv does. A nil Env has no
// variables.
type Env func(name string) (value string, ok bool)

// File is one file as it was read, so that it can be recorded and read again without
// access to the disk.
type File struct {
	Path  string `json:"path"`
	Data  []byte `json:"data"`
	Named bool   `json:"named,omitempty"` // a file that a document names, such as a model's script; not a document itself
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

// MaxFileSize is the largest size of a document file, or of a file that a document
// names, in bytes.
const MaxFileSize = 10 << 20

// ErrTooLarge is the error for a file that is larger than MaxFileSize.
var ErrTooLarge = fmt.Errorf("has more than %d MiB", MaxFileSize>>20)
