package toolbox

import (
	"context"
	"maps"
	"net"
	"sync"

	"github.com/rolecall/rolecall/config"
	"github.com/rolecall/rolecall/modules/toolbox/database"
)

// connector reaches instances of Cloud SQL. Close it.
type connector interface {
	Dial(ctx context.Context, instance string) (net.Conn, error)
	Close() error
}

// throughCloud has a database reached through the connector, which encrypts:
// the driver does not do so again.
func (p *pool) throughCloud(c Config, at *database.Config) error {
	instance := c.Source.Project + ":" + c.Source.Region + ":" + c.Source.Instance
	dial := c.CloudSQL
	if dial == nil {
		own := &cloud{source: c.Source}
		dial, p.shut = own.dial, own.close
	}
	at.Host = "cloudsql" // named by the instance instead
	at.Params = maps.Clone(at.Params)
	if at.Params == nil {
		at.Params = map[string]string{}
	}
	at.Params["sslmode"] = "disable"
	at.Dial = func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, instance) }
	return nil
}

// cloud is a connector that is made with the first connection: that looks for
// the credentials of this machine.
type cloud struct {
	source config.Source

	mu    sync.Mutex // guards made
	made  connector
	ended bool
}

func (c *cloud) dial(ctx context.Context, instance string) (net.Conn, error) {
	made, err := c.connector(ctx)
	if err != nil {
		return nil, err
	}
	return made.Dial(ctx, instance)
}

func (c *cloud) connector(ctx context.Context) (connector, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.ended {
		return nil, net.ErrClosed
	}
	if c.made == nil {
		made, err := newConnector(context.WithoutCancel(ctx), c.source.IPType)
		if err != nil {
			return nil, err
		}
		c.made = made
	}
	return c.made, nil
}

func (c *cloud) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ended = true
	if c.made == nil {
		return nil
	}
	return c.made.Close()
}
