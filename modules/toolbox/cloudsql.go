package toolbox

import (
	"context"
	"maps"
	"net"
	"sync"

	"github.com/rolecall/rolecall/modules/toolbox/database"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// MissingConnector returns why this build cannot use a source, and which build can; "" if
// it can. Calls of the source's tools fail with tool_unavailable and this text.
func MissingConnector(s toolboxfile.Source) string {
	if s.Type != toolboxfile.SourceCloudSQLPostgres || hasConnector {
		return ""
	}
	return "this build of rolecall has no connector for cloud-sql-postgres; a build with the tag cloudsql has it: go build -tags cloudsql ./cmd/rolecall"
}

// connector dials instances of Cloud SQL. It has to be closed.
type connector interface {
	Dial(ctx context.Context, instance string) (net.Conn, error)
	Close() error
}

// useCloudSQL makes the database dial through the connector. The connector encrypts,
// so the driver does not.
func (p *pool) useCloudSQL(c Config, at *database.Config) error {
	instance := c.Source.Project + ":" + c.Source.Region + ":" + c.Source.Instance
	dial := c.CloudSQL
	if dial == nil {
		own := &lazyConnector{source: c.Source}
		dial, p.closeDialer = own.dial, own.close
	}
	at.Host = "cloudsql" // unused: the connector dials by instance
	at.Params = maps.Clone(at.Params)
	if at.Params == nil {
		at.Params = map[string]string{}
	}
	at.Params["sslmode"] = "disable"
	at.Dial = func(ctx context.Context, _ string) (net.Conn, error) { return dial(ctx, instance) }
	return nil
}

// lazyConnector creates its connector with the first connection, because creating it
// searches for the credentials of this machine.
type lazyConnector struct {
	source toolboxfile.Source

	mu     sync.Mutex // guards what follows
	inner  connector
	closed bool
}

func (c *lazyConnector) dial(ctx context.Context, instance string) (net.Conn, error) {
	made, err := c.connector(ctx)
	if err != nil {
		return nil, err
	}
	return made.Dial(ctx, instance)
}

func (c *lazyConnector) connector(ctx context.Context) (connector, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, net.ErrClosed
	}
	if c.inner == nil {
		made, err := newConnector(context.WithoutCancel(ctx), c.source.IPType)
		if err != nil {
			return nil, err
		}
		c.inner = made
	}
	return c.inner, nil
}

func (c *lazyConnector) close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	if c.inner == nil {
		return nil
	}
	return c.inner.Close()
}
