package cmd

import (
	"cmp"
	"context"
	"errors"
	"io"
	"iter"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
	"github.com/rolecall/rolecall/org"
)

// Shells complete names of the organization. They come from the process that serves the
// data directory, or else from its files. The names of the documents of -f are added.
// Nothing is started and nothing is written for this. Without an organization there are no
// names.

// maxCompletions limits the names that a shell is offered.
const maxCompletions = 200

// completeTimeout is how long a shell waits for names.
const completeTimeout = time.Second

// nameSource yields names, and descriptions after a tab.
type nameSource struct {
	stored   func(context.Context, *client.Client) iter.Seq2[string, error] // of the organization; nil for none
	declared func(*config.Config) []string                                  // of the configuration of -f; nil for none
	fixed    []string
}

// Names that flags and arguments take.
var (
	roleNames        = nameSource{stored: listRoleNames, declared: declaredRoles}
	agentIDs         = nameSource{stored: listAgentIDs}
	taskIDs          = nameSource{stored: listTaskIDs, fixed: []string{lastTask}}
	groupNames       = nameSource{stored: listGroupNames}
	toolNames        = nameSource{stored: listToolNames}
	quarantinedNames = nameSource{stored: listQuarantinedTools}
	artifactIDs      = nameSource{stored: listArtifactIDs}
	modelNames       = nameSource{declared: declaredModels}
	callerNames      = nameSource{declared: declaredTokens}
	taskStatuses     = fixedNames(org.Running, org.Waiting, org.Paused, org.Interrupted, org.Done, org.Failed, org.Cancelled)
	agentStatuses    = fixedNames(org.AgentStarting, org.AgentThinking, org.AgentCalling, org.AgentWaiting, org.AgentPaused, org.AgentFinished, org.AgentTerminated)
)

func fixedNames[T ~string](words ...T) nameSource {
	var list nameSource
	for _, w := range words {
		list.fixed = append(list.fixed, string(w))
	}
	return list
}

// argumentNames are the names that a command takes as its first argument.
var argumentNames = map[string]nameSource{
	"role show": roleNames, "role update": roleNames, "role delete": roleNames,
	"agent show": agentIDs, "agent abort": agentIDs, "agent terminate": agentIDs, "agent send": agentIDs, "agent transcript": agentIDs,
	"task show": taskIDs, "task follow": taskIDs, "task retry": taskIDs, "task cancel": taskIDs, "pause": taskIDs, "resume": taskIDs,
	"group show": groupNames, "tool show": toolNames, "tool call": toolNames, "tool accept": quarantinedNames, "can": toolNames,
	"artifact show": artifactIDs, "artifact get": artifactIDs, "model test": modelNames,
}

// flagNames are the names that a flag takes, by its name in any command, or by the command
// and the name.
var flagNames = map[string]nameSource{
	"role": roleNames, "agent": agentIDs, "task": taskIDs, "group": groupNames, "agent-groups": groupNames, "tool": toolNames, "caller": callerNames, "resume": taskIDs,
	"prebuilt": fixedNames(toolboxfile.PrebuiltNames()...),
	"use":      groupNames, "grant": groupNames, "model": modelNames, "init model": fixedNames(starterModels...),
	"task list status": taskStatuses, "agent list status": agentStatuses, "pattern": fixedNames(org.React, org.Plan),
	"type": fixedNames(journal.EventTypes()...), "scope": fixedNames(config.MetricsScope), "log-format": fixedNames("text", "json"), "log-level": fixedNames("debug", "info", "warn", "error"),
}

// addCompletions lets shells complete the arguments and the flags of a command and of those
// below it.
func addCompletions(c *common, cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		addCompletions(c, sub)
	}
	name := commandName(cmd)
	if names, ok := argumentNames[name]; ok {
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if len(args) > 0 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return c.complete(cmd.Context(), names, prefix), cobra.ShellCompDirectiveNoFileComp
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		names, ok := flagNames[name+" "+f.Name]
		if !ok {
			names, ok = flagNames[f.Name]
		}
		if ok && f.Value.Type() != "bool" {
			_ = cmd.RegisterFlagCompletionFunc(f.Name, c.flagCompleter(f, names)) // it fails for unknown flags only
		}
	})
}

// flagCompleter completes the value of a flag, of a list after its last comma.
func (c *common) flagCompleter(f *pflag.Flag, names nameSource) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, prefix string) ([]cobra.Completion, cobra.ShellCompDirective) {
		before := ""
		if f.Value.Type() == "stringSlice" {
			before = prefix[:strings.LastIndex(prefix, ",")+1]
		}
		list := c.complete(cmd.Context(), names, strings.TrimPrefix(prefix, before))
		for i := range list {
			list[i] = before + list[i]
		}
		return list, cobra.ShellCompDirectiveNoFileComp
	}
}

