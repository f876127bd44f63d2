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

// What a restart reads.
const (
	storedRecords = 100_000
	restartAgents = 100_000
	restartTasks  = 1_000
)

// restartComparison holds a store that is opened and read back whole against
// a scan of the same records in a bbolt file of nothing else.
func restartComparison() (comparison, error) {
	dir, kind, err := disk()
	if err != nil {
		return comparison{}, err
	}
	bare, stored := filepath.Join(dir, "bare"), filepath.Join(dir, "rolecall")
	fillBare(bare)
	fillStore(stored)
	return comparison{
		title: fmt.Sprintf("restart: %d records of %d bytes opened and read, on %s", storedRecords, len(agentRecord(0)), kind),
		candidates: []candidate{
			{"bbolt scan, gjson", storedRecords, func(n int) { scanBare(bare, n, lookAt) }},
			{"bbolt scan, json.Unmarshal", storedRecords, func(n int) { scanBare(bare, n, decodeAgent) }},
			{"rolecall Open, Records, gjson", storedRecords, func(n int) { readBack(stored, n, lookAt) }},
			{"rolecall Open, Records, json.Unmarshal", storedRecords, func(n int) { readBack(stored, n, decodeAgent) }},
			{"rolecall Open alone", storedRecords, func(int) { made(0, made(persist.Open(stored)).Close()) }},
		},
		goals: []goal{{part: "restart", claim: fmt.Sprintf("%d records opened and read back against a scan with gjson", storedRecords), of: 2, than: 0, most: 1.2}},
		close: func() { os.RemoveAll(dir) },
	}, nil
}

// agentRecord is a record as those of agents are.
func agentRecord(i int) []byte {
	return made(json.Marshal(org.Agent{
		ID: identity.AgentID(agentName(i)), Task: "task", Role: "role", Parent: "parent", Brief: brief, CreatedAt: time.Unix(int64(i), 0).UTC(),
	}))
}

func agentName(i int) string { return identity.Derive("restart", strconv.Itoa(i)) }

// lookAt reads a record as something that only looks would: all of its fields.
func lookAt(record []byte) {
	n := 0
	gjson.ParseBytes(record).ForEach(func(_, value gjson.Result) bool {
		n += len(value.Raw)
		return true
	})
	sink.Add(uint64(n))
}

func decodeAgent(record []byte) {
	var a org.Agent
	made(0, json.Unmarshal(record, &a))
	sink.Add(uint64(len(a.ID)))
}

func fillBare(path string) {
	db := made(bolt.Open(path, 0o600, &bolt.Options{NoSync: true}))
	made(0, db.Update(func(tx *bolt.Tx) error {
		b, err := tx.CreateBucket([]byte("records"))
		for i := range storedRecords {
			err = errors.Join(err, b.Put(binary.BigEndian.AppendUint64(nil, uint64(i)), agentRecord(i)))
		}
		return err
	}))
	made(0, errors.Join(db.Sync(), db.Close()))
}

func fillStore(dir string) {
	store := made(persist.Open(dir))
	const each = 1000
	for first := 0; first < storedRecords; first += each {
		b := &journal.Batch{}
		for i := range each {
			b.Put = append(b.Put, journal.Record{Kind: string(org.KindAgent), Key: agentName(first + i), Value: agentRecord(first + i)})
		}
		made(store.Commit(context.Background(), b))
	}
	made(0, store.Close())
}

func scanBare(path string, n int, look func([]byte)) {
	db := made(bolt.Open(path, 0o600, &bolt.Options{ReadOnly: true}))
	defer db.Close()
	made(0, db.View(func(tx *bolt.Tx) error {
		return tx.Bucket([]byte("records")).ForEach(func(_, record []byte) error {
			n--
			look(record)
			return nil
		})
	}))
	must(n == 0)
}

func readBack(dir string, n int, look func([]byte)) {
	store := made(persist.Open(dir))
	defer store.Close()
	for r, err := range store.ReadRecords(context.Background(), string(org.KindAgent), "") {
		made(0, err)
		n--
		look(r.Value)
	}
	must(n == 0)
}

// reopened shows how long a process takes that starts on the files of another:
// its agents and tasks are there, and nothing runs yet.
func reopened(w *tabwriter.Writer) {
	dir, kind, err := disk()
	made(0, err)
	defer os.RemoveAll(dir)
	peopled(dir)
	fmt.Fprintf(w, "%d agents in %d tasks, on %s\topened\torganization loaded\tCPU time\theap\n", restartAgents, restartTasks, kind)
	for range 3 {
		before, used, began := heap(), cpu(), time.Now()
		store := made(persist.Open(dir))
		opened := time.Since(began)
		h := made(openHouse(store, absent{}))
		took, used := time.Since(began), cpu()-used
		must(len(h.Org().ListTasks()) == restartTasks)
		fmt.Fprintf(w, "\t%v\t%v\t%v\t%.1f MiB\n", opened.Round(time.Millisecond), (took - opened).Round(time.Millisecond), used.Round(time.Millisecond), float64(heap()-before)/(1<<20))
		made(0, errors.Join(h.Close(), store.Close()))
	}
}

// peopled fills a data directory with tasks and their agents.
func peopled(dir string) {
	store := made(persist.Open(dir))
	h := made(newHouse(store, absent{}))
	tasks := make(chan org.Task, restartTasks)
	shared(restartTasks, 50, func(int) {
		id := made(h.StartTask(context.Background(), org.TaskSpec{Role: string(h.role), Text: question, Caller: operator}))
		task, _ := h.Org().Task(id)
		tasks <- task
	})
	close(tasks)
	var calls atomic.Uint64
	shared(restartTasks, 50, func(int) {
		top := identity.ByAgent((<-tasks).Top)
		for range restartAgents/restartTasks - 1 {
			call := tool.Call{ID: identity.CallID(strconv.FormatUint(calls.Add(1), 10)), By: top}
			made(h.SpawnAgent(context.Background(), call, org.Spawn{Role: h.role, Brief: brief}, nil))
		}
	})
	made(0, errors.Join(h.Close(), store.Close()))
}
