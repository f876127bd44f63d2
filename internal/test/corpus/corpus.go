// Package corpus owns the collections of hostile and odd input that tests of
// several packages hold against their doors: documents, strings, paths.
// testdata/README.md names their sources. Only tests import it.
package corpus

import (
	"bytes"
	"embed"
	"encoding/json"
)

//go:embed testdata
var files embed.FS

// What a parser of JSON has to say to a Document.
const (
	Accept = "accept"
	Reject = "reject"
	Either = "either"
)

// Document is a case of JSONTestSuite.
type Document struct {
	Name   string
	Expect string // Accept, Reject or Either
	Text   []byte `json:"b64"`
}

// Documents lists the cases of JSONTestSuite.
func Documents() []Document { return rows[Document]("json_test_suite.jsonl") }

// NaughtyStrings lists the strings that break programs, the empty one first.
func NaughtyStrings() []string { return decode[[]string](read("blns.json")) }

// Paths lists strings that lead out of a directory when they are taken for
// paths.
func Paths() []string {
	var paths []string
	for _, row := range rows[struct{ V string }]("path_traversal.jsonl") {
		paths = append(paths, row.V)
	}
	return paths
}

// rows decodes a file of one value a line.
func rows[T any](name string) []T {
	var list []T
	for line := range bytes.Lines(read(name)) {
		list = append(list, decode[T](line))
	}
	return list
}

// read gives a file of the package; its files are part of the program.
func read(name string) []byte {
	data, err := files.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	return data
}

func decode[T any](text []byte) T {
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		panic(err)
	}
	return v
}
