package config_test

import (
	"bytes"
	"strings"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// archive is a txtar file: a comment, then files, each after a line
// "-- name --".
type archive struct {
	comment string
	files   []yamldoc.File
}

func parseArchive(data []byte) archive {
	var a archive
	for line := range bytes.Lines(data) {
		name, isHeader := strings.CutPrefix(string(line), "-- ")
		if name, ok := strings.CutSuffix(name, " --\n"); ok && isHeader {
			a.files = append(a.files, yamldoc.File{Path: name})
			continue
		}
		if last := len(a.files) - 1; last >= 0 {
			a.files[last].Data = append(a.files[last].Data, line...)
			continue
		}
		a.comment += string(line)
	}
	return a
}

func (a archive) format() []byte {
	b := []byte(a.comment)
	for _, f := range a.files {
		b = append(b, "-- "+f.Path+" --\n"...)
		b = append(b, f.Data...)
	}
	return b
}
