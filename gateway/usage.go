package gateway

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/gateway/wire"
	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/runtime"
)

// usageKeys are the words of the query parameter by.
var usageKeys = []runtime.UsageKey{runtime.UsageByCaller, runtime.UsageByRole, runtime.UsageByServer, runtime.UsageByTool}

// showUsage counts calls, tokens and costs in the record. A caller sees its own usage, with the
// servers of the tools that it sees. The server of a tool is its owner: a module, a source, an MCP
// server or the program itself.
func (a *api) showUsage(r *http.Request) (any, error) {
	var q runtime.UsageQuery
	var err error
	if q.By, err = parseUsageKeys(r.URL.Query()["by"]); err != nil {
		return nil, err
	}
	for _, bound := range []struct {
		name string
		to   *time.Time
	}{{"from", &q.From}, {"to", &q.To}} {
		if *bound.to, err = timeParam(r, bound.name); err != nil {
			return nil, err
		}
	}
	q.ServerOf = a.visibilityFor(r).serverOf
	if sender := auth.SenderOf(r); sender.Kind != identity.Operator {
		q.Caller = sender
	}
	report, err := a.rt.ReportUsage(r.Context(), q)
	if err != nil {
		return nil, err
	}
	out := wire.UsageReport{Items: []wire.UsageRow{}, Total: usageTotal(report.Total)}
	for _, row := range report.Rows {
		out.Items = append(out.Items, wire.UsageRow{Caller: row.Caller, Role: row.Role, Server: row.Server, Tool: row.Tool, UsageTotal: usageTotal(row.AgentTally)})
	}
	if report.Rest != (runtime.AgentTally{}) {
		out.Rest = new(usageTotal(report.Rest))
	}
	return out, nil
}

// usageTotal converts a tally.
func usageTotal(t runtime.AgentTally) wire.UsageTotal {
	return wire.UsageTotal{Calls: wire.CallCounts{Total: t.Calls, Denied: t.Denied}, Usage: t.Usage}
}

// parseUsageKeys parses the query parameter by. Each of the texts is a list, separated by commas.
func parseUsageKeys(texts []string) (list []runtime.UsageKey, err error) {
	for _, text := range texts {
		for name := range strings.SplitSeq(text, ",") {
			key := runtime.UsageKey(strings.TrimSpace(name))
			if !slices.Contains(usageKeys, key) {
				return nil, errcode.New(errcode.InvalidArguments, "query parameter \"by\" has %.100q; want some of caller, role, server, tool", name).With("field", "by")
			}
			list = append(list, key)
		}
	}
	return list, nil
}

// timeParam parses a query parameter: a time, or how long ago it was; the zero time without it.
func timeParam(r *http.Request, name string) (time.Time, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return time.Time{}, nil
	}
	at, err := wire.ParseTime(text, time.Now())
	if err != nil {
		return at, errcode.New(errcode.InvalidArguments, "query parameter %q is %.100q; want a time such as 2026-01-31T08:00:00Z, or a duration before now such as 24h", name, text).With("field", name)
	}
	return at, nil
}
