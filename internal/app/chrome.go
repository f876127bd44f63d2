package app

import (
	"context"
	"encoding/json"

	"github.com/rolecall/rolecall/builtin"
	"github.com/rolecall/rolecall/modules"
	"github.com/rolecall/rolecall/modules/chrome"
	"github.com/rolecall/rolecall/tool"
)

// chrome returns the module kind that provides a browser. Its pages may reach the
// same hosts as the tool http_request.
func (a *App) chrome() modules.ModuleKind {
	return modules.ModuleKind{Name: chrome.Kind, New: chrome.New(chrome.Deps{
		Launcher:  a.options.Launcher,
		Policy:    func() chrome.Policy { return browserPolicy(a.limits.requests()) },
		Hosts:     a.Runtime.ToolHost(),
		Artifacts: images{a.Runtime.ToolHost()},
	})}
}

// browserPolicy converts the network policy of the built-in tools.
func browserPolicy(p builtin.NetworkPolicy) chrome.Policy {
	return chrome.Policy{AllowHTTP: p.AllowHTTP, Private: p.Private, Hosts: p.Hosts}
}

// images stores screenshots as artifacts.
type images struct{ store builtin.ArtifactStore }

// PutImage implements chrome.Artifacts.
func (i images) PutImage(ctx context.Context, c tool.Call, mediaType string, data []byte, meta json.RawMessage) (string, error) {
	return i.store.PutArtifact(ctx, c, builtin.Artifact{Type: mediaType, Data: data, Meta: meta})
}
