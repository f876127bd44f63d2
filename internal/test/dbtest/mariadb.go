package dbtest

import (
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

var mariadb = server{
	name: "mariadb", account: "mysql", ready: "ready for connections",
	prepare: func(s *server) error {
		return s.must("mariadb-install-db", "--no-defaults", "--datadir="+filepath.Join(s.dir, "data"),
			"--auth-root-authentication-method=normal", "--skip-test-db", "--skip-log-bin")
	},
	argv: func(s *server) []string {
		return []string{"mariadbd", "--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"), "--socket=" + s.socket(),
			"--bind-address=127.0.0.1", "--port=" + strconv.Itoa(s.port), "--pid-file=" + filepath.Join(s.dir, "pid"),
			"--innodb-flush-log-at-trx-commit=0", "--innodb-buffer-pool-size=32M", "--skip-log-bin"}
	},
}

func (s *server) socket() string { return filepath.Join(s.dir, "socket") }

// MariaDB gives an empty database of a real MariaDB. The test is skipped where
// there is none.
func MariaDB(t testing.TB) Database {
	t.Helper()
	mariadb.started(t, "mariadbd", "mariadb-install-db", "mariadb")
	db := mariadb.database("tester", mariadb.fresh())
	quoted := "'" + strings.ReplaceAll(db.Password, "'", "''") + "'"
	sql := "CREATE DATABASE " + db.Name + " CHARACTER SET utf8mb4;" +
		"CREATE USER IF NOT EXISTS " + db.User + "@'127.0.0.1' IDENTIFIED BY " + quoted + ";" +
		"CREATE USER IF NOT EXISTS " + db.User + "@'localhost' IDENTIFIED BY " + quoted + ";" +
		"GRANT ALL ON " + db.Name + ".* TO " + db.User + "@'127.0.0.1', " + db.User + "@'localhost';"
	if err := mariadb.must("mariadb", "--no-defaults", "--socket="+mariadb.socket(), "--user=root", "--execute="+sql); err != nil {
		t.Fatal(err)
	}
	return db
}
