package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/persist"
)

// accessMode is how a command uses the data directory.
type accessMode int

const (
	readOnly        accessMode = iota // changes nothing; needs an organization or a configuration
	readWrite                         // changes an existing organization
	createIfMissing                   // like readWrite; creates the data directory if missing
	createInCopy                      // like createIfMissing, on a copy that is removed
)

// maxAttempts bounds how often a command tries to connect while another process starts or
// stops. Opening a locked directory waits a moment, so attempts need no delay.
const maxAttempts = 20

// connect returns a client of the organization. The client uses the gateway in
// ROLECALL_URL, or the process that serves the data directory. Without either, connect
// opens an application on the data directory itself.
//
// With readOnly it writes nothing to the data directory. It works on a temporary copy if the
// data directory has no data, or if -f names a configuration. It also does so if an older
// version wrote the data file, or if items are applied. The configuration is applied to the
// copy. It returns errNoOrganization if there is neither.
//
// The caller must call done when its command has ended, with the error of the command. done
// returns that error and its own. A command that fails leaves no new data directory behind.
func connect(ctx context.Context, c *common, p accessMode) (api *client.Client, done func(error) error, err error) {
	for try := 1; ; try++ {
		api, err := dialChecked(ctx, c)
		if err == nil {
			return api, func(err error) error { return errors.Join(err, api.Close()) }, nil
		}
		if !errors.Is(err, client.ErrNotServed) {
			return nil, nil, err
		}
		api, done, err := openLocal(ctx, c, p)
		if errcode.CodeOf(err) != errcode.Conflict || try == maxAttempts {
			return api, done, err
		}
	}
}

