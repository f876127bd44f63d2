package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Every mutated package compiles. A mutation that does not would be noticed by its build error
// alone, and only when make soak runs it.
func TestMutations_Compile(t *testing.T) {
	if testing.Short() {
		t.Skip("it checks the types of whole packages; make check runs this test")
	}
	byDir := map[string][]mutation{}
	for _, m := range mutations {
		dir := "./" + filepath.Dir(m.file)
		byDir[dir] = append(byDir[dir], m)
	}
	packages := listPackages(t, byDir)
	for dir, list := range byDir {
		t.Run(dir, func(t *testing.T) {
			p := packages.parse(t, dir)
			for len(list) > 0 {
				batch, texts, rest := compatible(list)
				if len(batch) == 0 {
					t.Fatalf("%s: its text does not occur once in %s", rest[0].name, rest[0].file)
				}
				list = rest
				if p.check(texts) == nil {
					continue
				}
				for _, m := range batch {
					_, alone, _ := compatible([]mutation{m})
					if err := p.check(alone); err != nil {
						t.Errorf("%s: %v", m.name, err)
					}
				}
			}
		})
	}
}

// A mutation that does not compile is noticed.
func TestCompile_RejectsUnknownName(t *testing.T) {
	_, broken, _ := compatible([]mutation{{name: "none", file: "internal/failurelog/failurelog.go", old: "perSender: linesPerSender", new: "perSender: none"}})
	p := listPackages(t, map[string][]mutation{"./internal/failurelog": nil}).parse(t, "./internal/failurelog")
	if err := p.check(nil); err != nil {
		t.Errorf("without a mutation: %v", err)
	}
	if err := p.check(broken); err == nil || !strings.Contains(err.Error(), "undefined: none") {
		t.Errorf("got %v", err)
	}
}

// compatible splits mutations of one package: those of batch apply together, and texts has the files with
// them, by name from the root.
func compatible(list []mutation) (batch []mutation, texts map[string]string, rest []mutation) {
	texts = map[string]string{}
	for _, m := range list {
		text, ok := texts[m.file]
		if !ok {
			data, _ := os.ReadFile(filepath.Join(root, m.file)) // without the file no text of it is found
			text = string(data)
		}
		if strings.Count(text, m.old) != 1 {
			rest = append(rest, m)
			continue
		}
		texts[m.file] = strings.Replace(text, m.old, m.new, 1)
		batch = append(batch, m)
	}
	return batch, texts, rest
}

// packageList has what go list says of packages and of what they import.
type packageList struct {
	files  *token.FileSet
	byDir  map[string]listedPackage
	export map[string]string // files with the types of packages, by import path
}

type listedPackage struct {
	ImportPath, Dir, Export string
	GoFiles                 []string
}

// listPackages lists the packages of directories.
func listPackages(t *testing.T, byDir map[string][]mutation) packageList {
	t.Helper()
	args := []string{"list", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles"}
	for dir := range byDir {
		args = append(args, dir)
	}
	cmd := exec.Command("go", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	l := packageList{token.NewFileSet(), map[string]listedPackage{}, map[string]string{}}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listedPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return l
		} else if err != nil {
			t.Fatal(err)
		}
		l.byDir[p.Dir], l.export[p.ImportPath] = p, p.Export
	}
}

// parsedPackage is a package whose types are checked with mutations.
type parsedPackage struct {
	list  packageList
	path  string
	types types.Importer
	files map[string]*ast.File // by the name of the file, from the root
}

// parse parses the files of a package.
func (l packageList) parse(t *testing.T, dir string) parsedPackage {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(root, dir))
	if err != nil {
		t.Fatal(err)
	}
	listed := l.byDir[abs]
	p := parsedPackage{l, listed.ImportPath, importer.ForCompiler(l.files, "gc", func(path string) (io.ReadCloser, error) { return os.Open(l.export[path]) }), map[string]*ast.File{}}
	for _, name := range listed.GoFiles {
		file, err := parser.ParseFile(l.files, filepath.Join(abs, name), nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		p.files[filepath.Join(dir, name)] = file
	}
	return p
}

// check checks the types of the package with other texts of some files.
func (p parsedPackage) check(texts map[string]string) error {
	var files []*ast.File
	for name, file := range p.files {
		if text, ok := texts[name]; ok {
			mutated, err := parser.ParseFile(p.list.files, name, text, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			file = mutated
		}
		files = append(files, file)
	}
	_, err := (&types.Config{Importer: p.types, GoVersion: "go1.26"}).Check(p.path, p.list.files, files, nil)
	return err
}
