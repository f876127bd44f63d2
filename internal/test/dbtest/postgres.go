package dbtest

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
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
			"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=" + s.dir, "-c", "fsync=off"}
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

// postgresProgram returns the path of a program of the newest version that Debian
// installed, or its plain name.
func postgresProgram(name string) string {
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/" + name)
	if len(found) == 0 {
		return name
	}
	return slices.Max(found)
}
