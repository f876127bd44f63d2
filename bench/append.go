package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/persist"
)

// eventBytes is the size of an appended event on disk.
const eventBytes = 256

// appendComparison compares a durable append with appends of the same size to other
// stores, all in one directory.
func appendComparison() (comparison, error) {
	dir, kind, err := newDiskDir()
	if err != nil {
		return comparison{}, err
	}
	others, missing := startPeers(dir)
	raw := must(os.Create(filepath.Join(dir, "raw")))
	store := must(persist.Open(filepath.Join(dir, "rolecall")))
	c := comparison{
		title: fmt.Sprintf("durable append of %d bytes, on %s", eventBytes, kind),
		candidates: []candidate{
			{"one write and one fsync", 100, func(n int) { writeAndSync(raw, n, eventBytes) }},
			{"bbolt Update", 100, boltAppend(dir, "update", 1, 0)},
			{"bbolt Batch with default size, 64 writers", 10 * spawners, boltAppend(dir, "batch", spawners, 0)},
			{"bbolt Batch of 64, 64 writers", 40 * spawners, boltAppend(dir, "batch64", spawners, spawners)},
			{"rolecall Commit", 100, storeAppend(store, 1)},
			{"rolecall Commit, 64 writers", 100 * spawners, storeAppend(store, spawners)},
		},
		goals:   []goal{atLeastTimesFaster("append", "64 writers append compared with default bbolt.Batch", 5, 2, 18)},
		cleanup: func() { must(0, errors.Join(store.Close(), raw.Close(), others.close(), os.RemoveAll(dir))) },
	}
	c.addPeers(missing, []candidate{
		{"SQLite, WAL, synchronous=FULL", 100, others.run("sqlite")},
		{"NATS JetStream, SyncAlways, 64 publishers", 10 * spawners, others.run("jetstream")},
	}, atLeastTimesFaster("append", "64 writers append compared with JetStream with SyncAlways", 5, 7, 25))
	return c, nil
}

// newDiskDir creates a directory and returns its file system. It rejects file systems
// in memory, where an fsync costs nothing.
func newDiskDir() (dir, kind string, err error) {
	if dir, err = filepath.Abs(must(os.MkdirTemp(".", "bench-"))); err != nil {
		return "", "", err
	}
	var s syscall.Statfs_t
	if err := syscall.Statfs(dir, &s); err != nil {
		return "", "", err
	}
	const tmpfs, ramfs = 0x01021994, 0x858458f6
	switch names := map[int64]string{0xEF53: "ext4", 0x58465342: "xfs", 0x9123683E: "btrfs", 0x794C7630: "overlayfs"}; {
	case s.Type == tmpfs || s.Type == ramfs:
		os.RemoveAll(dir)
		return "", "", fmt.Errorf("%s is in memory; run bench in a directory on a disk", dir)
	case names[s.Type] != "":
		return dir, names[s.Type], nil
	}
	return dir, fmt.Sprintf("a file system of type %#x", s.Type), nil
}

// writeAndSync writes and syncs n times.
func writeAndSync(f *os.File, n, size int) {
	for range n {
		must(f.Write(make([]byte, size)))
		must(0, f.Sync())
	}
}

// boltAppend appends to a bucket with growing keys, by Update for one writer and by
// Batch for more. batch is the maximum batch size, 0 for bbolt's default.
func boltAppend(dir, name string, writers, batch int) func(n int) {
	db := must(bolt.Open(filepath.Join(dir, name), 0o600, nil))
	must(0, db.Update(func(tx *bolt.Tx) error {
		_, err := tx.CreateBucket([]byte("log"))
		return err
	}))
	do := db.Update
	if writers > 1 {
		do = db.Batch
	}
	if batch > 0 {
		db.MaxBatchSize = batch
	}
	event := make([]byte, eventBytes)
	return func(n int) {
		runShared(n, writers, func(int) {
			must(0, do(func(tx *bolt.Tx) error {
				b := tx.Bucket([]byte("log"))
				seq, err := b.NextSequence()
				return errors.Join(err, b.Put(binary.BigEndian.AppendUint64(nil, seq), event))
			}))
		})
	}
}

// storeAppend appends to the journals of the given number of agents.
func storeAppend(store *persist.Store, writers int) func(n int) {
	return func(n int) {
		runShared(n, writers, func(w int) {
			id := identity.AgentID("agent-" + strconv.Itoa(w))
			must(store.Commit(context.Background(), &journal.Batch{Stream: id, Events: []journal.Event{newEvent(id)}}))
		})
	}
}

// newEvent returns an event of eventBytes on disk.
func newEvent(id identity.AgentID) journal.Event {
	text := func(n int) journal.Event {
		return journal.Event{Stream: id, Task: "task", Agent: id, Body: journal.ToolResult{Call: "1", Tool: toolName, Result: []byte(`"` + strings.Repeat("x", n) + `"`)}}
	}
	return text(eventBytes - eventOverhead(text(0)))
}

// eventOverhead returns the encoded size of an event.
func eventOverhead(e journal.Event) int { return len(must(e.MarshalJSON())) }

// runShared distributes n pieces of work among concurrent workers and waits for them.
func runShared(n, workers int, work func(worker int)) {
	done := make(chan bool)
	for w := range workers {
		go func() {
			for range n / workers {
				work(w)
			}
			done <- true
		}()
	}
	for range workers {
		<-done
	}
}
