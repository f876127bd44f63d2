package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rolecall/rolecall/gateway"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/runtime"
)

func newArtifactCommand(c *common) *cobra.Command {
	return family(&cobra.Command{
		Use:   "artifact",
		Short: "Look at what agents have kept, and fetch it",
		Long: `Artifacts are pieces of work that agents keep and hand on by reference. They
are named by id or by reference (artifact:ID).`,
		Example: `  rolecall artifact list
  rolecall artifact get artifact:5c8c53b4-6d3f-5e6c-9f64-6a1bb1c2b7c1 -o report.md`,
	}, newArtifactListCommand(c), newArtifactShowCommand(c), newArtifactGetCommand(c))
}

func newArtifactListCommand(c *common) *cobra.Command {
	var task string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List artifacts, the oldest first",
		Example: "  rolecall artifact list\n  rolecall artifact list --task 01a1fded-ba9c-76b0-b2c8-51f0fecce8df --json",
		Args:    exactly(0, "no arguments"),
		RunE: connected(c, looks, func(ctx context.Context, client *gateway.Client, _ []string) error {
			return artifactListFunc(ctx, c.out, client, task, c.json)
		}),
	}
	cmd.Flags().StringVar(&task, "task", "", "only artifacts of the task of this `id`")
	return cmd
}

func artifactListFunc(ctx context.Context, out io.Writer, client *gateway.Client, task string, asJSON bool) error {
	head := []string{"ID", "TYPE", "BYTES", "CREATED", "TASK", "AGENT"}
	return printList(out, asJSON, client.Artifacts(ctx, identity.TaskID(task)), head, func(a runtime.Artifact) []string {
		return []string{a.ID, cut(clean(a.Type), maxCell), strconv.Itoa(a.Size), moment(a.CreatedAt), string(a.Task), string(a.By)}
	})
}

func newArtifactShowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:     "show ARTIFACT",
		Short:   "Show what is known of one artifact",
		Example: "  rolecall artifact show 5c8c53b4-6d3f-5e6c-9f64-6a1bb1c2b7c1",
		Args:    exactly(1, "one artifact id"),
		RunE: connected(c, looks, func(ctx context.Context, client *gateway.Client, args []string) error {
			return artifactShowFunc(ctx, c.out, client, args[0], c.json)
		}),
	}
}

func artifactShowFunc(ctx context.Context, out io.Writer, client *gateway.Client, ref string, asJSON bool) error {
	a, err := client.Artifact(ctx, ref)
	if err != nil {
		return err
	}
	return printOne(out, asJSON, a, fields{
		{"id", a.ID}, {"type", a.Type}, {"bytes", strconv.Itoa(a.Size)}, {"binary", strconv.FormatBool(a.Binary)}, {"sha256", a.Blob},
		{"task", string(a.Task)}, {"agent", string(a.By)}, {"created", moment(a.CreatedAt)}, {"meta", string(a.Meta)},
	})
}

func newArtifactGetCommand(c *common) *cobra.Command {
	var file string
	cmd := &cobra.Command{
		Use:   "get ARTIFACT",
		Short: "Write the content of one artifact to stdout or a file",
		Long: `Write the content of one artifact: a text as it is, bytes as they are,
anything else as JSON. On a terminal nothing is written that could act on it;
into a file or a pipe every byte is.`,
		Example: `  rolecall artifact get 5c8c53b4-6d3f-5e6c-9f64-6a1bb1c2b7c1
  rolecall artifact get 5c8c53b4-6d3f-5e6c-9f64-6a1bb1c2b7c1 -o report.md`,
		Args: exactly(1, "one artifact id"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if c.json {
				return usageError{errors.New("artifact get writes the content itself; artifact show --json gives the record")}
			}
			return connected(c, looks, func(ctx context.Context, client *gateway.Client, args []string) error {
				return artifactGetFunc(ctx, c.out, client, args[0], file)
			})(cmd, args)
		},
	}
	cmd.Flags().StringVarP(&file, "output", "o", "", "write to this `file`")
	return cmd
}

func artifactGetFunc(ctx context.Context, out io.Writer, client *gateway.Client, ref, file string) error {
	content, err := client.Content(ctx, ref)
	if err != nil {
		return err
	}
	if file != "" {
		return os.WriteFile(file, content, 0o666)
	}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		if content, err = forTerminal(content); err != nil {
			return err
		}
	}
	_, err = out.Write(content)
	return err
}

// forTerminal takes from a text what could act on a terminal and ends it with
// a line break; it refuses what is no text.
func forTerminal(content []byte) ([]byte, error) {
	if !utf8.Valid(content) || bytes.IndexByte(content, 0) >= 0 {
		return nil, fmt.Errorf("the content is no text; write it to a file with -o FILE, or into a pipe")
	}
	lines := strings.Split(strings.TrimSuffix(string(content), "\n"), "\n")
	for i, line := range lines {
		lines[i] = clean(line)
	}
	return []byte(strings.Join(lines, "\n") + "\n"), nil
}
