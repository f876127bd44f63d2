//go:build !cloudsql

package toolbox_test

import (
	"strings"
	"testing"

	"github.com/rolecall/rolecall/errcode"
	"github.com/rolecall/rolecall/modules/toolbox"
	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

func TestCloudSQL_BuildWithoutConnectorNamesTag(t *testing.T) {
	_, err := toolbox.New(toolbox.Config{Source: toolboxfile.Source{Name: "pg", Type: toolboxfile.SourceCloudSQLPostgres}, Pools: new(toolbox.Pools)})
	if errcode.CodeOf(err) != errcode.InvalidConfig || !strings.Contains(err.Error(), "-tags cloudsql") {
		t.Errorf("got %v", err)
	}
}
