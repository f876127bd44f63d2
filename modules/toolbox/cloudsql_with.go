//go:build cloudsql

package toolbox

import (
	"context"
	"net"

	"cloud.google.com/go/cloudsqlconn"
)

// hasConnector reports whether the build includes Google's connector.
const hasConnector = true

// newConnector returns Google's connector with the credentials of this machine.
func newConnector(ctx context.Context, ipType string) (connector, error) {
	network := cloudsqlconn.WithPublicIP()
	switch ipType {
	case "private":
		network = cloudsqlconn.WithPrivateIP()
	case "psc":
		network = cloudsqlconn.WithPSC()
	}
	d, err := cloudsqlconn.NewDialer(ctx, cloudsqlconn.WithLazyRefresh(), cloudsqlconn.WithDefaultDialOptions(network))
	if err != nil {
		return nil, err
	}
	return googleConnector{d}, nil
}

// googleConnector implements connector.
type googleConnector struct{ dialer *cloudsqlconn.Dialer }

func (g googleConnector) Dial(ctx context.Context, instance string) (net.Conn, error) {
	return g.dialer.Dial(ctx, instance)
}

func (g googleConnector) Close() error { return g.dialer.Close() }
