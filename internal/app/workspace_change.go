package app

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/rolecall/rolecall/internal/config"
)

// describeWorkspaces returns what a change of the configuration changes in workspaces. These are
// workspaces with a name, and workspaces of the organization, roles and tokens.
func describeWorkspaces(before, after *config.Config) (list []string) {
	if before == nil {
		return nil
	}
	old, now := workspaceTexts(before), workspaceTexts(after)
	all := maps.Clone(old)
	maps.Copy(all, now)
	for _, of := range slices.Sorted(maps.Keys(all)) {
		if old[of] != now[of] {
			list = append(list, fmt.Sprintf("the workspace %s is %s; it was %s", of, cmp.Or(now[of], "none"), cmp.Or(old[of], "none")))
		}
	}
	if more := len(list) - maxChanges; more > 0 {
		list = append(list[:maxChanges], fmt.Sprintf("%d more changes of workspaces", more))
	}
	return list
}

// workspaceTexts returns the directories of the workspaces of a configuration, by what has
// them.
func workspaceTexts(cfg *config.Config) map[string]string {
	texts := map[string]string{}
	add := func(of string, w config.Workspace) {
		texts[of] = w.Path
		if w.ReadOnly {
			texts[of] += ", read-only"
		}
	}
	for _, w := range cfg.Workspaces {
		add(w.Name, w)
	}
	field := func(of string, f config.WorkspaceField) {
		if w, ok := cfg.FindWorkspace(f); ok {
			add(of, w)
		}
	}
	field("of the organization", cfg.Organization.Workspace)
	for _, r := range cfg.Roles {
		field("of role "+r.Name, r.Workspace)
	}
	for _, t := range cfg.Gateway.Tokens {
		field("of token "+t.Name, t.Workspace)
	}
	return texts
}
