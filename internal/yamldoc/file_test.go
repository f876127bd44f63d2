package yamldoc_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// readWithFiles reads documents of two fields: key accepts the content of a file, name
// does not.
func readWithFiles(text string, files map[string]string) (key, name string, err error) {
	docs, src := yamldoc.NewReader(testEnv), yamldoc.NewFileText(yamldoc.File{Path: "conf/org.yaml", Data: []byte(text)})
	docs.ReadSecret = func(path string) (string, error) {
		content, ok := files[path]
		if !ok {
			return "", errors.New("no such file or directory")
		}
		return content, nil
	}
	for node, err := range src.ParseDocuments() {
		if err != nil {
			return "", "", err
		}
		docs.NewDocument(src).ValueOf(node.Content[0], "").ReadFields(yamldoc.Fields{
			"key":  yamldoc.FileAllowed(yamldoc.TextField(&key)),
			"port": yamldoc.FileAllowed(yamldoc.PortField(new(int))),
			"name": yamldoc.NonEmptyField(&name),
		})
	}
	return key, name, docs.ListErrors()
}

func TestFileAllowed_SubstitutesContent(t *testing.T) {
	files := map[string]string{"/run/secrets/x": "canary", "conf/near": "beside", "loop": "${file:loop}", "a b:c$": "odd"}
	for text, want := range map[string]string{
		"key: ${file:/run/secrets/x}":                 "canary",
		"key: Bearer ${file:/run/secrets/x}, ${NAME}": "Bearer canary, analyst",
		"key: ${file:near}":                           "beside",
		"key: ${file:./near}":                         "beside",
		"key: ${file:../loop}":                        "${file:loop}",
		"key: '${file:../a b:c$}'":                    "odd",
		"key: $${file:near}":                          "${file:near}",
		"key: ${FILE:near}":                           "near",
	} {
		if key, _, err := readWithFiles(text, files); key != want || err != nil {
			t.Errorf("%s: got %q, %v, want %q", text, key, err, want)
		}
	}
}

// No error shows the content of a file, and fields that do not accept a file reject it.
func TestFileAllowed_ReportsErrors(t *testing.T) {
	files := map[string]string{"conf/x": "canary", "conf/number": "70000canary"}
	const rejected = "must not have the content of a file (${file:PATH} is for secrets and addresses, such as apiKey, password, headers, env and settings)"
	for text, want := range map[string]string{
		"key: ${file:gone}":               `conf/org.yaml:1:6: key: file "conf/gone": no such file or directory (a file is named relative to its document)`,
		"key: a ${file:gone} b":           `conf/org.yaml:1:8: key: file "conf/gone": no such file or directory (a file is named relative to its document)`,
		"key: ${file}":                    "conf/org.yaml:1:6: key: ${file:PATH} has no path (write ${file:/run/secrets/NAME}; file is not the name of a variable)",
		"key: '${file:}'":                 "conf/org.yaml:1:7: key: ${file:PATH} has no path (write ${file:/run/secrets/NAME}; file is not the name of a variable)",
		"key: ${file:${NAME}}":            "conf/org.yaml:1:6: key: the path of a file contains a variable; variables do not nest",
		"port: ${file:number}":            "conf/org.yaml:1:7: port: is not valid with the content of its file (the content is not shown)",
		"name: ${file:x}":                 "conf/org.yaml:1:7: name: " + rejected,
		"{key: &a '${file:x}', name: *a}": "conf/org.yaml:1:29: name: " + rejected,
	} {
		_, name, err := readWithFiles(text, files)
		list, ok := errors.AsType[yamldoc.Errors](err)
		if !ok || len(list) != 1 || name != "" {
			t.Errorf("%s: got %q, %v", text, name, err)
			continue
		}
		if line, _, _ := strings.Cut(list[0].Error(), "\n"); line != want {
			t.Errorf("%s:\ngot  %s\nwant %s", text, line, want)
		}
		if strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the content is shown: %v", text, err)
		}
	}
}

// A Reader without ReadSecret opens no files.
func TestFileAllowed_NeedsReader(t *testing.T) {
	if _, err := readEnv("key: ${file:/etc/hostname}", testEnv); err == nil || !strings.Contains(err.Error(), "must not have the content of a file") {
		t.Errorf("got %v", err)
	}
}
