package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
)

// artifactGetOptions are the flags of artifact get.
type artifactGetOptions struct {
	output string // a file, a directory, or "-"
	force  bool
	all    bool
	task   string
}

func newArtifactGetCommand(c *common) *cobra.Command {
	o := &artifactGetOptions{}
	cmd := &cobra.Command{
		Use:   "get (ARTIFACT | --all --task ID -o DIR)",
		Short: "Write the content of artifacts to stdout or to files",
		Long: `Write the content of an artifact to stdout, or with -o to a file. Text and binary
content is written unchanged, anything else as JSON. On a terminal, control
characters are replaced and binary content is rejected. If -o names a directory,
the file is named after the artifact's title or type, and its name is printed.
Existing files are overwritten only with --force.

With --all, write every artifact of a task into a directory, which is created if
missing, and print the names of the files.`,
		Example: `  rolecall artifact get 5c8c53b4
  rolecall artifact get artifact:5c8c53b4-6d3f-5e6c-9f64-6a1bb1c2b7c1 -o report.md
  rolecall artifact get --all --task last -o results`,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.all {
				return exactArgs(0, "no artifact with --all")(cmd, args)
			}
			return exactArgs(1, "one artifact id")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.check(c.json); err != nil {
				return usageError{err}
			}
			return withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
				if o.all {
					return runArtifactGetAll(ctx, c.out, api, o)
				}
				return runArtifactGet(ctx, c.out, api, args[0], o)
			})(cmd, args)
		},
	}
	flags := cmd.Flags()
	flags.StringVarP(&o.output, "output", "o", "", "write to this `file` or into this directory; - is stdout")
	flags.BoolVar(&o.force, "force", false, "overwrite existing files")
	flags.BoolVar(&o.all, "all", false, "write all artifacts of the task given with --task")
	flags.StringVar(&o.task, "task", "", "`id` of the task, or last, with --all")
	return cmd
}

func (o *artifactGetOptions) check(asJSON bool) error {
	switch {
	case asJSON:
		return errors.New("artifact get writes the content; \"artifact show --json\" prints the record")
	case o.all && (o.task == "" || o.output == "" || o.output == "-"):
		return errors.New("--all needs --task ID and -o DIR")
	case o.task != "" && !o.all:
		return errors.New("--task can only be used with --all")
	}
	return nil
}

func runArtifactGet(ctx context.Context, out io.Writer, api *client.Client, ref string, o *artifactGetOptions) error {
	a, err := findArtifact(ctx, api, ref)
	if err != nil {
		return err
	}
	content, err := api.ArtifactContent(ctx, a.ID)
	if err != nil {
		return err
	}
	switch info, err := os.Stat(o.output); {
	case o.output == "" || o.output == "-":
		return printContent(out, content)
	case err == nil && info.IsDir():
		return newExport(o).add(out, a, content)
	}
	return writeContent(func(flag int) (*os.File, error) { return os.OpenFile(o.output, flag, 0o666) }, o.output, content, o.force)
}

// printContent writes to out, as forTerminal does if it is a terminal.
func printContent(out io.Writer, content []byte) (err error) {
	if isTerminal(out) {
		if content, err = forTerminal(content); err != nil {
			return err
		}
	}
	_, err = out.Write(content)
	return err
}

// forTerminal replaces the control characters of a text and ends it with a line break. It
// returns an error for binary content.
func forTerminal(content []byte) ([]byte, error) {
	if !textutil.IsText(content) {
		return nil, fmt.Errorf("the content is not text; write it to a file with -o FILE or to a pipe")
	}
	return []byte(textutil.SanitizeLines(strings.TrimSuffix(string(content), "\n")) + "\n"), nil
}

// runArtifactGetAll writes all artifacts of a task, oldest first.
func runArtifactGetAll(ctx context.Context, out io.Writer, api *client.Client, o *artifactGetOptions) error {
	task, err := findFilterTask(ctx, api, o.task)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(o.output, 0o777); err != nil {
		return err
	}
	to, empty := newExport(o), true
	for a, err := range api.ListArtifacts(ctx, task) {
		if err != nil {
			return err
		}
		empty = false
		content, err := api.ArtifactContent(ctx, a.ID)
		if err != nil {
			return err
		}
		if err := to.add(out, a, content); err != nil {
			return err
		}
	}
	if empty {
		return fmt.Errorf("task %s has no artifacts", task)
	}
	return nil
}

// export writes artifacts into a directory, each under a name of its own.
type export struct {
	dir   string
	force bool
	taken map[string]bool
}

func newExport(o *artifactGetOptions) *export {
	return &export{o.output, o.force, map[string]bool{}}
}

// add writes one artifact and prints the name of its file.
func (e *export) add(out io.Writer, a client.Artifact, content []byte) error {
	name, err := e.write(a, content)
	if err == nil {
		_, err = fmt.Fprintln(out, textutil.Sanitize(name))
	}
	return err
}

// write writes one artifact and returns the name of its file. Agents control the name, so
// the directory is opened as a root that no name can escape.
func (e *export) write(a client.Artifact, content []byte) (string, error) {
	root, err := os.OpenRoot(e.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	name := fileName(a, content, "")
	if e.taken[strings.ToLower(name)] {
		name = fileName(a, content, a.ID)
	}
	e.taken[strings.ToLower(name)] = true
	return name, writeContent(func(flag int) (*os.File, error) { return root.OpenFile(name, flag, 0o666) }, filepath.Join(e.dir, name), content, e.force)
}

// writeContent writes a file; it overwrites an existing one only with force.
func writeContent(open func(flag int) (*os.File, error), name string, content []byte, force bool) error {
	flag := os.O_WRONLY | os.O_CREATE | os.O_EXCL
	if force {
		flag = os.O_WRONLY | os.O_CREATE | os.O_TRUNC
	}
	file, err := open(flag)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("%s already exists; --force overwrites it", name)
	}
	if err != nil {
		return err
	}
	_, err = file.Write(content)
	return errors.Join(err, file.Close())
}
