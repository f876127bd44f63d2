package app

import (
	"github.com/rolecall/rolecall/gateway/auth"
	"github.com/rolecall/rolecall/internal/config"
	"github.com/rolecall/rolecall/toolgroups"
)

// gatewayNetworks returns the networks of an installed configuration. Their groups are bound to
// the owners that the configuration named for them.
func (a *App) gatewayNetworks(cfg *config.Config) (list []auth.Network) {
	for _, n := range cfg.Gateway.Networks {
		groups := toolgroups.SetOfNames(n.Groups.IDs...)
		if n.Groups.All {
			groups = toolgroups.AllGroups()
		}
		within := a.Runtime.Org().LimitTo(groups)
		for _, from := range n.From {
			list = append(list, auth.Network{From: from, Within: within})
		}
	}
	return list
}
