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

// eventBytes is how long an appended event is.
const eventBytes = 256

// appendComparison holds an event that is on disk when its writer is told so
// against the same bytes in other stores, all in one directory.
func appendComparison() (comparison, error) {
	dir, kind, err := disk()
	if err != nil {
		return comparison{}, err
	}
	others, missing := startPeers(dir)
	raw := made(os.Create(filepath.Join(dir, "raw")))
	store := made(persist.Open(filepath.Join(dir, "rolecall")))
	c := comparison{
		title: fmt.Sprintf("durable append of %d bytes, on %s", eventBytes, kind),
		candidates: []candidate{
			{"one write and one fsync", 100, func(n int) { fsyncs(raw, n, eventBytes) }},
			{"bbolt Update", 100, boltAppend(dir, "update", 1, 0)},
			{"bbolt Batch as it is, 64 writers", 10 * spawners, boltAppend(dir, "batch", spawners, 0)},
			{"bbolt Batch of 64, 64 writers", 40 * spawners, boltAppend(dir, "batch64", spawners, spawners)},
			{"rolecall Commit", 100, storeAppend(store, 1)},
			{"rolecall Commit, 64 writers", 100 * spawners, storeAppend(store, spawners)},
		},
		goals: []goal{faster("append", "64 writers append against bbolt.Batch as it is", 5, 2, 18)},
		close: func() { made(0, errors.Join(store.Close(), raw.Close(), others.close(), os.RemoveAll(dir))) },
	}
	c.join(missing, []candidate{
		{"SQLite, WAL, synchronous=FULL", 100, others.run("sqlite")},
		{"NATS JetStream, SyncAlways, 64 publishers", 10 * spawners, others.run("jetstream")},
	}, faster("append", "64 writers append against JetStream with SyncAlways", 5, 7, 25))
	return c, nil
}

// disk makes a directory and says what file system it is on: a directory in
// memory would make every fsync free.
func disk() (dir, kind string, err error) {
	if dir, err = filepath.Abs(made(os.MkdirTemp(".", "bench-"))); err != nil {
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
		return "", "", fmt.Errorf("%s is in memory; run it in a directory on a disk", dir)
	case names[s.Type] != "":
		return dir, names[s.Type], nil
	}
	return dir, fmt.Sprintf("a file system of type %#x", s.Type), nil
}

// fsyncs writes and syncs n times.
func fsyncs(f *os.File, n, size int) {
	for range n {
		made(f.Write(make([]byte, size)))
		made(0, f.Sync())
	}
}

// boltAppend appends to a bucket whose keys grow: by Update when there is one
// writer, else by Batch; 0 leaves the size of a batch as it is.
func boltAppend(dir, name string, writers, batch int) func(n int) {
	db := made(bolt.Open(filepath.Join(dir, name), 0o600, nil))
	made(0, db.Update(func(tx *bolt.Tx) error {
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
		shared(n, writers, func(int) {
			made(0, do(func(tx *bolt.Tx) error {
				b := tx.Bucket([]byte("log"))
				seq, err := b.NextSequence()
				return errors.Join(err, b.Put(binary.BigEndian.AppendUint64(nil, seq), event))
			}))
		})
	}
}

// storeAppend appends to the journals of some agents.
func storeAppend(store *persist.Store, writers int) func(n int) {
	return func(n int) {
		shared(n, writers, func(w int) {
			id := identity.AgentID("agent-" + strconv.Itoa(w))
			made(store.Commit(context.Background(), &journal.Batch{Stream: id, Events: []journal.Event{eventOf(id)}}))
		})
	}
}

// eventOf makes an event that has its length on disk.
func eventOf(id identity.AgentID) journal.Event {
	text := func(n int) journal.Event {
		return journal.Event{Stream: id, Task: "task", Agent: id, Body: journal.ToolResult{Call: "1", Tool: toolName, Result: []byte(`"` + strings.Repeat("x", n) + `"`)}}
	}
	return text(eventBytes - headBytes(text(0)))
}

func headBytes(e journal.Event) int { return len(made(e.MarshalJSON())) }

// shared does n pieces of work by some at once.
func shared(n, some int, work func(worker int)) {
	done := make(chan bool)
	for w := range some {
		go func() {
			for range n / some {
				work(w)
			}
			done <- true
		}()
	}
	for range some {
		<-done
	}
}
