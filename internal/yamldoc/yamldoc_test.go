package yamldoc_test

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rolecall/rolecall/internal/test/configtest"
	"github.com/rolecall/rolecall/internal/yamldoc"
)

// record is what the documents of these tests are read into.
type record struct {
	Kind, Name, Prompt string
	Groups             []string
	Count              int
	Port               int
	Bool               bool
	Wait               time.Duration
	Texts              map[string]string
	Key                yamldoc.Secret
	From               yamldoc.SecretSource
	Headers            map[string]yamldoc.Secret
	URL                string
	Settings           string
	Nested             struct{ A int64 }
}

// fields returns the fields of a record.
func (r *record) fields() yamldoc.Fields {
	return yamldoc.Fields{
		"kind":       yamldoc.TextField(&r.Kind),
		"name":       yamldoc.NonEmptyField(&r.Name),
		"prompt":     yamldoc.ScalarField(&r.Prompt),
		"toolGroups": yamldoc.NameList(&r.Groups, "groups"),
		"count":      yamldoc.IntField(&r.Count, 10),
		"port":       yamldoc.PortField(&r.Port),
		"bool":       yamldoc.BoolField(&r.Bool),
		"wait":       yamldoc.DurationField(&r.Wait, time.Minute),
		"texts":      yamldoc.TextMap(&r.Texts),
		"key":        yamldoc.SecretField(&r.Key, &r.From),
		"headers":    yamldoc.SecretMap(&r.Headers, yamldoc.CheckHeaderName),
		"url":        yamldoc.ServerURL(&r.URL),
		"settings":   func(v yamldoc.Value) { r.Settings = string(v.ReadSettings()) },
		"nested":     yamldoc.MappingField(yamldoc.Fields{"a": yamldoc.Int64Field(&r.Nested.A, 5)}),
		"later":      nil,
	}
}

// readEnv reads the documents of text into records.
func readEnv(text string, env yamldoc.Env) ([]record, error) {
	docs, src := yamldoc.NewReader(env), yamldoc.NewFileText(yamldoc.File{Path: "org.yaml", Data: []byte(text)})
	var list []record
	for node, err := range src.ParseDocuments() {
		if err != nil {
			docs.AddErrors(err)
			break
		}
		d := docs.NewDocument(src)
		if !d.CheckStructure(node.Content[0]) {
			continue
		}
		var r record
		if root := d.ValueOf(node.Content[0], ""); root.IsMapping() {
			root.ReadFields(r.fields())
		} else {
			root.AddTypeError("a mapping", "")
		}
		list = append(list, r)
	}
	return list, docs.ListErrors()
}

// testEnv is the environment of these tests.
func testEnv(name string) (string, bool) {
	value, ok := map[string]string{"NAME": "analyst", "PORT": "80", "YES": "true", "MY_KEY": " sk-1\n", "EMPTY": ""}[name]
	return value, ok
}

// wantRejected returns the errors of a text that must be rejected.
func wantRejected(t *testing.T, text string) yamldoc.Errors {
	t.Helper()
	_, err := readEnv(text, testEnv)
	return configtest.WantRejected(t, text, err)
}

