package cmd

import (
	"context"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/internal/textutil"
)

// checkTaskRole returns a usage error unless the role of a task exists. It may exist in the
// organization, or in the configuration that will be applied to it, which may be nil. "" is root.
func checkTaskRole(ctx context.Context, c *common, api *client.Client, cfg *config.Config, name string) error {
	if name == "" {
		return nil
	}
	if _, err := api.FindRole(ctx, name); errcode.CodeOf(err) != errcode.RoleNotFound {
		return err
	}
	var declared []string
	if cfg != nil {
		for _, r := range cfg.Roles {
			if r.Name == name {
				return nil
			}
			declared = append(declared, r.Name)
		}
	}
	return errUnknownRole(ctx, c, api, name, declared)
}

// errUnknownRole returns the usage error for the role of a task that neither the organization
// has nor the configuration declares.
func errUnknownRole(ctx context.Context, c *common, api *client.Client, name string, declared []string) error {
	known := declared
	for r, err := range api.ListRoles(ctx) {
		if err != nil {
			break // the list is for a hint only
		}
		known = append(known, r.Name)
	}
	hint := textutil.SuggestName(name, known)
	if hint != "" {
		hint = " (" + hint + ")"
	}
	return usageError{fmt.Errorf("--role: there is no role %q%s; %q lists them", name, hint, "rolecall role list"+c.fileFlags()+c.dataFlag())}
}
