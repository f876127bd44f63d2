package client

import (
	"context"
	"iter"
	"net/http"

	"github.com/rolecall/rolecall/gateway/wire"
)

// ListConfigItems lists the applied configuration items, sorted by kind and name.
func (c *Client) ListConfigItems(ctx context.Context) iter.Seq2[ConfigItem, error] {
	return listAll[ConfigItem](ctx, c, apiPath("config", "items"), nil)
}

// ApplyConfigItem applies a configuration item, whose text is YAML or JSON. An item that is not
// valid changes nothing, and the error has the code InvalidConfig.
func (c *Client) ApplyConfigItem(ctx context.Context, kind, name, text string) (ConfigItem, error) {
	return doJSON[ConfigItem](ctx, c, request{method: http.MethodPut, path: apiPath("config", "items", kind, name), body: wire.ConfigItemRequest{Text: text}})
}

// DeleteConfigItem deletes an applied configuration item and returns it as it was.
func (c *Client) DeleteConfigItem(ctx context.Context, kind, name string) (ConfigItem, error) {
	return doJSON[ConfigItem](ctx, c, request{method: http.MethodDelete, path: apiPath("config", "items", kind, name)})
}
