package dbtest

import (
	"cmp"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx" of OpenPostgres
)

var postgres = server{
	name: "postgres", account: "postgres", readyLine: "ready to accept connections",
	prepare: func(s *server) error {
		secret := filepath.Join(s.dir, "password")
		if err := os.WriteFile(secret, []byte(password+"\n"), 0o644); err != nil {
			return err
		}
		return s.runProgram(postgresProgram("initdb"), "-D", filepath.Join(s.dir, "data"), "-U", "tester",
			"--auth=scram-sha-256", "--pwfile="+secret, "--encoding=UTF8", "--no-sync")
	},
	argv: func(s *server) []string {
		return []string{postgresProgram("postgres"), "-D", filepath.Join(s.dir, "data"), "-p", strconv.Itoa(s.port),
			"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + s.dir, "-c", "fsync=off",
			"-c", "shared_preload_libraries=pg_stat_statements"}
	},
}

// NewPostgres returns an empty database on a real PostgreSQL. With -short it skips the
// test.
func NewPostgres(t testing.TB) Database {
	t.Helper()
	postgres.ensureStarted(t, postgresProgram("initdb"), postgresProgram("postgres"), postgresProgram("createdb"))
	db := postgres.connection("tester", postgres.newDatabaseName())
	if err := postgres.runProgram(postgresProgram("createdb"), "-h", postgres.dir, "-p", strconv.Itoa(db.Port), "-U", db.User, db.Name); err != nil {
		t.Fatal(err)
	}
	return db
}

// OpenPostgres opens a database of NewPostgres, for checks by the test itself. It is closed
// with the test.
func OpenPostgres(t testing.TB, db Database) *sql.DB {
	t.Helper()
	conn, err := sql.Open("pgx", fmt.Sprintf("host=%s port=%d user=%s dbname=%s sslmode=disable password='%s'",
		db.Host, db.Port, db.User, db.Name, strings.ReplaceAll(db.Password, "'", `\'`)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return conn
}

// postgresProgram returns the path of a program of the newest version that Debian
// installed, or its plain name.
func postgresProgram(name string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return name
	}
	return newestProgram(found)
}

// newestProgram returns the path with the largest version, such as
// /usr/lib/postgresql/17/bin/initdb.
func newestProgram(paths []string) string {
	return slices.MaxFunc(paths, func(a, b string) int { return cmp.Compare(versionOf(a), versionOf(b)) })
}

// versionOf returns the version in the path of a program: 17 or 9.6. It is 0 if the
// folder is not named for a version.
func versionOf(path string) float64 {
	version, _ := strconv.ParseFloat(filepath.Base(filepath.Dir(filepath.Dir(path))), 64)
	return version
}
