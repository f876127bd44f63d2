package cmd

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/internal/yamldoc"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/tool"
)

// toolSetFlags are the flags of tool set.
type toolSetFlags struct {
	groups, states, flags []string
	state, effect         string
}

func newToolSetCommand(c *common) *cobra.Command {
	var flags toolSetFlags
	cmd := &cobra.Command{
		Use:   "set TOOL -f FILE",
		Short: "Set groups, workflow states and flags of a tool in a configuration file",
		Long: `Set the groups, the workflow states, the effect class and the flags of a tool in a
configuration file. TOOL is the name of a declared tool, or SERVER/TOOL for a tool of an MCP server or
module. For such a tool a document is added if there is none.

The file is written only if the whole configuration is valid then. Comments are kept, the
layout of the changed document is not. "serve" applies the file when it changes.`,
		Example: `  rolecall tool set fs/read_file --group reading -f org.yaml
  rolecall tool set search --state analysis --applicable-states undefined,research -f org.yaml
  rolecall tool set search --group none -f org.yaml
  rolecall tool set search --flags untrusted,outside -f org.yaml`,
		Args: exactArgs(1, "one tool: a name, or SERVER/TOOL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			labels, err := flags.labels(cmd)
			if err != nil {
				return err
			}
			return runToolSet(cmd.Context(), c, args[0], labels)
		},
	}
	cmd.Flags().StringSliceVar(&flags.groups, "group", nil, "`ids` of the groups that the tool is in; none for no group")
	cmd.Flags().StringVar(&flags.state, "state", "", "workflow `state` after a call; none does not change it")
	cmd.Flags().StringSliceVar(&flags.states, "applicable-states", nil, "workflow `states` in which it can be called; none for no state, * for all")
	cmd.Flags().StringVar(&flags.effect, "effect", "", "effect `class`: readOnly, idempotent or mutating")
	cmd.Flags().StringSliceVar(&flags.flags, "flags", nil, "`flags`: untrusted, private and outside; none for none of them")
	return cmd
}

// labels returns the labels that the flags set.
func (f *toolSetFlags) labels(cmd *cobra.Command) (l toolboxfile.Labels, err error) {
	if cmd.Flags().Changed("group") {
		l.Groups = listOrNone(f.groups)
	}
	if cmd.Flags().Changed("state") {
		if f.state == "none" {
			f.state = ""
		}
		l.State = &f.state
	}
	if cmd.Flags().Changed("applicable-states") {
		l.States = listOrNone(f.states)
	}
	if cmd.Flags().Changed("flags") {
		if l.Flags, err = parseFlags(listOrNone(f.flags)); err != nil {
			return l, err
		}
	}
	if l.Effect = f.effect; l.IsZero() {
		return l, usageError{errors.New("tool set changes nothing: set --group, --state, --applicable-states, --effect or --flags")}
	}
	return l, nil
}

// parseFlags returns the flags with some names.
func parseFlags(names []string) (tool.Flags, error) {
	var list []tool.Flag
	for _, name := range names {
		flag, ok := tool.ParseFlag(name)
		if !ok {
			return 0, usageError{fmt.Errorf("--flags: %.80q is unknown; there are %s", name, strings.Join(tool.FlagNames(), ", "))}
		}
		list = append(list, flag)
	}
	return tool.FlagsOf(list...), nil
}

// listOrNone returns a list that is not nil; it is empty for the word none alone.
func listOrNone(list []string) []string {
	if slices.Equal(list, []string{"none"}) {
		return []string{}
	}
	return append([]string{}, list...)
}

func runToolSet(ctx context.Context, c *common, name string, l toolboxfile.Labels) error {
	if len(c.files) == 0 {
		return errNoConfig("tool set")
	}
	cfg, err := config.LoadFiles(c.files, c.env)
	if err != nil {
		return err
	}
	at, data, err := editLabels(cfg.Files, name, l)
	if err != nil {
		return err
	}
	old := cfg.Files[at]
	if bytes.Equal(old.Data, data) {
		_, err = fmt.Fprintf(c.err, "%s says so already\n", textutil.Sanitize(old.Path))
		return err
	}
	if toolboxfile.IsPrebuilt(old.Path) {
		return usageError{fmt.Errorf("%s cannot be changed; \"rolecall migrate %[1]s\" prints it, and a copy can be changed", textutil.Sanitize(old.Path))}
	}
	files := slices.Clone(cfg.Files)
	files[at].Data = data
	changed, err := config.ReadFiles(files, c.env)
	if _, err := dryRunConfig(ctx, c, changed, err); err != nil {
		return fmt.Errorf("%s is not changed, because the configuration would be invalid: %w", old.Path, err)
	}
	if err := replaceUnchangedFile(old.Path, old.Data, data); err != nil {
		return fmt.Errorf("change %s: %w", old.Path, err)
	}
	_, err = fmt.Fprintf(c.err, "%s is changed\n", textutil.Sanitize(old.Path))
	return err
}

// replaceUnchangedFile replaces the content of a file in one step and keeps its mode. It rejects a file
// whose content is not old any more.
func replaceUnchangedFile(path string, old, data []byte) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	fresh := path + "." + rand.Text() + ".new" // a killed command may have left a file
	if err := createFile(fresh, data, info.Mode()); err != nil {
		return err
	}
	now, err := os.ReadFile(path)
	if err == nil && !bytes.Equal(now, old) {
		err = errors.New("it was changed meanwhile; run the command again")
	}
	if err == nil {
		err = os.Rename(fresh, path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(fresh))
	}
	return nil
}

// editLabels returns the index of the file with the document of a tool, and its content with
// the labels. The document of a tool of a server or module is added to the last file if it
// is missing.
func editLabels(files []yamldoc.File, name string, l toolboxfile.Labels) (at int, data []byte, err error) {
	last := 0
	for i, f := range files {
		if f.Named {
			continue
		}
		last = i
		if data, found, err := toolboxfile.SetLabels(f.Data, name, l); err != nil || found {
			return i, data, err
		}
	}
	id, ok := toolboxfile.ParseToolID(name)
	if !ok {
		return 0, nil, usageError{fmt.Errorf("no document of kind tool declares %q; \"rolecall migrate\" makes documents of older forms, and a tool of an MCP server or module is named SERVER/TOOL", textutil.Truncate(name, 100))}
	}
	data, err = toolboxfile.AppendLabels(files[last].Data, id, l)
	return last, data, err
}