func TestValue_ReadFields(t *testing.T) {
	for text, want := range map[string]record{
		"name: ${NAME}":                       {Name: "analyst"},
		"name: $${NAME}":                      {Name: "${NAME}"},
		"name: '${GONE:x}y'":                  {Name: "xy"},
		"prompt: 1.50":                        {Prompt: "1.50"},
		"toolGroups: [a, 'b']":                {Groups: []string{"a", "b"}},
		"count: 10":                           {Count: 10},
		"count: '${GONE:7}'":                  {Count: 7},
		"port: '${PORT}'":                     {Port: 80},
		`port: "443"`:                         {Port: 443},
		"bool: ${YES}":                        {Bool: true},
		"wait: 1m":                            {Wait: time.Minute},
		"texts: {a: 1, b: '${NAME}'}":         {Texts: map[string]string{"a": "1", "b": "analyst"}},
		"key: ${MY_KEY}":                      {Key: "sk-1", From: yamldoc.SecretSource{Variable: "MY_KEY"}},
		"key: ${GONE}":                        {From: yamldoc.SecretSource{Variable: "GONE"}},
		"headers: {x-a: b}":                   {Headers: map[string]yamldoc.Secret{"X-A": "b"}},
		"url: https://a.example/b":            {URL: "https://a.example/b"},
		"settings: {a: [1, true, '${NAME}']}": {Settings: `{"a":[1,true,"analyst"]}`},
		"nested: &n {a: 5}":                   {Nested: struct{ A int64 }{5}},
	} {
		got, err := readEnv(text, testEnv)
		if err != nil || len(got) != 1 {
			t.Errorf("%s: %v, %v", text, got, err)
			continue
		}
		if diff := cmp.Diff(want, got[0]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// Errors have the position and path of the value, and name no secret.
func TestValue_ReportsErrors(t *testing.T) {
	for text, want := range map[string]string{
		"name: 5":                       `org.yaml:1:7: name: must be text, not the number 5 (write "5")`,
		"name: ''":                      "org.yaml:1:7: name: must not be empty",
		"name:":                         "org.yaml:1:6: name: has no value; it must be text",
		"name: ${GONE}":                 "org.yaml:1:7: name: variable GONE is not set (set it, or write ${GONE:default})",
		"nmae: a":                       `org.yaml:1:1: nmae: unknown field (did you mean "name"?)`,
		"later: 1":                      "org.yaml:1:1: later: not available in this version",
		"toolGroups: [a, a]":            `org.yaml:1:17: toolGroups[1]: "a" is listed twice`,
		"count: 11":                     "org.yaml:1:8: count: must be a whole number from 1 to 10, not the number 11",
		"port: 0":                       "org.yaml:1:7: port: must be a port from 1 to 65535, not the number 0",
		"bool: yes":                     `org.yaml:1:7: bool: must be true or false, not the text "yes"`,
		"wait: 5":                       "org.yaml:1:7: wait: must be a duration from 1ms to 1m0s, not the number 5 (with its unit, as 30s)",
		"nested: {a: 6}":                "org.yaml:1:13: nested.a: must be a whole number from 1 to 5, not the number 6",
		"key: canary":                   "org.yaml:1:6: key: must be only a variable, because documents are stored with every task (write ${OPENAI_API_KEY}, for example, and set that variable; or ${file:/run/secrets/NAME})",
		"headers: {'a b': canary}":      `org.yaml:1:11: headers."a b": is not a valid header name`,
		"url: https://me:canary@a.test": "org.yaml:1:6: url: contains a password or a fragment (a token is written as auth: {bearer: ${TOKEN}})",
		"name: a\nname: b":              "org.yaml:2:1: name: is a duplicate; the first is at line 1",
		"- a":                           "org.yaml:1:1: must be a mapping, not a list",
	} {
		list := wantRejected(t, text)
		line, _, _ := strings.Cut(list[0].Error(), "\n")
		if len(list) != 1 || line != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, list, want)
		}
		if strings.Contains(list.Error(), "canary") {
			t.Errorf("%s: a secret is shown: %v", text, list)
		}
	}
}

func TestReader_FieldHint(t *testing.T) {
	docs, src := yamldoc.NewReader(nil), yamldoc.NewFileText(yamldoc.File{Data: []byte("nam: a")})
	docs.FieldHint = func(name string) string { return "about " + name }
	for node := range src.ParseDocuments() {
		docs.NewDocument(src).ValueOf(node.Content[0], "").ReadFields(yamldoc.Fields{"name": yamldoc.SkipField})
	}
	if err := docs.ListErrors(); docs.ErrorCount() != 1 || !strings.Contains(err.Error(), "(about nam)") {
		t.Errorf("got %v", err)
	}
}

// The documents of a file, parsed one by one, have the positions they have in the file.
func TestFileText_SplitDocuments(t *testing.T) {
	src := yamldoc.NewFileText(yamldoc.File{Path: "a.yaml", Data: []byte("# a\nname: a\n---\n\n---\n  name: b\n--- {name: c}\n")})
	parts, ok := src.SplitDocuments()
	var lines []int
	for _, p := range parts {
		node, err := p.ParseDocument()
		if err != nil {
			t.Fatal(err)
		}
		if node != nil {
			lines = append(lines, node.Content[0].Line)
		}
	}
	if diff := cmp.Diff([]int{2, 6, 7}, lines); !ok || diff != "" {
		t.Errorf("%v (-want +got):\n%s", ok, diff)
	}
	for _, text := range []string{"%YAML 1.2\n---\na: 1\n", "a: 1\n...\nb: 1\n", "a: \xff"} {
		if _, ok := yamldoc.NewFileText(yamldoc.File{Data: []byte(text)}).SplitDocuments(); ok {
			t.Errorf("%q was split", text)
		}
	}
}

// TestJoinErrors_KeepsOtherErrors checks that Join returns other errors unchanged.
func TestJoinErrors_KeepsOtherErrors(t *testing.T) {
	if err := yamldoc.JoinErrors(nil); err != nil {
		t.Errorf("JoinErrors(nil) = %v", err)
	}
	if err := yamldoc.JoinErrors(os.ErrClosed, &yamldoc.Error{Message: "x"}); err != os.ErrClosed {
		t.Errorf("JoinErrors(other) = %v", err)
	}
}
