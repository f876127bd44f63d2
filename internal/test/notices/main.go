// Command notices writes THIRD_PARTY_NOTICES.md: the modules of go.mod and the libraries of the
// web page, with their licences. make notices runs it. It does not judge whether licences fit together.
//
//	go run ./internal/test/notices
package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "notices:", err)
		os.Exit(1)
	}
}

// run writes the notices into the directory of the main module.
func run() error {
	list, err := requirements("go.mod")
	if err != nil {
		return err
	}
	if err := list.locate(true); err != nil {
		return err
	}
	libraries, err := pageLibraries(".")
	if err != nil {
		return err
	}
	text, err := append(list, libraries...).document()
	if err != nil {
		return err
	}
	return os.WriteFile(fileName, []byte(text), 0o644)
}

// fileName is the file with the notices, beside go.mod.
const fileName = "THIRD_PARTY_NOTICES.md"

// document returns the text of the notices. Every module has to be on disk.
func (list modules) document() (string, error) {
	d := &document{numbers: map[string]int{}}
	for _, m := range list {
		texts, err := m.licences()
		err = cmp.Or(err, m.missing(texts))
		if err != nil {
			return "", err
		}
		d.add(m, texts)
	}
	return d.String(), nil
}

// missing returns an error if a module has no licence.
func (m module) missing(texts []licence) error {
	if len(texts) == 0 {
		return errors.New(m.Path + " has no licence file; leave the module out, or ask its authors")
	}
	return nil
}
