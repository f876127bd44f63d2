package cmd

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
)

func newArtifactCommand(c *common) *cobra.Command {
	return parentCommand(&cobra.Command{
		Use:   "artifact",
		Short: "Look at what agents have kept, and fetch it",
		Long: `Artifacts are pieces of work that agents keep and hand on by reference. They
are named by id or by reference (artifact:ID).`,
		Example: `  rolecall artifact list
  rolecall artifact get artifact:5c8c53b4-6d3f-5e6c-9f64-6a1bb1c2b7c1 -o report.md`,
	}, newArtifactListCommand(c), newArtifactShowCommand(c), newArtifactGetCommand(c), newArtifactSweepCommand(c))
}

func newArtifactListCommand(c *common) *cobra.Command {
	var task string
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List artifacts, the oldest first",
		Example: "  rolecall artifact list\n  rolecall artifact list --task 01a1fded-ba9c-76b0-b2c8-51f0fecce8df --json",
		Args:    exactly(0, "no arguments"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, _ []string) error {
			return artifactListFunc(ctx, c.out, api, task, c.json)
		}),
	}
	cmd.Flags().StringVar(&task, "task", "", "only artifacts of the task of this `id`")
	return cmd
}

func artifactListFunc(ctx context.Context, out io.Writer, api *client.Client, task string, asJSON bool) error {
	if task != "" {
		if _, err := api.Task(ctx, task); err != nil {
			return err
		}
	}
	head := []string{"ID", "TYPE", "BYTES", "CREATED", "TASK", "AGENT"}
	return printList(out, asJSON, api.Artifacts(ctx, identity.TaskID(task)), head, func(a client.Artifact) []string {
		return []string{a.ID, cut(clean(a.Type), maxCell), strconv.Itoa(a.Size), formatTime(a.CreatedAt), string(a.Task), string(a.By)}
	})
}

func newArtifactShowCommand(c *common) *cobra.Command {
	return &cobra.Command{
		Use:   "show ARTIFACT",
		Short: "Show what is known of one artifact, and how it begins",
		Long: `Show what is known of one artifact and how it begins: the first lines of a
text, the size of a picture, the first bytes of anything else. With --json the
record alone.`,
		Example: "  rolecall artifact show 5c8c53b4-6d3f-5e6c-9f64-6a1bb1c2b7c1",
		Args:    exactly(1, "one artifact id"),
		RunE: withClient(c, readOnly, func(ctx context.Context, api *client.Client, args []string) error {
			return artifactShowFunc(ctx, c.out, api, args[0], c.json)
		}),
	}
}

func artifactShowFunc(ctx context.Context, out io.Writer, api *client.Client, ref string, asJSON bool) error {
	a, err := api.Artifact(ctx, ref)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, a)
	}
	content, err := api.Content(ctx, a.ID)
	if err != nil {
		return err
	}
	return fields{
		{"id", a.ID}, {"type", a.Type}, {"bytes", strconv.Itoa(a.Size)}, {"mediaType", a.MediaType}, {"sha256", a.Blob},
		{"task", string(a.Task)}, {"agent", string(a.By)}, {"created", formatTime(a.CreatedAt)}, {"meta", string(a.Meta)},
		{"preview", preview(a, content)},
	}.print(out)
}

func newArtifactSweepCommand(c *common) *cobra.Command {
	var dryRun bool
	cmd := &cobra.Command{
		Use:   "gc",
		Short: "Remove stored contents that nothing names any more",
		Long: `Remove stored contents that no artifact, no task and no event names, such as
the configuration of a task that was killed before it began. Artifacts stay.
The data directory's file keeps its size; what is freed is used again.`,
		Example: "  rolecall artifact gc --dry-run\n  rolecall artifact gc",
		Args:    exactly(0, "no arguments"),
		RunE: withClient(c, readWrite, func(ctx context.Context, api *client.Client, _ []string) error {
			return artifactSweepFunc(ctx, c.out, api, dryRun, c.json)
		}),
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only say what would be removed")
	return cmd
}

func artifactSweepFunc(ctx context.Context, out io.Writer, api *client.Client, dryRun, asJSON bool) error {
	swept, err := api.Sweep(ctx, dryRun)
	if err != nil {
		return err
	}
	if asJSON {
		return printJSON(out, swept)
	}
	verb := "removed"
	if dryRun {
		verb = "would remove"
	}
	_, err = fmt.Fprintf(out, "%s %d stored contents of %d bytes\n", verb, swept.Contents, swept.Bytes)
	return err
}
