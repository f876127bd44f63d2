package cmd

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"time"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/app"
	"github.com/rolecall/rolecall/model"
	"github.com/rolecall/rolecall/model/human"
	"github.com/rolecall/rolecall/persist"
)

// session is an App and the terminal that shows its events.
type session struct {
	*app.App
	screen  *terminal
	notices io.Writer // to the operator
}

// sessionOptions say what a session is for.
type sessionOptions struct {
	readOnly  bool        // it cannot commit anything
	serve     bool        // its clients may start tasks
	noAgents  bool        // it runs no agent, so that agent scripts are not checked
	workspace string      // DIR[:ro], the default workspace of its callers; "" is the workspace of the configuration
	fatal     func(error) // called when the store has stopped; nil is read-only, see app.Options.Fatal
}

// openSession opens the application on the data directory.
func openSession(c *common, screen *terminal, o sessionOptions) (*session, error) {
	if err := checkUmask(); err != nil {
		return nil, err
	}
	var logs io.Writer = c.err
	if o.fatal != nil {
		logs = screen // the terminal holds them back while a person is asked
	}
	notices := c.logs.notices(screen)
	options := app.Options{
		Data: c.data, OpenReadOnly: o.readOnly, Serve: o.serve, CheckScriptsLater: o.noAgents, Files: c.files, Env: c.env, Launcher: c.launcher, Kinds: c.kinds, Brokers: c.brokers, Version: version(),
		Console: notices, Human: func() model.Model { return newHuman(c.in, screen) },
		Log: c.logger(logs, slog.LevelError), Warn: c.logger(logs, slog.LevelWarn), Fatal: o.fatal,
	}
	if err := setDefaultWorkspace(&options, o.workspace); err != nil {
		return nil, err
	}
	a, err := app.Open(options)
	if err != nil {
		return nil, err
	}
	return &session{a, screen, notices}, nil
}

// newHuman returns the person at the terminal as a model. It disables the area, which would
// overwrite the questions.
func newHuman(in io.Reader, screen *terminal) model.Model {
	screen.disableArea()
	name := func(id identity.AgentID, role string) string { return screen.names.nameOf(string(id), role) }
	return human.New(in, promptWriter{screen}, &human.Options{Name: name, Lock: screen.holdOutput})
}

// withSession opens a session, serves its socket while fn runs, and closes it. When the
// store stops it cancels fn's context. If fn fails before anything is committed, no new data
// directory is left behind.
func withSession(ctx context.Context, c *common, o sessionOptions, fn func(context.Context, *session) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	o.fatal = func(err error) { cancel(err) }
	s, err := openSession(c, newTerminal(c.err), o)
	if err != nil {
		return err
	}
	if !o.serve { // serve is ready when its configuration is active
		s.MarkReady()
	}
	stop, err := s.ServeSocket()
	if err != nil {
		s.DiscardUnused()
		return errors.Join(err, s.Close())
	}
	if err = fn(ctx, s); err != nil {
		s.DiscardUnused()
	}
	end, closed := stop(), s.CloseWithin(closeTimeout)
	if persist.IsClosed(err) && persist.IsClosed(closed) {
		closed = nil // it is the same error
	}
	return errors.Join(err, end, closed)
}

// closeTimeout is how long the program waits on exit for tools and scripts in progress.
const closeTimeout = 10 * time.Second
