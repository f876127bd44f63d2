package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/persist"
)

// accessMode says what a command wants of the data directory.
type accessMode int

const (
	readOnly        accessMode = iota // changes nothing, and makes no data directory
	readWrite                         // changes what is there
	createIfMissing                   // changes, and makes the data directory when it is absent
)

// maxTries is how often connect tries while another process comes or goes;
// each try that meets a locked directory waits a moment by itself.
const maxTries = 20

// connect reaches the organization: the gateway that ROLECALL_URL names or the
// process that serves the data directory, or else the directory's files through
// a house of its own.
//
// Who looks leaves no trace. Without a data directory it sees an organization
// without history, and with -f one in which that configuration is in force,
// both on a temporary directory. The function it gives is to be called at the
// end.
func connect(ctx context.Context, c *common, p accessMode) (*client.Client, func() error, error) {
	for try := 1; ; try++ {
		api, err := newClient(c)
		if err == nil {
			if len(c.files) > 0 {
				fmt.Fprintf(c.err, "a process serves %s with its own configuration; -f is not read\n", cmp.Or(c.variable(urlVariable), c.data))
			}
			return api, api.Close, nil
		}
		if !errors.Is(err, client.ErrNotServed) {
			return nil, nil, err
		}
		api, done, err := openLocal(ctx, c, p)
		if errcode.Of(err) != errcode.Conflict || try == maxTries {
			return api, done, err
		}
	}
}

// openLocal reaches the organization on the files.
func openLocal(ctx context.Context, c *common, p accessMode) (*client.Client, func() error, error) {
	known, err := hasData(c.data)
	if err != nil {
		return nil, nil, err
	}
	if p == createIfMissing || known && (p == readWrite || len(c.files) == 0) {
		return openApp(ctx, c)
	}
	if !known && len(c.files) == 0 {
		fmt.Fprintf(c.err, "there is no organization in %s yet; --data DIR looks elsewhere\n", c.data)
	}
	dir, err := os.MkdirTemp("", "rolecall-look-")
	if err != nil {
		return nil, nil, err
	}
	remove := func() error { return os.RemoveAll(dir) }
	if known {
		if err := copyData(c.data, dir); err != nil {
			return nil, nil, errors.Join(err, remove())
		}
	}
	elsewhere := *c
	elsewhere.data = dir
	api, done, err := openApp(ctx, &elsewhere)
	if err != nil {
		return nil, nil, errors.Join(err, remove())
	}
	return api, func() error { return errors.Join(done(), remove()) }, nil
}

// openApp puts a house together on the data directory, with the
// configuration given in force, and talks to it without a socket.
func openApp(ctx context.Context, c *common) (*client.Client, func() error, error) {
	s, err := openSession(c, &terminal{out: io.Discard}, nil)
	if err != nil {
		return nil, nil, err
	}
	cfg, err := loadConfig(c)
	if err == nil && cfg != nil {
		err = s.Configure(ctx, cfg, nil)
	}
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	api, err := s.Client()
	if err != nil {
		return nil, nil, errors.Join(err, s.Close())
	}
	return api, s.Close, nil
}

// hasData says whether there is a data directory with something in it.
func hasData(dir string) (bool, error) {
	_, err := os.Stat(filepath.Join(dir, persist.FileName))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// copyData copies a data directory's file while nobody else has it open.
func copyData(from, to string) error {
	store, err := persist.Open(from)
	if err != nil {
		return err
	}
	return errors.Join(copyFile(filepath.Join(from, persist.FileName), filepath.Join(to, persist.FileName)), store.Close())
}

func copyFile(from, to string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// withClient makes a cobra function of one that needs a client.
func withClient(c *common, p accessMode, fn func(ctx context.Context, api *client.Client, args []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		api, done, err := connect(cmd.Context(), c, p)
		if err != nil {
			return err
		}
		return errors.Join(fn(cmd.Context(), api, args), done())
	}
}

// parentCommand makes a command that only holds others.
func parentCommand(cmd *cobra.Command, members ...*cobra.Command) *cobra.Command {
	cmd.Args = cobra.ArbitraryArgs
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usageError{fmt.Errorf("there is no command %q; %q lists what there is", cmd.CommandPath()+" "+args[0], cmd.CommandPath()+" --help")}
		}
		return cmd.Help()
	}
	cmd.AddCommand(members...)
	return cmd
}
