//go:build !cloudsql

package toolbox

import (
	"context"
	"errors"
)

// hasConnector reports whether the build includes Google's connector. Its dependencies
// are larger than all others together.
const hasConnector = false

func newConnector(context.Context, string) (connector, error) {
	return nil, errors.New("this build has no connector for cloud-sql-postgres")
}
