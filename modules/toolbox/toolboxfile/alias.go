package toolboxfile

import (
	"time"

	"github.com/rolecall/rolecall/internal/yamldoc"
)

// Databases that speak the protocol of PostgreSQL or MySQL have types of their own in Toolbox.
// They are read as what they speak.

// aliasToolTypes returns the types of tools for these databases.
func aliasToolTypes(postgres, mysql []string) []toolType {
	statement := []string{"statement"}
	all := []toolType{
		{"cockroachdb-sql", postgres, statementFields, statement, ToolPostgresSQL},
		{"cockroachdb-execute-sql", postgres, executeFields, nil, ToolPostgresExecute},
		{"cockroachdb-list-tables", postgres, listFields, nil, ToolPostgresListTables},
		{"yugabytedb-sql", postgres, statementFields, statement, ToolPostgresSQL},
		{"tidb-list-tables", mysql, listFields, nil, ToolMySQLListTables},
	}
	for _, name := range []string{"oceanbase", "singlestore", "tidb"} {
		all = append(all,
			toolType{name + "-sql", mysql, statementFields, statement, ToolMySQLSQL},
			toolType{name + "-execute-sql", mysql, executeFields, nil, ToolMySQLExecute})
	}
	return all
}

// The limits that Toolbox has for CockroachDB.
const (
	cockroachRows    = 1000
	cockroachTimeout = 30 * time.Second
)

// cockroachFields returns the fields of CockroachDB. As in Toolbox it is read only unless
// enableWriteMode is true. It is not known to have all functions that describe parts of tables.
func cockroachFields(it item, s *Source) yamldoc.Fields {
	s.NoTableParts = true
	s.ReadOnly, s.MaxRows, s.Timeout = true, cockroachRows, cockroachTimeout
	var writes bool
	var seconds int
	return yamldoc.MergeFields(postgresFields(it, s), yamldoc.Fields{
		"readOnlyMode": it.insteadOf("readOnly", yamldoc.BoolField(&s.ReadOnly)),
		"enableWriteMode": it.insteadOf("readOnly", it.insteadOf("readOnlyMode", func(v yamldoc.Value) {
			yamldoc.BoolField(&writes)(v)
			s.ReadOnly = !writes
		})),
		"maxRowLimit": it.insteadOf("maxRows", yamldoc.CountField(&s.MaxRows)),
		"queryTimeoutSec": it.insteadOf("timeout", func(v yamldoc.Value) {
			yamldoc.IntField(&seconds, int64(maxQueryTime/time.Second))(v)
			s.Timeout = time.Duration(seconds) * time.Second
		}),
	})
}

// mysqlAliasFields returns the fields of a database that speaks the protocol of MySQL. It is not
// known to reject changes in a transaction that only reads, so readOnly is not offered.
func mysqlAliasFields(it item, s *Source) yamldoc.Fields {
	all := mysqlFields(it, s)
	all["readOnly"] = func(v yamldoc.Value) {
		var on bool
		if yamldoc.BoolField(&on)(v); on {
			v.AddError("is not enforced by this type of database", "leave it out, and use an account that may only read")
		}
	}
	return all
}

// singleStoreFields returns the fields of SingleStore, whose queryParams are connectionParams.
func singleStoreFields(it item, s *Source) yamldoc.Fields {
	all := mysqlAliasFields(it, s)
	all["connectionParams"] = all["queryParams"]
	delete(all, "queryParams")
	return all
}

// tidbFields returns the fields of TiDB. With ssl the connection has TLS; there are no other
// parameters of the connection. TiDB rejects START TRANSACTION READ ONLY in its default settings.
func tidbFields(it item, s *Source) yamldoc.Fields {
	s.NoReadOnlyTransactions = true
	all := mysqlAliasFields(it, s)
	delete(all, "queryParams")
	all["ssl"] = func(v yamldoc.Value) {
		var on bool
		if yamldoc.BoolField(&on)(v); on {
			s.Params = map[string]string{"tls": "true"}
		}
	}
	return all
}
