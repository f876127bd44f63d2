package cmd

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/diff"
	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/modules"
)

func newToolAcceptCommand(c *common) *cobra.Command {
	var dryRun bool
	var digest string
	cmd := &cobra.Command{
		Use:   "accept TOOL|SERVER|SERVICE",
		Short: "Accept a quarantined tool definition",
		Long: `Show what a quarantined definition would change, and accept exactly that definition. The
name of an MCP server, or of a service that announces itself, stands for all of its
quarantined tools. The server or service wrote the definition and models will read it, so
read it first.

With --dry-run, only show the change and the digest of each definition. With --digest,
accept the definition that was read, and fail if another one was offered since.`,
		Example: "  rolecall tool accept --dry-run fs\n  rolecall tool accept fs__read_file --digest $DIGEST\n  rolecall tool accept weather",
		Args:    exactArgs(1, "the name of one tool, server or service"),
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if cmd.Flags().Changed("digest") && !isDigest(digest) {
			return usageError{fmt.Errorf("--digest needs the 64 hexadecimal digits that --dry-run shows, not %.80q", digest)}
		}
		digest = strings.ToLower(digest)
		p := readWrite
		if dryRun {
			p = readOnly
		}
		return withClient(c, p, func(ctx context.Context, api *client.Client, args []string) error {
			return runToolAccept(ctx, c, api, args[0], digest, dryRun)
		})(cmd, args)
	}
	cmd.Flags().BoolVar(&dryRun, "dry-run", false, "show the change without accepting it")
	cmd.Flags().StringVar(&digest, "digest", "", "accept only the definition with this `digest`")
	return cmd
}

// isDigest reports whether text has the form of a digest.
func isDigest(text string) bool {
	sum, err := hex.DecodeString(text)
	return err == nil && len(sum) == sha256.Size
}

func runToolAccept(ctx context.Context, c *common, api *client.Client, name, digest string, dryRun bool) error {
	list, err := quarantinedTools(ctx, api, name, digest)
	if err != nil {
		return err
	}
	for i, s := range list {
		if !c.json {
			fmt.Fprintf(c.out, "%s of %s\ndigest: %s\n%s", textutil.Sanitize(s.Name), textutil.Sanitize(string(s.Owner)), textutil.Sanitize(s.Digest), quarantineDiff(s.Offered, s.Accepted))
		}
		if dryRun {
			continue
		}
		if list[i], err = api.AcceptTool(ctx, s.Name, client.AcceptRequest{Digest: s.Digest, Owner: s.Owner}); errcode.CodeOf(err) == errcode.Conflict {
			return errDigestChanged(s.Name)
		}
		if err != nil {
			return err
		}
		if !c.json {
			fmt.Fprintf(c.out, "accepted %s\n", textutil.Sanitize(s.Name))
		}
	}
	if c.json {
		return printJSON(c.out, map[string]any{"items": list})
	}
	return nil
}

// errDigestChanged is the error for a definition that has changed since it was read.
func errDigestChanged(name string) error {
	return errcode.New(errcode.Conflict, "accept %s: the quarantined definition has changed; \"rolecall tool accept --dry-run %s\" shows it with its digest", name, name)
}

// quarantinedTools lists the quarantined definitions of a tool, server or service. With a digest it
// lists only the definitions that have the digest.
func quarantinedTools(ctx context.Context, api *client.Client, name, digest string) ([]client.QuarantinedTool, error) {
	var own, named []client.QuarantinedTool // of this owner, and of this name and other owners
	others := 0                             // with other digests
	for s, err := range api.ListQuarantine(ctx) {
		switch {
		case err != nil:
			return nil, err
		case s.Owner != modules.OwnerOf(name) && s.Name != name:
		case digest != "" && s.Digest != digest:
			others++
		case s.Owner == modules.OwnerOf(name):
			own = append(own, s)
		default:
			named = append(named, s)
		}
	}
	switch {
	case len(own)+len(named) == 0 && others > 0:
		return nil, errDigestChanged(name)
	case len(own)+len(named) == 0:
		return nil, errcode.New(errcode.UnknownTool, "no quarantined definition of %s; \"rolecall tool list --quarantined\" lists all", name)
	case len(named) > 1, len(own) > 0 && len(named) > 0:
		return nil, errSeveralOwners(name, append(own, named...))
	}
	return append(own, named...), nil
}

// errSeveralOwners is the error for a name that stands for definitions of several owners. One of them
// may have chosen it to be accepted with the others.
func errSeveralOwners(name string, list []client.QuarantinedTool) error {
	return errcode.New(errcode.Conflict, "%s stands for definitions of %s and of %s; name the server or service, with --digest the one definition: \"rolecall tool list --quarantined\" lists all",
		name, list[0].Owner, list[len(list)-1].Owner)
}

func printQuarantine(ctx context.Context, out io.Writer, api *client.Client, asJSON bool) error {
	head := []string{"NAME", "OWNER", "STATUS", "DESCRIPTION"}
	return printList(out, asJSON, api.ListQuarantine(ctx), head, func(s client.QuarantinedTool) []string {
		status := "new"
		if s.Accepted != nil {
			status = "changed"
		}
		return []string{s.Name, string(s.Owner), status, textutil.TruncateWidth(s.Offered.Description, maxCell)}
	})
}

// quarantineDiff returns what accepting the offered definition would change, as a unified diff. accepted
// is nil for a new tool.
func quarantineDiff(offered modules.ToolPin, accepted *modules.ToolPin) string {
	before, old := "", "/dev/null"
	if accepted != nil {
		before, old = pinText(*accepted), "accepted"
	}
	text := diff.Diff(old, []byte(before), "offered", []byte(pinText(offered)))
	_, text, _ = bytes.Cut(text, []byte("\n")) // the first line is "diff old new"
	return string(text)
}

// pinText formats a definition line by line, with unprintable characters escaped.
func pinText(p modules.ToolPin) string {
	var b strings.Builder
	if p.Kind != "" {
		fmt.Fprintf(&b, "kind: %s\n", escapeInvisible(p.Kind))
	}
	if p.Listing.Title != "" {
		fmt.Fprintf(&b, "title: %s\n", escapeInvisible(p.Listing.Title))
	}
	b.WriteString("description:\n")
	for line := range strings.SplitSeq(p.Description, "\n") {
		b.WriteString("  " + escapeInvisible(line) + "\n")
	}
	for _, part := range []struct {
		name string
		doc  json.RawMessage
	}{{"input", p.Input}, {"output", p.Listing.Output}, {"annotations", p.Annotations}, {"icons", p.Listing.Icons}, {"_meta", p.Listing.Meta}} {
		var doc bytes.Buffer
		if len(part.doc) == 0 || json.Indent(&doc, part.doc, "  ", "  ") != nil {
			continue
		}
		b.WriteString(part.name + ":\n  ")
		for i, line := range strings.Split(jsonText(doc.Bytes()), "\n") {
			if i > 0 {
				b.WriteString("\n")
			}
			b.WriteString(escapeInvisible(line))
		}
		b.WriteString("\n")
	}
	return b.String()
}

// escapeInvisible escapes characters that are not printable, in Go syntax.
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
