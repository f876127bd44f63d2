package cmd

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/org"
)

// checkTaskRole returns a usage error unless the role of a task exists, in the organization
// or in the configuration that will be applied to it, which may be nil. "" is root.
func checkTaskRole(c *common, o *org.Org, cfg *config.Config, name string) error {
	if _, err := o.FindRole(name); err == nil || name == "" {
		return nil
	}
	var known []string
	for _, r := range o.ListRoles() {
		known = append(known, r.Name)
	}
	if cfg != nil {
		for _, r := range cfg.Roles {
			if r.Name == name {
				return nil
			}
			known = append(known, r.Name)
		}
	}
	return unknownRole(c, name, known)
}

// unknownServedRole returns the usage error for a role that a serving process does not have.
func unknownServedRole(ctx context.Context, c *common, api *client.Client, name string) error {
	var known []string
	for r, err := range api.ListRoles(ctx) {
		if err != nil {
			break // the list is for a hint only
		}
		known = append(known, r.Name)
	}
	return unknownRole(c, name, known)
}

// unknownRole returns the usage error for a role that is not among known.
func unknownRole(c *common, name string, known []string) error {
	hint := textutil.SuggestName(name, known)
	if hint != "" {
		hint = " (" + hint + ")"
	}
	return usageError{fmt.Errorf("--role: there is no role %q%s; %q lists them", name, hint, "rolecall role list"+c.fileFlags()+c.dataFlag())}
}
