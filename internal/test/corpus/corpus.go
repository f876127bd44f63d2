// Package corpus contains collections of hostile and unusual input for the tests of
// several packages: JSON documents, strings and paths. testdata/README.md names their
// sources. Only tests import it.
package corpus

import (
	"bytes"
	"embed"
	"encoding/json"
)

//go:embed testdata
var files embed.FS

// What a JSON parser must do with a JSONDocument.
const (
	ExpectAccept = "accept"
	ExpectReject = "reject"
	ExpectEither = "either"
)

// JSONDocument is a case of JSONTestSuite.
type JSONDocument struct {
	Name   string
	Expect string // ExpectAccept, ExpectReject or ExpectEither
	Text   []byte `json:"b64"`
}

// JSONDocuments returns the cases of JSONTestSuite.
func JSONDocuments() []JSONDocument { return decodeLines[JSONDocument]("json_test_suite.jsonl") }

// NaughtyStrings returns strings that break programs, the empty one first.
func NaughtyStrings() []string { return mustDecode[[]string](readFile("blns.json")) }

// TraversalPaths returns strings that lead out of a directory when used as paths.
func TraversalPaths() []string {
	var paths []string
	for _, row := range decodeLines[struct{ V string }]("path_traversal.jsonl") {
		paths = append(paths, row.V)
	}
	return paths
}

// decodeLines decodes a file with one JSON value per line.
func decodeLines[T any](name string) []T {
	var list []T
	for line := range bytes.Lines(readFile(name)) {
		list = append(list, mustDecode[T](line))
	}
	return list
}

// readFile returns an embedded file.
func readFile(name string) []byte {
	data, err := files.ReadFile("testdata/" + name)
	if err != nil {
		panic(err)
	}
	return data
}

func mustDecode[T any](text []byte) T {
	var v T
	if err := json.Unmarshal(text, &v); err != nil {
		panic(err)
	}
	return v
}
