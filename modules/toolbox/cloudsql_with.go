//go:build cloudsql

package toolbox

import (
	"context"
	"net"

	"cloud.google.com/go/cloudsqlconn"
)

// hasConnector says whether the build has Google's connector.
const hasConnector = true

// newConnector makes Google's connector with the credentials of this machine.
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
	return google{d}, nil
}

// google is a connector.
type google struct{ dialer *cloudsqlconn.Dialer }

func (g google) Dial(ctx context.Context, instance string) (net.Conn, error) {
	return g.dialer.Dial(ctx, instance)
}

func (g google) Close() error { return g.dialer.Close() }