// dialChecked is dialServing, and rejects -f with another configuration than the served one.
func dialChecked(ctx context.Context, c *common) (*client.Client, error) {
	api, err := dialServing(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := checkServedConfig(ctx, c, api); err != nil {
		return nil, errors.Join(err, api.Close())
	}
	return api, nil
}

// openLocal connects without a serving process, on the data directory or a copy.
func openLocal(ctx context.Context, c *common, p accessMode) (*client.Client, func(error) error, error) {
	if p == readOnly {
		if err := c.requireOrganization(); err != nil {
			return nil, nil, err
		}
	}
	known, err := hasData(c.data)
	switch {
	case err != nil:
		return nil, nil, err
	case p == createIfMissing, known && p == readWrite:
		return openApp(ctx, c, sessionOptions{})
	case !known && p == readWrite:
		return nil, nil, errNoOrganization(c.data)
	case known && len(c.files) == 0:
		api, done, err := openApp(ctx, c, sessionOptions{readOnly: true})
		if !errors.Is(err, persist.ErrOlderSchema) && !errors.Is(err, errHasItems) {
			return api, done, err
		}
	}
	return openCopy(ctx, c, known)
}

// requireOrganization returns an error unless the data directory has an organization or -f
// names a configuration.
func (c *common) requireOrganization() error {
	known, err := hasData(c.data)
	if err == nil && !known && len(c.files) == 0 {
		err = usageError{fmt.Errorf("%w, or a configuration with %s", errNoOrganization(c.data), suggestFile("-f FILE"))}
	}
	return err
}

// errNoConfig is the usage error of a command that needs a configuration.
func errNoConfig(command string) error {
	return usageError{fmt.Errorf("%s needs a configuration: %s", command, suggestFile("-f FILE or -f DIR"))}
}

// suggestFile returns the flag for the configuration that init has written into the current
// directory. It returns other if there is no such configuration.
func suggestFile(other string) string {
	if _, err := os.Stat(starterConfig); err != nil {
		return other
	}
	return "-f " + starterConfig
}

// errNoOrganization is the usage error for a directory without an organization.
func errNoOrganization(dir string) error {
	return usageError{fmt.Errorf("there is no organization in %s; name its directory with --data DIR%s", dir, demoHint(dir))}
}

// openCopy opens a temporary copy of the data directory. known reports whether there is one
// to copy.
func openCopy(ctx context.Context, c *common, known bool) (*client.Client, func(error) error, error) {
	dir, err := tempDir("rolecall-look-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	if known {
		if err := persist.CopyData(c.data, dir); err != nil {
			return nil, nil, errors.Join(err, remove())
		}
	}
	onCopy := *c
	onCopy.data = dir
	api, done, err := openApp(ctx, &onCopy, sessionOptions{noAgents: true})
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return api, func(err error) error { return errors.Join(done(err), remove()) }, nil
}

// withServing calls served with a client of the gateway in ROLECALL_URL, or of the process
// that serves the data directory. It rejects -f with another configuration than theirs.
// Without such a process it calls here. began reports whether here could open the data
// directory; if not, another process may have it, and withServing tries again.
func withServing(ctx context.Context, c *common, served func(*client.Client) error, here func() (began bool, err error)) error {
	for try := 1; ; try++ {
		api, err := dialChecked(ctx, c)
		if err == nil {
			return errors.Join(served(api), api.Close())
		}
		if !errors.Is(err, client.ErrNotServed) {
			return err
		}
		began, err := here()
		if began || errcode.CodeOf(err) != errcode.Conflict || try == maxAttempts {
			return err
		}
	}
}

// withOrganization calls fn with a client of the serving process. Without one it runs the
// organization in this process with the configuration of -f. Unlike connect it then connects
// to MCP servers.
func withOrganization(ctx context.Context, c *common, fn func(context.Context, *client.Client) error) error {
	return withServing(ctx, c,
		func(api *client.Client) error { return fn(ctx, api) },
		func() (began bool, err error) { return runOrganization(ctx, c, fn) })
}

// runOrganization calls fn with a client of an organization that runs in this process. began
// reports whether it could open the data directory; if not, another process may have it.
func runOrganization(ctx context.Context, c *common, fn func(context.Context, *client.Client) error) (began bool, err error) {
	cfg, err := loadConfig(c)
	if err != nil {
		return false, err
	}
	if err := c.requireOrganization(); err != nil {
		return false, err
	}
	err = withSession(ctx, c, sessionOptions{}, func(ctx context.Context, s *session) error {
		began = true
		if err := s.configure(ctx, cfg); err != nil {
			return err
		}
		api, err := s.Client()
		if err != nil {
			return err
		}
		return fn(ctx, api)
	})
	return began, err
}

// openApp opens the application on the data directory, applies the configuration of -f and
// returns a client within the process. With look it opens the data file for reading only.
func openApp(ctx context.Context, c *common, o sessionOptions) (*client.Client, func(error) error, error) {
	s, err := openSession(c, &terminal{out: io.Discard}, o)
	if err != nil {
		return nil, nil, err
	}
	end := func(err error) error {
		if err != nil {
			s.DiscardUnused()
		}
		return errors.Join(err, s.Close())
	}
	cfg, err := loadConfig(c)
	if err == nil && o.readOnly {
		err = s.configureForReading(ctx, cfg)
	} else if err == nil {
		err = s.configure(ctx, cfg)
	}
	if err != nil {
		return nil, nil, end(err)
	}
	api, err := s.Client()
	if err != nil {
		return nil, nil, end(err)
	}
	return api, end, nil
}

// errHasItems is the error of a session that cannot make applied items active.
var errHasItems = errors.New("applied items cannot be made active without a change of the data file")

// configure applies the configuration of -f. Without such a configuration it activates the applied
// items.
func (s *session) configure(ctx context.Context, cfg *config.Config) error {
	if cfg != nil {
		return s.ApplyConfig(ctx, cfg, nil)
	}
	return s.ActivateItems(ctx)
}

// configureForReading is configure for a session that has opened the data file for reading only. It
// returns errHasItems if there are applied items, since they cannot be made active without a write.
func (s *session) configureForReading(ctx context.Context, cfg *config.Config) error {
	if cfg != nil {
		return s.ApplyConfig(ctx, cfg, nil)
	}
	found, err := s.HasItems(ctx)
	if err == nil && found {
		err = errHasItems
	}
	return err
}

// hasData reports whether a directory contains the data file of an organization.
func hasData(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, persist.FileName))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, syscall.ENOTDIR):
		return false, usageError{fmt.Errorf("--data %s is not a directory", dir)}
	}
	return err == nil, err
}

// withClient returns a cobra function that connects, calls fn and disconnects.
func withClient(c *common, p accessMode, fn func(ctx context.Context, api *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		api, done, err := connect(cmd.Context(), c, p)
		if err != nil {
			return err
		}
		return done(fn(cmd.Context(), api, args))
	}
}

// commandGroup makes cmd a command that only has subcommands.
func commandGroup(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return errUnknownCommand(cmd, args[0])
		}
		return cmd.Help()
	}
	cmd.AddCommand(members...)
	return cmd
}
