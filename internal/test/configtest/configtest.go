// Package configtest checks in tests how packages that read configurations report
// errors:
//
//	_, err := config.ReadFiles(files, nil)
//	list := configtest.WantRejected(t, text, err)
package configtest

import (
	"errors"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// DeclaredTool declares the tool a and its source db. Tests append fields of the tool.
const DeclaredTool = `{kind: source, name: db, type: sqlite, database: x.db}
---
kind: tool
name: a
type: sqlite-sql
source: db
description: d
statement: SELECT 1
`

// WantRejected returns the errors in err, with which text must have been rejected.
func WantRejected(t testing.TB, text string, err error) yamldoc.Errors {
	t.Helper()
	list, ok := errors.AsType[yamldoc.Errors](err)
	if !ok {
		t.Fatalf("%.80q was not rejected: error %v", text, err)
	}
	return list
}

// WantPositions checks that err has errors of a configuration, the file org.yaml in
// its text and a bounded length.
func WantPositions(t testing.TB, err error) {
	t.Helper()
	list, ok := errors.AsType[yamldoc.Errors](err)
	if !ok || len(list) == 0 || errcode.CodeOf(err) != errcode.InvalidConfig {
		t.Fatalf("got %v (%s), want errors of a configuration", err, errcode.CodeOf(err))
	}
	if text := err.Error(); !strings.Contains(text, "org.yaml") || len(text) > 100_000 {
		t.Errorf("got %.500q, %d bytes", text, len(text))
	}
}
