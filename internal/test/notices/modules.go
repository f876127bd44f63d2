package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// module is a module that go.mod requires.
type module struct {
	Path, Version string
	Indirect      bool
	Dir           string // where it is on disk; "" if it was not downloaded
}

// modules are sorted as in go.mod, by path; the Go standard library is first.
type modules []module

// licence is one file of a module that states its conditions.
type licence struct{ name, text string }

// requirements returns what a go.mod file requires, and the Go standard library, which
// every program contains.
func requirements(file string) (modules, error) {
	var parsed struct{ Require modules }
	if err := goJSON(&parsed, "mod", "edit", "-json", file); err != nil {
		return nil, err
	}
	root, err := goOutput("env", "GOROOT")
	if err != nil {
		return nil, err
	}
	slices.SortFunc(parsed.Require, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return append(modules{{Path: "std", Indirect: true, Dir: strings.TrimSpace(string(root))}}, parsed.Require...), nil
}

// locate sets Dir of the modules. With download it gets those that are missing.
func (list modules) locate(download bool) error {
	command := []string{"list", "-m", "-json"}
	if download {
		command = []string{"mod", "download", "-json"}
	}
	for _, m := range list[1:] {
		command = append(command, m.Path)
	}
	out, err := goOutput(command...)
	if err != nil {
		return err
	}
	dirs := map[string]string{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var m module
		if err := decoder.Decode(&m); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return err
		}
		dirs[m.Path] = m.Dir
	}
	for i := range list[1:] {
		list[i+1].Dir = dirs[list[i+1].Path]
	}
	return nil
}

// licenceName matches the files of a module that a copy of it has to carry.
var licenceName = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([._-].*)?$`)

// licences returns the texts of a module's licence files, sorted by name.
func (m module) licences() ([]licence, error) {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return nil, fmt.Errorf("read the licence of %s: %w", m.Path, err)
	}
	var list []licence
	for _, e := range entries {
		if e.IsDir() || !licenceName.MatchString(e.Name()) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, e.Name()))
		if err != nil {
			return nil, err
		}
		list = append(list, licence{e.Name(), strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))})
	}
	return list, nil
}

// goJSON runs the go command and decodes its output.
func goJSON(into any, args ...string) error {
	out, err := goOutput(args...)
	if err != nil {
		return err
	}
	return json.Unmarshal(out, into)
}

func goOutput(args ...string) ([]byte, error) {
	out, err := exec.Command("go", args...).Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		err = fmt.Errorf("%w: %s", err, e.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("run go %s: %w", args[0], err)
	}
	return out, nil
}
