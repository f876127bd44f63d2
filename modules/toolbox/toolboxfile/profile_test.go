package toolboxfile_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// compatFile is a file whose source has a profile, after its tools.
const compatFile = `{kind: tool, name: one, type: sqlite-sql, source: db, description: d, statement: "SELECT ?1, ?2", parameters: [
 {name: code, type: string, description: d, allowedValues: [%s], excludedValues: ["X(Y)"]},
 {name: plain, type: string, description: d, allowedValues: [a.b, "/[0-9]+/", "^z+$"]},
 {name: list, type: array, description: d, items: {name: i, type: string, description: d, allowedValues: ["b|c"]}}]}
---
{kind: source, name: db, type: sqlite, database: x.db, %s}
`

// With profile: compat an entry that Toolbox matches anywhere matches whole values. Whatever it
// accepts, Toolbox accepts too. excludedValues stay as they are: they match anywhere.
func TestProfile_CompatAnchorsAllowedValues(t *testing.T) {
	d, err := read(t, fmt.Sprintf(compatFile, `"[A-Z]{2}", "(?i)ok", "x$|^y", "^half"`, "profile: compat"))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`org.yaml:1:1: tool "one", parameter "code": allowedValues match whole values only, not a part of a value as in Toolbox`,
		`org.yaml:1:1: tool "one", parameter "list": allowedValues match whole values only, not a part of a value as in Toolbox`,
	}
	if diff := cmp.Diff(want, d.ListAnchored()); diff != "" {
		t.Errorf("warnings (-want +got):\n%s", diff)
	}
	set := d.Tools[0].Parameters
	accepts := func(code, plain, list string) bool {
		args, _ := json.Marshal(map[string]any{"code": code, "plain": plain, "list": []string{list}})
		_, err := set.ParseArguments(args, nil, nil)
		return err == nil
	}
	for code, want := range map[string]bool{
		"AB": true, "OK": true, "ok": true, "x": true, "y": true, "half": true,
		"ABC": false, "aAB": false, "AB\n": false, "oks": false, "wx": false, "yz": false, "halfway": false, "[A-Z]{2}": false, "": false, "XY": false, "aXYb": false,
	} {
		if got := accepts(code, "a.b", "b"); got != want {
			t.Errorf("%q: accepted %v", code, got)
		}
	}
	for plain, want := range map[string]bool{"a.b": true, "axb": false, "12": true, "zz": true, "1z": false} {
		if got := accepts("AB", plain, "c"); got != want {
			t.Errorf("%q: accepted %v", plain, got)
		}
	}
	if accepts("AB", "a.b", "bc") {
		t.Error("an element is accepted that matches in part")
	}
}

// Without the profile such an entry is rejected, and so is one that is no expression.
func TestProfile_StrictRejectsAmbiguousValues(t *testing.T) {
	for _, profile := range []string{"readOnly: true", "profile: strict"} {
		errs := wantRejected(t, fmt.Sprintf(compatFile, `"[A-Z]{2}"`, profile))
		if !strings.Contains(errs.Error(), "neither between slashes nor written from ^ to $") {
			t.Errorf("%s: %v", profile, errs)
		}
	}
	for _, entry := range []string{`"[A-Z"`, `"a)|(b"`} {
		errs := wantRejected(t, fmt.Sprintf(compatFile, entry, "profile: compat"))
		if !strings.Contains(errs.Error(), "is not a regular expression") {
			t.Errorf("%s: %v", entry, errs)
		}
	}
	wantRejected(t, fmt.Sprintf(compatFile, "a", "profile: loose"))
}
