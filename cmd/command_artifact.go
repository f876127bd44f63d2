package cmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
)

func newArtifactCommand(c *common) *cobra.Command {
	return commandGroup(&cobra.Command{
		Use:   "artifact",
		Short: "List, show and export artifacts",
		Long: `Artifacts are results that agents store and pass on by reference. An artifact is
named by its id or its reference (artifact:ID). The beginning of an id is enough if it
is unique and has at least 4 characters.`,
		Example: `  rolecall artifact list --task last
  rolecall artifact get 5c8c53b4 -o report.md`,
	}, newArtifactListCommand(c), newArtifactShowCommand(c), newArtifactGetCommand(c), newArtifactGCCommand(c))
}

func newArtifactListCommand(c *common) *cobra.Command {
	var task string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List artifacts, oldest first",
		Example: "  rolecall artifact list\n  rolecall artifact list --task last --json",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return runArtifactList(ctx, c.out, api, task, c.json)
		}),
	}
	cmd.Flags().StringVar(&task, "task", "", "only artifacts of the task with this `id`, or of the last one")
	return cmd
}

func runArtifactList(ctx context.Context, out io.Writer, api *client.Client, task string, asJSON bool) error {
	id, err := findFilterTask(ctx, api, task)
	if err != nil {
		return err
	}
	head := []string{"ID", "TYPE", "BYTES", "CREATED", "TASK", "AGENT"}
	return printList(out, asJSON, api.ListArtifacts(ctx, id), head, func(a client.Artifact) []string {
		return []string{a.ID, textutil.TruncateWidth(a.Type, maxCell), strconv.Itoa(a.Size), formatTime(a.CreatedAt), string(a.Task), string(a.By)}
	})
}

func newArtifactShowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "show ARTIFACT",
		Short: "Show an artifact with a preview of its content",
		Long: `Show the record of an artifact and a preview: the first lines of a text, the size of
an image, or the first bytes of anything else. The bytes and the hash are those of the
content that "artifact get" writes. With --json, print only the record. Its size and
blob are those of the JSON in which the content is stored.`,
		Example: "  rolecall artifact show 5c8c53b4",
		Args:    exactArgs(1, "one artifact id"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return runArtifactShow(ctx, c.out, api, args[0], c.json)
		}),
	}
}

func runArtifactShow(ctx context.Context, out io.Writer, api *client.Client, ref string, asJSON bool) error {
	a, err := findArtifact(ctx, api, ref)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, a)
	}
	content, err := api.ArtifactContent(ctx, a.ID)
	if err != nil {
		return err
	}
	sum := sha256.Sum256(content)
	return fields{
		{"id", a.ID}, {"type", a.Type}, {"bytes", strconv.Itoa(len(content))}, {"mediaType", a.MediaType}, {"sha256", hex.EncodeToString(sum[:])},
		{"task", string(a.Task)}, {"agent", string(a.By)}, {"created", formatTime(a.CreatedAt)}, {"meta", jsonText(a.Meta)},
		{"preview", preview(a, content)},
	}.print(out)
}

func newArtifactGCCommand(c *common) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Garbage-collect unreferenced artifact content",
		Long: `Remove stored content that no artifact, task or event refers to, such as the
configuration of a task that was killed before it started. Artifacts are kept. The
data file keeps its size; the space is reused.`,
		Example: "  rolecall artifact gc --dry-run\n  rolecall artifact gc",
		Args:    exactArgs(0, "no arguments"),
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, _ []string) error {
			return runArtifactGC(ctx, c.out, api, dryRun, c.json)
		}),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show what would be removed")
	return cmd
}

func runArtifactGC(ctx context.Context, out io.Writer, api *client.Client, dryRun, asJSON bool) error {
	removed, err := api.CollectGarbage(ctx, dryRun)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, removed)
	}
	verb := "removed"
	if dryRun {
		verb = "would remove"
	}
	_, err = fmt.Fprintf(out, "%s %d unreferenced contents, %d bytes\n", verb, removed.Contents, removed.Bytes)
	return err
}
