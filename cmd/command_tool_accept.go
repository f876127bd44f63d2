package cmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/modules"
)

func newToolAcceptCommand(c *common) *cobra.Command {
	var dryRun bool
	var digest string
	cmd := &cobra.Command{
		Use:   "accept TOOL|SERVER",
		Short: "Put a definition that is in quarantine in force",
		Long: `Show what a tool in quarantine would change, and put it in force: the
definition that is shown and no other. The name of an MCP server means all of
its tools in quarantine. What a definition says is the server's, and a model will
read it: read it first.

With --dry-run it only shows, with the digest of each definition. --digest then
means the definition that was read, and is refused when another waits by now.`,
		Example: "  rolecall tool accept --dry-run fs\n  rolecall tool accept fs__read_file --digest $DIGEST",
		Args:    exactly(1, "the name of one tool or server"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("digest") && !isDigest(digest) {
			return usageError{fmt.Errorf("--digest needs the 64 hexadecimal digits that --dry-run shows, not %.80q", digest)}
		}
		p := readWrite
		if dryRun {
			p = readOnly
		}
		return withClient(c, p, func(ctx context.Context, api *client.Client, args []string) error {
			return toolAcceptFunc(ctx, c, api, args[0], digest, dryRun)
		})(cmd, args)
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "only show what would change")
	cmd.Flags().StringVar(&digest, "digest", "", "only the definition of this `digest`")
	return cmd
}

// isDigest says whether text could be the digest of a definition.
func isDigest(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}

func toolAcceptFunc(ctx context.Context, c *common, api *client.Client, name, digest string, dryRun bool) error {
	list, err := waitingFor(ctx, api, name, digest)
	if err != nil {
		return err
	}
	for i, s := range list {
		if !c.json {
			fmt.Fprintf(c.out, "%s of %s\ndigest: %s\n%s", clean(s.Name), clean(string(s.Owner)), clean(s.Digest), differenceOf(s.Offered, s.Accepted))
		}
		if dryRun {
			continue
		}
		if list[i], err = api.Accept(ctx, s.Name, s.Digest); errcode.Of(err) == errcode.Conflict {
			return errDigestChanged(s.Name)
		}
		if err != nil {
			return err
		}
		if !c.json {
			fmt.Fprintf(c.out, "accepted %s\n", clean(s.Name))
		}
	}
	if c.json {
		return printJSON(c.out, map[string]any{"items": list})
	}
	return nil
}

// errDigestChanged says that the definition that waits is not the one that was meant.
func errDigestChanged(name string) error {
	return errcode.New(errcode.Conflict, "accept %s: another definition is in quarantine by now; \"rolecall tool accept --dry-run %s\" shows it with its digest", name, name)
}

// waitingFor lists what is in quarantine under the name of a tool or a server:
// with a digest, the one definition that has it.
func waitingFor(ctx context.Context, api *client.Client, name, digest string) (list []client.QuarantinedTool, err error) {
	for s, err := range api.Quarantine(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Name == name || s.Owner == modules.Owner(name) {
			list = append(list, s)
		}
	}
	if len(list) == 0 {
		return nil, errcode.New(errcode.UnknownTool, "nothing of the name %s is in quarantine; \"rolecall tool list --quarantined\" lists what is", name)
	}
	if digest == "" {
		return list, nil
	}
	at := slices.IndexFunc(list, func(s client.QuarantinedTool) bool { return s.Digest == digest })
	if at < 0 {
		return nil, errDigestChanged(name)
	}
	return list[at : at+1], nil
}

func quarantineFunc(ctx context.Context, out io.Writer, api *client.Client, asJSON bool) error {
	head := []string{"NAME", "OWNER", "WHY", "DESCRIPTION"}
	return printList(out, asJSON, api.Quarantine(ctx), head, func(s client.QuarantinedTool) []string {
		why := "new"
		if s.Accepted != nil {
			why = "changed"
		}
		return []string{s.Name, string(s.Owner), why, cut(clean(s.Offered.Description), maxCell)}
	})
}

// differenceOf shows what accepting the offered definition would change. accepted
// is nil for a new tool.
func differenceOf(offered modules.Pin, accepted *modules.Pin) string {
	before, old := "", "/dev/null"
	if accepted != nil {
		before, old = pinText(*accepted), "accepted"
	}
	text := diff.Diff(old, []byte(before), "offered", []byte(pinText(offered)))
	_, text, _ = bytes.Cut(text, []byte("\n")) // "diff old new" says nothing more
	return string(text)
}

// pinText writes a definition for people, line by line, with what a terminal
// would obey escaped.
func pinText(p modules.Pin) string {
	var b strings.Builder
	if p.Kind != "" {
		fmt.Fprintf(&b, "kind: %s\n", escapeInvisible(p.Kind))
	}
	b.WriteString("description:\n")
	for line := range strings.SplitSeq(p.Description, "\n") {
		b.WriteString("  " + escapeInvisible(line) + "\n")
	}
	for _, part := range []struct {
		name string
		doc  json.RawMessage
	}{{"input", p.Input}, {"annotations", p.Annotations}} {
		var doc bytes.Buffer
		if len(part.doc) == 0 || json.Indent(&doc, part.doc, "  ", "  ") != nil {
			continue
		}
		b.WriteString(part.name + ":\n  ")
		for i, line := range strings.Split(doc.String(), "\n") {
			if i > 0 {
				b.WriteString("\n")
			}
			b.WriteString(escapeInvisible(line))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// escapeInvisible escapes what is not printable, as Go would write it.
func escapeInvisible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		quoted := strconv.QuoteRuneToASCII(r)
		b.WriteString(quoted[1 : len(quoted)-1])
	}
	return b.String()
}