// complete returns the names that begin with a prefix, at most maxCompletions. It gives up
// after completeTimeout; what it has begun then ends with the process.
func (c *common) complete(ctx context.Context, names nameSource, prefix string) []cobra.Completion {
	quiet, limit := *c, cmp.Or(c.answerTimeout, completeTimeout)
	quiet.files, quiet.out, quiet.err, quiet.verbose, quiet.answerTimeout = nil, io.Discard, io.Discard, false, limit
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	found := make(chan []string, 1)
	go func() {
		list := matching(slices.Values(names.fixed), prefix)
		if cfg, err := loadConfig(c); err == nil && cfg != nil && names.declared != nil {
			list = append(list, matching(slices.Values(names.declared(cfg)), prefix)...)
		}
		if names.stored != nil {
			list = append(list, quiet.storedNames(ctx, names, prefix)...)
		}
		found <- distinct(list)
	}()
	select {
	case list := <-found:
		return list[:min(len(list), maxCompletions)]
	case <-ctx.Done():
		return nil
	}
}

// storedNames returns the names of the organization that begin with a prefix, none if it
// cannot be read.
func (c *common) storedNames(ctx context.Context, names nameSource, prefix string) []string {
	if known, err := hasData(c.data); c.getenv(urlVariable) == "" && (!known || err != nil) {
		return nil
	}
	api, err := dialServing(ctx, c)
	done := func(error) error { return api.Close() }
	if errors.Is(err, client.ErrNotServed) {
		api, done, err = openApp(ctx, c, sessionOptions{readOnly: true})
	}
	if err != nil {
		return nil
	}
	list := matching(stopAtError(names.stored(ctx, api)), prefix)
	_ = done(nil) // only read
	return list
}

// stopAtError yields the items of a sequence up to the first error.
func stopAtError(seq iter.Seq2[string, error]) iter.Seq[string] {
	return func(yield func(string) bool) {
		for name, err := range seq {
			if err != nil || !yield(name) {
				return
			}
		}
	}
}

// matching returns the first maxCompletions names that begin with a prefix and that a shell
// reads as a word.
func matching(names iter.Seq[string], prefix string) (list []string) {
	for name := range names {
		word, _, _ := strings.Cut(name, "\t")
		if strings.HasPrefix(word, prefix) && isShellWord(word) {
			list = append(list, name)
		}
		if len(list) == maxCompletions {
			break
		}
	}
	return list
}

// distinct returns the names in order, each once. Several entries may have the same name with
// different descriptions. bash would write their common part into the line.
func distinct(names []string) []string {
	word := func(name string) string { before, _, _ := strings.Cut(name, "\t"); return before }
	slices.Sort(names)
	return slices.CompactFunc(names, func(a, b string) bool { return word(a) == word(b) })
}

// isShellWord reports whether every shell takes a name for a word and no option, without
// quotes. Agents choose names of roles, and bash does not quote what several names have in
// common: it would run $(…) in them.
func isShellWord(name string) bool {
	special := func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.:/@+=,%", r)
	}
	return name != "" && !strings.ContainsAny(name[:1], "-=") && !strings.ContainsFunc(name, special)
}

// withDescription returns a name with a description for shells.
func withDescription(name, text string) string {
	return name + "\t" + textutil.TruncateWidth(textutil.Sanitize(textutil.OneLine(text, 4*maxCell)), maxCell)
}

// mapped yields f of the items of a sequence.
func mapped[T any](seq iter.Seq2[T, error], f func(T) string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for item, err := range seq {
			if err != nil {
				yield("", err)
				return
			}
			if !yield(f(item), nil) {
				return
			}
		}
	}
}

func listRoleNames(ctx context.Context, api *client.Client) iter.Seq2[string, error] {
	return mapped(api.ListRoles(ctx), func(r client.Role) string { return withDescription(r.Name, r.Description) })
}

func listAgentIDs(ctx context.Context, api *client.Client) iter.Seq2[string, error] {
	return mapped(api.ListAgents(ctx, "", ""), func(a client.Agent) string { return withDescription(string(a.ID), a.Role+", "+string(a.Status)) })
}

func listTaskIDs(ctx context.Context, api *client.Client) iter.Seq2[string, error] {
	return mapped(api.QueryTasks(ctx, client.TaskQuery{Limit: maxCompletions}), func(t client.Task) string { return withDescription(string(t.ID), string(t.Status)+"  "+t.Text) })
}

func listGroupNames(ctx context.Context, api *client.Client) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for g, err := range api.ListGroups(ctx) {
			if !yield(string(g.ID), err) || err != nil || !yield(string(g.ID.ReadPart()), nil) {
				return
			}
		}
	}
}

func listToolNames(ctx context.Context, api *client.Client) iter.Seq2[string, error] {
	return mapped(api.ListTools(ctx, ""), func(t client.Tool) string { return t.Name })
}

func listQuarantinedTools(ctx context.Context, api *client.Client) iter.Seq2[string, error] {
	return mapped(api.ListQuarantine(ctx), func(t client.QuarantinedTool) string { return t.Name })
}

func listArtifactIDs(ctx context.Context, api *client.Client) iter.Seq2[string, error] {
	return mapped(api.ListArtifacts(ctx, ""), func(a client.Artifact) string { return withDescription(a.ID, a.Type) })
}

func declaredRoles(cfg *config.Config) (names []string) {
	for _, r := range cfg.Roles {
		names = append(names, r.Name)
	}
	return names
}

func declaredModels(cfg *config.Config) (names []string) {
	for _, m := range cfg.Models {
		names = append(names, m.Name)
	}
	return names
}

func declaredTokens(cfg *config.Config) (names []string) {
	for _, t := range cfg.Gateway.Tokens {
		names = append(names, t.Name)
	}
	return names
}
