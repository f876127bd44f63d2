//go:build !cloudsql

package toolbox

import (
	"context"
	"errors"
)

// hasConnector says whether the build has Google's connector, whose
// dependencies weigh more than all others together.
const hasConnector = false

func newConnector(context.Context, string) (connector, error) {
	return nil, errors.New("this build has no connector for cloud-sql-postgres")
}
