package dbtest

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var mariadb = server{
	name: "mariadb", account: "mysql", readyLine: "ready for connections",
	prepare: func(s *server) error {
		return s.runProgram("mariadb-install-db", "--no-defaults", "--datadir="+filepath.Join(s.dir, "data"),
			"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-log-bin")
	},
	argv: func(s *server) []string {
		return []string{"mariadbd", "--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"), "--socket=" + s.socketPath(),
			"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(s.port), "--pid-file=" + filepath.Join(s.dir, "pid"),
			"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--skip-log-bin",
			"--performance-schema=ON", "--performance-schema-instrument=statement/%=ON"}
	},
}

func (s *server) socketPath() string { return filepath.Join(s.dir, "socket") }

// NewMariaDB returns an empty database on a real MariaDB. With -short it skips the
// test.
func NewMariaDB(t testing.TB) Database { return newMariaDB(t, "tester", "") }

// NewObservedMariaDB is NewMariaDB with an account that may also see what the whole server does.
func NewObservedMariaDB(t testing.TB) Database {
	return newMariaDB(t, "observer", "GRANT PROCESS ON *.* TO %[1]s; GRANT SELECT ON performance_schema.* TO %[1]s; GRANT SELECT, EXECUTE ON sys.* TO %[1]s;")
}

// newMariaDB returns a database of a user. The statements in more contain its account as %[1]s.
func newMariaDB(t testing.TB, user, more string) Database {
	t.Helper()
	mariadb.ensureStarted(t, "mariadbd", "mariadb-install-db", "mariadb")
	db := mariadb.connection(user, mariadb.newDatabaseName())
	quoted := "'" + strings.ReplaceAll(db.Password, "'", "''") + "'"
	sql := "CREATE DATABASE " + db.Name + " CHARACTER SET utf8mb4;" +
		"CREATE USER IF NOT EXISTS " + db.User + "@'127.0.0.1' IDENTIFIED BY " + quoted + ";" +
		"CREATE USER IF NOT EXISTS " + db.User + "@'localhost' IDENTIFIED BY " + quoted + ";" +
		"GRANT ALL ON " + db.Name + ".* TO " + db.User + "@'127.0.0.1', " + db.User + "@'localhost';"
	for _, host := range []string{"127.0.0.1", "localhost"} {
		sql += strings.ReplaceAll(more, "%[1]s", db.User+"@'"+host+"'")
	}
	if err := mariadb.runProgram("mariadb", "--no-defaults", "--socket="+mariadb.socketPath(), "--user=root", "--execute="+sql); err != nil {
		t.Fatal(err)
	}
	return db
}
