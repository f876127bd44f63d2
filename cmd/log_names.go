package cmd

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/textutil"
)

// checkNames returns an error if a filter names a role or a tool that neither the organization
// has nor an event names, or a caller that no event names. What was deleted since is still on
// record. A caller whose events are followed may begin later.
func checkNames(ctx context.Context, api *client.Client, q client.EventQuery, follow bool) error {
	for _, filter := range []struct {
		name string
		only client.EventQuery
		find func() error
	}{
		{q.Role, client.EventQuery{Role: q.Role}, func() error { _, err := api.FindRole(ctx, q.Role); return err }},
		{q.Tool, client.EventQuery{Tool: q.Tool}, func() error { _, err := api.FindTool(ctx, q.Tool); return err }},
	} {
		if filter.name == "" {
			continue
		}
		unknown := filter.find()
		if unknown == nil || isForOperator(unknown) {
			continue
		}
		if found, err := hasEvent(ctx, api, filter.only); err != nil || !found {
			return cmp.Or(err, unknown)
		}
	}
	return checkCaller(ctx, api, q.Caller, follow)
}

// hasEvent reports whether an event matches.
func hasEvent(ctx context.Context, api *client.Client, q client.EventQuery) (bool, error) {
	found, err := api.NewestEvents(ctx, q, 1)
	return len(found.Items) > 0, err
}

// checkCaller returns an error if a caller has no events, unless it may have none yet. The tasks
// are listed only for the hint of that error.
func checkCaller(ctx context.Context, api *client.Client, name string, follow bool) error {
	if name == "" || follow || name == identity.ByOperator("").String() {
		return nil
	}
	if found, err := hasEvent(ctx, api, client.EventQuery{Caller: name}); err != nil || found {
		return err
	}
	unknown := errUnknownCaller(ctx, api, name)
	if isForOperator(unknown) {
		return nil
	}
	return unknown
}

// errUnknownCaller returns an error that names the most similar caller of the tasks.
func errUnknownCaller(ctx context.Context, api *client.Client, name string) error {
	var known []string
	for t, err := range api.ListTasks(ctx, "") {
		if err != nil {
			return err
		}
		caller := t.Caller
		if p, external := identity.ParseCaller(t.Caller); external {
			caller = string(p.User)
		}
		known = append(known, caller)
	}
	return errcode.New(errcode.InvalidArguments, "%s", textutil.AddHint(fmt.Sprintf("no call or task of a caller %.100q is on record", name), textutil.SuggestName(name, known)))
}
