package main

import (
	"context"
	"database/sql"
	"errors"
	"time"

	_ "github.com/glebarez/go-sqlite" // SQLite in Go, on modernc.org/sqlite
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// event is the appended data, of the same length as in bench/append.go.
var event = make([]byte, 256)

// durable makes SQLite acknowledge an append only when it is on disk.
const durable = "?_pragma=journal_mode(WAL)&_pragma=synchronous(FULL)&_pragma=busy_timeout(10000)"

// sqliteAppend inserts one row per transaction over one connection, because SQLite has
// one writer at a time.
func sqliteAppend() (peer, error) {
	db, err := sql.Open("sqlite", "file:append.sqlite"+durable)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	if _, err := db.Exec("CREATE TABLE log (seq INTEGER PRIMARY KEY, event BLOB)"); err != nil {
		return nil, err
	}
	insert, err := db.Prepare("INSERT INTO log (event) VALUES (?)")
	return func(n int) error {
		return runShared(n, 1, func(int) error {
			_, err := insert.Exec(event)
			return err
		})
	}, err
}

// jetstreamAppend publishes to a stream on disk. Each publisher has its own connection
// and waits for every acknowledgement.
func jetstreamAppend() (peer, error) {
	s, err := server.NewServer(&server.Options{
		JetStream: true, StoreDir: "jetstream", SyncAlways: true, DontListen: true, NoLog: true, NoSigs: true,
	})
	if err != nil {
		return nil, err
	}
	s.Start()
	if !s.ReadyForConnections(10 * time.Second) {
		return nil, errors.New("start NATS: not ready after 10 s")
	}
	streams := make([]jetstream.JetStream, writers)
	for i := range streams {
		c, err := nats.Connect("", nats.InProcessServer(s))
		if err != nil {
			return nil, err
		}
		if streams[i], err = jetstream.New(c); err != nil {
			return nil, err
		}
	}
	_, err = streams[0].CreateStream(context.Background(), jetstream.StreamConfig{Name: "log", Subjects: []string{"log"}, Storage: jetstream.FileStorage})
	return func(n int) error {
		return runShared(n, writers, func(w int) error {
			_, err := streams[w].Publish(context.Background(), "log", event)
			return err
		})
	}, err
}
