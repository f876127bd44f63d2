package toolboxfile_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/rolecall/rolecall/modules/toolbox/toolboxfile"
)

// Databases that speak the protocol of another are read as it, with the fields and defaults that
// Toolbox has for them.
func TestSource_Aliases(t *testing.T) {
	type limits struct {
		Type     string
		ReadOnly bool
		MaxRows  int
		Timeout  time.Duration
		TLS      string
	}
	for fields, want := range map[string]limits{
		"type: cockroachdb": {toolboxfile.SourcePostgres, true, 1000, 30 * time.Second, ""},
		"type: cockroachdb, enableWriteMode: true, maxRowLimit: 7, queryTimeoutSec: 9": {toolboxfile.SourcePostgres, false, 7, 9 * time.Second, ""},
		"type: cockroachdb, readOnlyMode: false":                                       {toolboxfile.SourcePostgres, false, 1000, 30 * time.Second, ""},
		"type: cockroachdb, readOnly: false":                                           {toolboxfile.SourcePostgres, false, 1000, 30 * time.Second, ""},
		"type: yugabytedb, readOnly: true":                                             {toolboxfile.SourcePostgres, true, 0, 0, ""},
		"type: oceanbase, queryTimeout: 4s":                                            {toolboxfile.SourceMySQL, false, 0, 4 * time.Second, ""},
		"type: singlestore, connectionParams: {tls: preferred}":                        {toolboxfile.SourceMySQL, false, 0, 0, "preferred"},
		"type: tidb, ssl: true":                                                        {toolboxfile.SourceMySQL, false, 0, 0, "true"},
		"type: tidb, ssl: false":                                                       {toolboxfile.SourceMySQL, false, 0, 0, ""},
	} {
		d, err := read(t, fmt.Sprintf("{kind: source, name: db, host: h, port: 1, user: u, database: d, %s}", fields))
		if err != nil || len(d.Sources) != 1 {
			t.Errorf("%s: %v", fields, err)
			continue
		}
		s := d.Sources[0]
		if got := (limits{s.Type, s.ReadOnly, s.MaxRows, s.Timeout, s.Params["tls"]}); got != want {
			t.Errorf("%s: got %+v, want %+v", fields, got, want)
		}
	}
	for _, fields := range []string{
		"type: cockroachdb, enableWriteMode: true, readOnlyMode: true", "type: cockroachdb, enableWriteMode: true, readOnly: true",
		"type: cockroachdb, queryTimeoutSec: 3601", "type: cockroachdb, queryTimeoutSec: 0", "type: cockroachdb, maxRowLimit: 1, maxRows: 2",
		"type: tidb, readOnly: true", "type: singlestore, readOnly: true", "type: oceanbase, readOnly: true",
		"type: tidb, queryParams: {tls: skip-verify}", "type: singlestore, queryParams: {tls: skip-verify}",
	} {
		wantRejected(t, fmt.Sprintf("{kind: source, name: db, host: h, port: 1, user: u, database: d, %s}", fields))
	}
}
