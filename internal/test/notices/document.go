package main

import (
	"fmt"
	"strings"
)

// document is the file under construction. A text that several modules share stands in
// it once.
type document struct {
	rows    strings.Builder
	texts   strings.Builder
	numbers map[string]int // of the texts
}

const (
	introduction = `# Third-party notices

The program and its tests contain these modules and libraries, in builds for some platforms and tags only a part of them. Each number is a text
below. ` + "`make notices`" + ` writes this file from go.mod and gateway/ui/vendor.

| module | version | texts |
|---|---|---|
`
	fence = "~~~~~~~~" // no licence contains it
)

// add adds a module with its texts.
func (d *document) add(m module, texts []licence) {
	var links []string
	for _, t := range texts {
		links = append(links, fmt.Sprintf("[%s](#text-%d)", t.name, d.number(t.text)))
	}
	d.rows.WriteString(m.row() + strings.Join(links, ", ") + " |\n")
}

// row begins the row of a module.
func (m module) row() string {
	if m.Path == "std" {
		return "| the Go standard library | | "
	}
	return fmt.Sprintf("| %s | %s | ", m.Path, m.Version)
}

// number returns the number of a text, which is added if it is new.
func (d *document) number(text string) int {
	if n, ok := d.numbers[text]; ok {
		return n
	}
	n := len(d.numbers) + 1
	d.numbers[text] = n
	fmt.Fprintf(&d.texts, "\n## Text %d\n\n%s\n%s\n%s\n", n, fence, text, fence)
	return n
}

// String returns the file.
func (d *document) String() string { return introduction + d.rows.String() + d.texts.String() }
