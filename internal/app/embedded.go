package app

import (
	"context"
	"errors"
	"os"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/embedding"
)

// OpenEmbedded composes the application for a Go program, with configuration files. The
// error has the code InvalidConfig if a file is wrong; then no new data directory is left.
func OpenEmbedded(ctx context.Context, files []string, o embedding.Options) (*embedding.Host, error) {
	if o.Data == "" {
		return nil, errcode.New(errcode.InvalidConfig, "open an organization with configuration files: Options.Data is missing")
	}
	a, err := Open(Options{
		Data: o.Data, Workspace: o.Workspace, Files: files, Env: os.LookupEnv, Launcher: o.Launcher, Models: o.Model,
		Console: o.Console, Log: o.Log, Fatal: func(err error) { o.Log.Error("store stopped", "error", err) },
	})
	if err != nil {
		return nil, err
	}
	if err := a.configure(ctx, o); err != nil {
		a.DiscardUnused()
		return nil, errors.Join(err, a.Close())
	}
	return &embedding.Host{Runtime: a.Runtime, Close: a.Close}, nil
}

// configure loads the modules of the program, whose groups the files may name, and applies
// the files.
func (a *App) configure(ctx context.Context, o embedding.Options) error {
	for _, m := range o.Modules {
		if err := a.loader.LoadModule(ctx, m); err != nil {
			return err
		}
	}
	cfg, err := config.LoadFiles(a.options.Files, a.options.Env)
	hasModel := func(ch *configChange) error {
		if ch.models.has("") {
			return nil
		}
		_, err := o.Model("")
		return err
	}
	if err := a.applyConfig(ctx, cfg, err, orgConfig(cfg), hasModel); err != nil {
		return errcode.Wrap(errcode.InvalidConfig, err, "the configuration files are wrong: %s", err)
	}
	for _, note := range a.ListNotes() {
		a.options.Warn.Warn(note)
	}
	return nil
}
