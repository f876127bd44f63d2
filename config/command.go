package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Command is the document of kind command: how programs run that agents start.
// A configuration has at most one.
//
//	kind: command
//	name: shell
//	readable: [/opt/go]
//	env: {GOFLAGS: -mod=mod}
//	limits: {time: 1m, memory: 1073741824, processes: 64}
type Command struct {
	Name     string
	Open     bool     // sandbox: none; programs run with the rights of this process
	Readable []string // additional directories that programs can read, absolute
	Env      []string // additional environment variables, as NAME=value
	Limits   CommandLimits
	Pos      Pos
}

// CommandLimits limits one command. A zero field is not set.
type CommandLimits struct {
	Time      time.Duration
	Memory    int64 // bytes
	Processes int
	FileSize  int64 // bytes of one written file
	Scratch   int64 // bytes in /tmp
	Output    int   // bytes kept of stdout, and as many of stderr
}

// The largest limits that a document may set.
const (
	maxCommandBytes = 1 << 50
	maxOutput       = 1 << 20 // because a model reads the output
)

// readCommand reads the document of kind command.
func readCommand(it docItem) {
	command := Command{Name: it.name, Pos: it.pos}
	it.fields(
		field{"sandbox", sandboxField(&command.Open)},
		field{"readable", directoryList(&command.Readable)},
		field{"env", envList(&command.Env)},
		field{"limits", commandLimitsField(&command.Limits)},
	)
	to := &it.doc.config.Command
	if to.Pos != (Pos{}) {
		it.fail(fmt.Sprintf("duplicate command; the first is at %s", to.Pos), "a configuration has at most one")
		return
	}
	*to = command
}

// commandLimitsField reads the limits of commands.
func commandLimitsField(to *CommandLimits) func(value) {
	return mappingField(
		field{"time", durationField(&to.Time, maxTimeout)},
		field{"memory", boundedInt(&to.Memory, maxCommandBytes)},
		field{"processes", countField(&to.Processes)},
		field{"fileSize", boundedInt(&to.FileSize, maxCommandBytes)},
		field{"scratch", boundedInt(&to.Scratch, maxCommandBytes)},
		field{"output", func(v value) {
			var n int64
			boundedInt(&n, maxOutput)(v)
			to.Output = int(n)
		}},
	)
}

// sandboxField reads os or none and sets open for none.
func sandboxField(open *bool) func(value) {
	return func(v value) {
		switch word, ok := v.text(); {
		case !ok:
		case word == "none":
			*open = true
		case word != "os":
			v.failType("os or none", "os isolates programs; none gives them all rights of this process")
		}
	}
}

// directoryList reads a list of directories, relative to the document, and makes
// them absolute.
func directoryList(to *[]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of directories", "for example [/opt/go]")
			return
		}
		for _, item := range v.items() {
			path, ok := item.nonEmpty()
			if !ok {
				continue
			}
			if !filepath.IsAbs(path) {
				path = filepath.Join(filepath.Dir(v.doc.src.path), path)
			}
			path, err := filepath.Abs(path)
			if err != nil {
				item.fail(err.Error(), "")
				continue
			}
			*to = append(*to, path)
		}
	}
}

// envList reads a mapping of variable names to texts into a list of NAME=value.
func envList(to *[]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
			v.failType("a mapping of variables", "for example {GOFLAGS: -mod=mod}")
			return
		}
		for key, val := range v.pairs() {
			name := key.node.Value
			if name == "" || strings.ContainsAny(name, "=\x00") {
				key.fail("is not a valid variable name", "")
				continue
			}
			if text, ok := val.text(); ok {
				*to = append(*to, name+"="+text)
			}
		}
	}
}
