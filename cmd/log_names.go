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

// checkNames returns an error if a filter names a role, a tool or a caller that neither the
// organization has nor an event names. What was deleted since is still on record. A caller
// whose events are followed may begin later.
func checkNames(ctx context.Context, api *client.Client, q client.EventQuery, follow bool) error {
	for _, filter := range []struct {
		name string
		only client.EventQuery
		find func() error
	}{
		{q.Role, client.EventQuery{Role: q.Role}, func() error { _, err := api.FindRole(ctx, q.Role); return err }},
		{q.Tool, client.EventQuery{Tool: q.Tool}, func() error { _, err := api.FindTool(ctx, q.Tool); return err }},
		{q.Caller, client.EventQuery{Caller: q.Caller}, func() error { return checkCaller(ctx, api, q.Caller, follow) }},
	} {
		if filter.name == "" {
			continue
		}
		unknown := filter.find()
		if unknown == nil || isForOperator(unknown) {
			continue
		}
		if recorded, err := api.NewestEvents(ctx, filter.only, 1); err != nil || len(recorded.Items) == 0 {
			return cmp.Or(err, unknown)
		}
	}
	return nil
}

// checkCaller returns an error that names the most similar caller of the tasks unless a caller
// may have no events yet.
func checkCaller(ctx context.Context, api *client.Client, name string, follow bool) error {
	if follow || name == identity.ByOperator("").String() {
		return nil
	}
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
