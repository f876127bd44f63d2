package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rolecall/rolecall/persist"
)

// taskRecords is the number of records per task that the baselines write: the task, the
// model's call, its outcome, the end.
const taskRecords = 4

// recordBytes is the size of each record.
const recordBytes = 512

// durableTaskComparison compares whole tasks, from StartTask to their recorded ends,
// with baselines that write and sync the same records and do nothing else.
func durableTaskComparison() (comparison, error) {
	dir, kind, err := newDiskDir()
	if err != nil {
		return comparison{}, err
	}
	others, missing := startPeers(dir)
	raw := must(os.Create(filepath.Join(dir, "raw")))
	g := newGroupCommit(must(os.Create(filepath.Join(dir, "group"))))
	store := must(persist.Open(filepath.Join(dir, "rolecall")))
	fx := must(newFixture(store, scriptedModel{}))
	c := comparison{
		title: "task on disk: one tool call and a final text, on " + kind,
		candidates: []candidate{
			{"four writes and four fsyncs", 50, func(n int) { writeAndSync(raw, taskRecords*n, recordBytes) }},
			{"rolecall, one task at a time", 50, func(n int) { runShared(n, 1, func(int) { fx.runTask() }) }},
			{"bare loop and four records, 64 sharing fsyncs", 40 * spawners, func(n int) { runShared(n, spawners, g.task(fx.tools)) }},
			{"rolecall, 64 tasks at a time", 10 * spawners, func(n int) { runShared(n, spawners, func(int) { fx.runTask() }) }},
		},
		goals: []goal{
			{part: "load", claim: "a task on disk compared with four fsyncs", candidate: 1, baseline: 0, maxRatio: 1.3},
			{part: "load", claim: "64 tasks on disk compared with bare loops that share fsyncs", candidate: 3, baseline: 2, maxRatio: 2},
		},
		cleanup: func() {
			g.close()
			must(0, errors.Join(fx.Close(), store.Close(), raw.Close(), others.close(), os.RemoveAll(dir)))
		},
	}
	c.addPeers(missing, []candidate{
		{"adk-go on SQLite, one at a time", 50, others.run("adk 1")},
		{"adk-go on SQLite, 16 at a time", 64, others.run("adk 16")},
	}, atLeastTimesFaster("load", "64 tasks on disk compared with adk-go, 1 at a time", 3, 4, 80), atLeastTimesFaster("load", "64 tasks on disk compared with adk-go, 16 at a time", 3, 5, 80))
	return c, nil
}

// groupCommit is a minimal group commit, without a store: all waiting writers share one
// fsync.
type groupCommit struct {
	file  *os.File
	queue chan chan bool
	done  chan bool
}

func newGroupCommit(f *os.File) *groupCommit {
	g := &groupCommit{f, make(chan chan bool, 1024), make(chan bool)}
	go g.run()
	return g
}

// run writes and syncs the records of all waiting writers together.
func (g *groupCommit) run() {
	defer close(g.done)
	for first := range g.queue {
		runtime.Gosched()
		waiting := []chan bool{first}
		for len(g.queue) > 0 {
			waiting = append(waiting, <-g.queue)
		}
		writeAndSync(g.file, 1, recordBytes*len(waiting))
		for _, w := range waiting {
			close(w)
		}
	}
}

// commit returns when a record is on disk.
func (g *groupCommit) commit() {
	done := make(chan bool)
	g.queue <- done
	<-done
}

// task returns a function that runs the bare loop and commits its records around it.
func (g *groupCommit) task(tools []byte) func(int) {
	return func(int) {
		g.commit()
		g.commit()
		if text, err := bareLoop(context.Background(), tools); err != nil || text != verdict {
			panic(text)
		}
		g.commit()
		g.commit()
	}
}

func (g *groupCommit) close() {
	close(g.queue)
	<-g.done
	must(0, g.file.Close())
}
