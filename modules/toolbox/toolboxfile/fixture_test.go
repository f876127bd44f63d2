package toolboxfile_test

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rolecall/rolecall/internal/test/configtest"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/internal/yamldoc/docset"
	"github.com/rolecall/rolecall/modules/toolbox/parameter"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// readFiles reads the documents of Toolbox in files.
func readFiles(files []yamldoc.File, env yamldoc.Env) (*toolboxfile.Declarations, error) {
	docs, to := yamldoc.NewReader(env), new(toolboxfile.Declarations)
	set := docset.NewSet(docs)
	reader := toolboxfile.NewReader(docs, set, to)
	for _, f := range files {
		src := yamldoc.NewFileText(f)
		for node, err := range src.ParseDocuments() {
			if err != nil {
				docs.AddErrors(err)
				return to, docs.ListErrors()
			}
			if d := docs.NewDocument(src); d.CheckStructure(node.Content[0]) {
				set.ReadDocument(d.ValueOf(node.Content[0], ""))
			}
		}
	}
	set.CheckReferences()
	reader.CheckTools()
	return to, docs.ListErrors()
}

// read reads text as the only file, org.yaml, with the variables of testEnv.
func read(t *testing.T, text string) (*toolboxfile.Declarations, error) {
	t.Helper()
	return readFiles([]yamldoc.File{{Path: "org.yaml", Data: []byte(text)}}, testEnv)
}

// testEnv is the environment of all tests.
func testEnv(name string) (string, bool) {
	value, ok := map[string]string{"NAME": "analyst", "NUMBER": "42", "EMPTY": "", "SECRET": "s3cret"}[name]
	return value, ok
}

// wantRejected returns the errors of a text that must be rejected.
func wantRejected(t *testing.T, text string) yamldoc.Errors {
	t.Helper()
	_, err := read(t, text)
	return configtest.WantRejected(t, text, err)
}

// sameDeclarations compares declarations. Sets of parameters are equal if their schemas
// and manifests are.
func sameDeclarations() cmp.Options {
	return cmp.Options{
		cmpopts.IgnoreUnexported(toolboxfile.DeclaredTool{}), // whether it can be reused
		cmp.Comparer(func(a, b *parameter.Set) bool {
			return a == b || a != nil && b != nil && bytes.Equal(a.Schema(), b.Schema()) && bytes.Equal(a.Manifest(), b.Manifest())
		}),
	}
}
