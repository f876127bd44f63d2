package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"go.yaml.in/yaml/v4"
)

// Command is the one document about programs that agents run.
type Command struct {
	Name     string
	Open     bool     // sandbox: none; programs have the rights of the process that runs them
	Readable []string // further directories that programs can read, absolute
	Env      []string // further variables of programs, as NAME=value
	Limits   CommandLimits
	Pos      Pos
}

// CommandLimits bounds one command. A zero limit is not set.
type CommandLimits struct {
	Time      time.Duration
	Memory    int64 // bytes
	Processes int
	FileSize  int64 // bytes of a file written
	Scratch   int64 // bytes in /tmp
	Output    int   // bytes kept of stdout, and of stderr
}

// The most that a configuration may allow.
const (
	maxCommandBytes = 1 << 50
	maxOutput       = 1 << 20 // a model reads it
)

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
		it.fail(fmt.Sprintf("a second command; the first is at %s", to.Pos), "a configuration has one")
		return
	}
	*to = command
}

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

// sandboxField reads os or none.
func sandboxField(open *bool) func(value) {
	return func(v value) {
		switch word, ok := v.text(); {
		case !ok:
		case word == "none":
			*open = true
		case word != "os":
			v.failType("os or none", "os isolates programs; none lets them do all that this process may do")
		}
	}
}

// directoryList reads a list of directories, relative to the document.
func directoryList(to *[]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.SequenceNode || !hasTag(v, "!!seq") {
			v.failType("a list of directories", "as [/opt/go]")
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

// envList reads a mapping of names to texts.
func envList(to *[]string) func(value) {
	return func(v value) {
		if v.node.Kind != yaml.MappingNode || !hasTag(v, "!!map") {
			v.failType("a mapping of variables", "as {GOFLAGS: -mod=mod}")
			return
		}
		for key, val := range v.pairs() {
			name := key.node.Value
			if name == "" || strings.ContainsAny(name, "=\x00") {
				key.fail("is no name of a variable", "")
				continue
			}
			if text, ok := val.text(); ok {
				*to = append(*to, name+"="+text)
			}
		}
	}
}
