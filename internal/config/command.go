package config

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/rolecall/rolecall/internal/yamldoc"
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
	Pos      yamldoc.Pos
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
func readCommand(it item) {
	command := Command{Name: it.Name, Pos: it.Pos}
	it.ReadFields(yamldoc.Fields{
		"sandbox":  sandboxField(&command.Open),
		"readable": directoryList(&command.Readable),
		"env":      yamldoc.FileAllowed(envList(&command.Env)),
		"limits":   commandLimitsField(&command.Limits),
	})
	to := &it.r.config.Command
	if to.Pos != (yamldoc.Pos{}) {
		it.AddError(fmt.Sprintf("duplicate command; the first is at %s", to.Pos), "a configuration has at most one")
		return
	}
	*to = command
}

// commandLimitsField reads the limits of commands.
func commandLimitsField(to *CommandLimits) func(yamldoc.Value) {
	return yamldoc.MappingField(yamldoc.Fields{
		"time":      yamldoc.DurationField(&to.Time, maxTimeout),
		"memory":    yamldoc.Int64Field(&to.Memory, maxCommandBytes),
		"processes": yamldoc.CountField(&to.Processes),
		"fileSize":  yamldoc.Int64Field(&to.FileSize, maxCommandBytes),
		"scratch":   yamldoc.Int64Field(&to.Scratch, maxCommandBytes),
		"output": func(v yamldoc.Value) {
			var n int64
			yamldoc.Int64Field(&n, maxOutput)(v)
			to.Output = int(n)
		},
	})
}

// sandboxField reads os or none and sets open for none.
func sandboxField(open *bool) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		switch word, ok := v.ReadText(); {
		case !ok:
		case word == "none":
			*open = true
		case word != "os":
			v.AddTypeError("os or none", "os isolates programs; none lets them use all rights of this process")
		}
	}
}

// directoryList reads a list of directories, relative to the document, and makes
// them absolute.
func directoryList(to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsList() {
			v.AddTypeError("a list of directories", "for example [/opt/go]")
			return
		}
		for _, item := range v.ListItems() {
			path, ok := item.ReadNonEmpty()
			if !ok {
				continue
			}
			path, err := filepath.Abs(v.FilePath(path))
			if err != nil {
				item.AddError(err.Error(), "")
				continue
			}
			*to = append(*to, path)
		}
	}
}

// envList reads a mapping of variable names to texts into a list of NAME=value.
func envList(to *[]string) func(yamldoc.Value) {
	return func(v yamldoc.Value) {
		if !v.IsMapping() {
			v.AddTypeError("a mapping of variables", "for example {GOFLAGS: -mod=mod}")
			return
		}
		for key, val := range v.MapPairs() {
			name := key.Node.Value
			if name == "" || strings.ContainsAny(name, "=\x00") {
				key.AddError("is not a valid variable name", "")
				continue
			}
			if text, ok := val.ReadText(); ok {
				*to = append(*to, name+"="+text)
			}
		}
	}
}
