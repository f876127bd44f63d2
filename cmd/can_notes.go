package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/gateway/client"
	"github.com/rolecall/rolecall/internal/textutil"
	"github.com/rolecall/rolecall/toolgroups"
)

// addServerHint adds to the reason of an unknown tool what may have it: MCP servers, or the
// configuration that was not given.
func addServerHint(ctx context.Context, c *common, api *client.Client, code errcode.Code, reason string) (string, error) {
	if code != errcode.UnknownTool {
		return reason, nil
	}
	hint, err := serverHint(ctx, c, api)
	return textutil.AddHint(c.addConfigHint(api, reason), hint), err
}

// addConfigHint adds a hint to the reason of an unknown tool if there is neither -f nor a serving
// process. Only these make the tools of a configuration known.
func (c *common) addConfigHint(api *client.Client, reason string) string {
	if len(c.files) > 0 || !api.IsLocal() {
		return reason
	}
	return textutil.AddHint(reason, "without -f the tools of sources, MCP servers and modules are not known")
}

// serverHint names the MCP servers of the configuration given with -f whose tools are not
// known. It returns "" if there are no such servers. A command that only looks connects no server.
func serverHint(ctx context.Context, c *common, api *client.Client) (string, error) {
	cfg, err := loadConfig(c)
	if err != nil || cfg == nil || len(cfg.MCPServers) == 0 {
		return "", err
	}
	known := map[toolgroups.GroupOwner]bool{}
	for g, err := range api.ListGroups(ctx) {
		if err != nil {
			return "", err
		}
		known[g.Owner] = known[g.Owner] || g.Count > 0
	}
	var names []string
	for _, s := range cfg.MCPServers {
		if !known[toolgroups.ServerOwner(s.Name)] {
			names = append(names, fmt.Sprintf("%q", s.Name))
		}
	}
	if len(names) == 0 {
		return "", nil
	}
	return fmt.Sprintf("the tools of %s are not known, because it was never connected: \"rolecall serve%s\" connects it", "MCP server "+strings.Join(names, " and of "), c.fileFlags()), nil
}

// noteEndedTask says on stderr if the task of an agent has ended. The tools that the agent may call
// are then the tools that it may call after a retry.
func noteEndedTask(ctx context.Context, c *common, api *client.Client, agent string) error {
	a, err := api.FindAgent(ctx, agent)
	if err != nil || a.Task == "" { // the question itself reports an unknown agent
		return nil
	}
	task, err := api.FindTask(ctx, string(a.Task))
	if err == nil && task.Status.Ended() {
		fmt.Fprintf(c.err, "~ the task of this agent has ended (%s); the agent calls nothing unless the task is retried\n", task.Status)
	}
	return err
}
