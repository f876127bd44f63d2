package main

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/tidwall/gjson"
	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/journal"
	"github.com/rolecall/rolecall/org"
	"github.com/rolecall/rolecall/persist"
	"github.com/rolecall/rolecall/tool"
)

// The sizes of what a restart reads.
const (
	storedRecords = 100_000
	restartAgents = 100_000
	restartTasks  = 1_000
)

// restartComparison compares opening a store and reading all of it with scanning the
// same records in a plain bbolt file.
func restartComparison() (comparison, error) {
	dir, kind, err := newDiskDir()
	if err != nil {
		return comparison{}, err
	}
	bare, stored := filepath.Join(dir, "bare"), filepath.Join(dir, "rolecall")
	fillBare(bare)
	fillStore(stored)
	return comparison{
		title: fmt.Sprintf("restart: %d records of %d bytes opened and read, on %s", storedRecords, len(agentRecord(0)), kind),
		candidates: []candidate{
			{"bbolt scan, gjson", storedRecords, func(n int) { scanBare(bare, n, readFields) }},
			{"bbolt scan, json.Unmarshal", storedRecords, func(n int) { scanBare(bare, n, decodeAgent) }},
			{"rolecall Open, Records, gjson", storedRecords, func(n int) { readBack(stored, n, readFields) }},
			{"rolecall Open, Records, json.Unmarshal", storedRecords, func(n int) { readBack(stored, n, decodeAgent) }},
			{"rolecall Open only", storedRecords, func(int) { must(0, must(persist.Open(stored)).Close()) }},
		},
		goals:   []goal{{part: "restart", claim: fmt.Sprintf("%d records opened and read back compared with a scan with gjson", storedRecords), candidate: 2, baseline: 0, maxRatio: 1.2}},
		cleanup: func() { os.RemoveAll(dir) },
	}, nil
}

// agentRecord returns the stored form of an agent.
func agentRecord(i int) []byte {
	return must(json.Marshal(org.Agent{
		ID: identity.AgentID(agentName(i)), Task: "task", Role: "role", Parent: "parent", Brief: brief, CreatedAt: time.Unix(int64(i), 0).UTC(),
	}))
}

func agentName(i int) string { return identity.DeriveID("restart", strconv.Itoa(i)) }

// readFields reads all fields of a record without decoding it.
func readFields(record []byte) {
	n := 0
	gjson.ParseBytes(record).ForEach(func(_, value gjson.Result) bool {
		n += len(value.Raw)
		return true
	})
	sink.Add(uint64(n))
}

func decodeAgent(record []byte) {
	var a org.Agent
	must(0, json.Unmarshal(record, &a))
	sink.Add(uint64(len(a.ID)))
}

// fillBare writes the records to a plain bbolt file.
func fillBare(path string) {
	db := must(bolt.Open(path, 0o600, &bolt.Options{NoSync: true}))
	must(0, db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("records"))
		for i := range storedRecords {
			err = errors.Join(err, b.Put(binary.BigEndian.AppendUint64(nil, uint64(i)), agentRecord(i)))
		}
		return err
	}))
	must(0, errors.Join(db.Sync(), db.Close()))
}

// fillStore writes the records to a rolecall store.
func fillStore(dir string) {
	store := must(persist.Open(dir))
	const each = 1000
	for first := 0; first < storedRecords; first += each {
		b := &journal.Batch{}
		for i := range each {
			b.Put = append(b.Put, journal.Record{Kind: string(org.KindAgent), Key: agentName(first + i), Value: agentRecord(first + i)})
		}
		must(store.Commit(context.Background(), b))
	}
	must(0, store.Close())
}

func scanBare(path string, n int, look func([]byte)) {
	db := must(bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true}))
	defer db.Close()
	must(0, db.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("records")).ForEach(func(_, record []byte) error {
			n--
			look(record)
			return nil
		})
	}))
	assert(n == 0)
}

func readBack(dir string, n int, look func([]byte)) {
	store := must(persist.Open(dir))
	defer store.Close()
	for r, err := range store.ReadRecords(context.Background(), string(org.KindAgent), "") {
		must(0, err)
		n--
		look(r.Value)
	}
	assert(n == 0)
}

// runReopened shows how long a process takes to load an existing organization, without
// resuming its tasks.
func runReopened(w *tabwriter.Writer) {
	dir, kind, err := newDiskDir()
	must(0, err)
	defer os.RemoveAll(dir)
	populateTasks(dir)
	fmt.Fprintf(w, "%d agents in %d tasks, on %s\topened\torganization loaded\tCPU time\theap\n", restartAgents, restartTasks, kind)
	for range 3 {
		before, used, start := heapBytes(), cpu(), time.Now()
		store := must(persist.Open(dir))
		opened := time.Since(start)
		fx := must(openFixture(store, waitingModel{}))
		took, used := time.Since(start), cpu()-used
		assert(len(fx.Org().ListTasks()) == restartTasks)
		fmt.Fprintf(w, "\t%v\t%v\t%v\t%.1f MiB\n", opened.Round(time.Millisecond), (took - opened).Round(time.Millisecond), used.Round(time.Millisecond), float64(heapBytes()-before)/(1<<20))
		must(0, errors.Join(fx.Close(), store.Close()))
	}
}

// populateTasks fills a data directory with tasks and their agents.
func populateTasks(dir string) {
	store := must(persist.Open(dir))
	fx := must(newFixture(store, waitingModel{}))
	tasks := make(chan org.Task, restartTasks)
	runShared(restartTasks, 50, func(int) {
		id := must(fx.StartTask(context.Background(), org.TaskSpec{Role: string(fx.role), Text: question, Caller: operator}))
		task, _ := fx.Org().TaskByID(id)
		tasks <- task
	})
	close(tasks)
	var calls atomic.Uint64
	runShared(restartTasks, 50, func(int) {
		top := identity.ByAgent((<-tasks).Top)
		for range restartAgents/restartTasks - 1 {
			call := tool.Call{ID: identity.CallID(strconv.FormatUint(calls.Add(1), 10)), By: top}
			must(fx.SpawnAgent(context.Background(), call, org.SpawnSpec{Role: fx.role, Brief: brief}, nil))
		}
	})
	must(0, errors.Join(fx.Close(), store.Close()))
}
