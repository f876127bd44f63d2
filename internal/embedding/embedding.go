// Package embedding is what the root package and package configured share: how an
// organization is composed that a Go program embeds. It keeps their types out of the API
// of rolecall, and the machinery for configuration files out of programs that read none.
package embedding

import (
	"context"
	"io"
	"log/slog"

	"github.com/rolecall/rolecall/builtin/sandbox"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/runtime"
)

// Options are what a program sets for its organization.
type Options struct {
	Data      string // data directory; "" keeps the organization in memory
	Workspace string
	Model     func(name string) (model.Model, error) // the program's models; "" is its default
	Modules   []modules.Module
	Launcher  *sandbox.Launcher // nil runs no programs
	Console   io.Writer         // nil discards
	Log       *slog.Logger      // not nil
}

// Host is an organization that was composed. Close stops its agents and modules, and
// releases the data directory. It is called once.
type Host struct {
	Runtime *runtime.Runtime
	Close   func() error
}

// Opener composes an organization. The context bounds the start of the modules.
type Opener func(context.Context, Options) (*Host, error)

// ConfigFiles are configuration files with the machinery that reads them. The zero ConfigFiles
// means no files.
type ConfigFiles struct{ open Opener }

// NewConfigFiles returns the files that open reads.
func NewConfigFiles(open Opener) ConfigFiles { return ConfigFiles{open} }

// OpenerOf returns what composes an organization with the files, nil for none.
func OpenerOf(f ConfigFiles) Opener { return f.open }
