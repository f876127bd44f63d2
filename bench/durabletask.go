package main

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rolecall/rolecall/persist"
)

// taskRecords is how many records of a task the floor puts on disk: the task,
// what the model wants to call, what the call came to, the end.
const taskRecords = 4

// recordBytes is how long each is.
const recordBytes = 512

// durableTaskComparison holds whole tasks, from Start to their recorded ends,
// against loops that sync a record at each of four points.
func durableTaskComparison() (comparison, error) {
	dir, kind, err := disk()
	if err != nil {
		return comparison{}, err
	}
	others, missing := startPeers(dir)
	raw := made(os.Create(filepath.Join(dir, "raw")))
	g := newGroup(made(os.Create(filepath.Join(dir, "group"))))
	store := made(persist.Open(filepath.Join(dir, "rolecall")))
	h := made(newHouse(store, scripted{}))
	c := comparison{
		title: "task on disk: one tool call and a final text, on " + kind,
		candidates: []candidate{
			{"four writes and four fsyncs", 50, func(n int) { fsyncs(raw, taskRecords*n, recordBytes) }},
			{"rolecall, one task at a time", 50, func(n int) { shared(n, 1, func(int) { h.finished() }) }},
			{"bare loop and four records, 64 sharing fsyncs", 40 * spawners, func(n int) { shared(n, spawners, g.task(h.tools)) }},
			{"rolecall, 64 tasks at a time", 10 * spawners, func(n int) { shared(n, spawners, func(int) { h.finished() }) }},
		},
		goals: []goal{
			{part: "load", claim: "a task on disk against four fsyncs", of: 1, than: 0, most: 1.3},
			{part: "load", claim: "64 tasks on disk against bare loops that share fsyncs", of: 3, than: 2, most: 2},
		},
		close: func() {
			g.close()
			made(0, errors.Join(h.Close(), store.Close(), raw.Close(), others.close(), os.RemoveAll(dir)))
		},
	}
	c.join(missing, []candidate{
		{"adk-go on SQLite, one at a time", 50, others.run("adk 1")},
		{"adk-go on SQLite, 16 at a time", 64, others.run("adk 16")},
	}, faster("load", "64 tasks on disk against adk-go with one", 3, 4, 80), faster("load", "64 tasks on disk against adk-go with 16", 3, 5, 80))
	return c, nil
}

// group is the least that makes many writers share an fsync: whoever waits is
// written together.
type group struct {
	file  *os.File
	queue chan chan bool
	done  chan bool
}

func newGroup(f *os.File) *group {
	g := &group{f, make(chan chan bool, 1024), make(chan bool)}
	go g.run()
	return g
}

func (g *group) run() {
	defer close(g.done)
	for first := range g.queue {
		runtime.Gosched()
		waiting := []chan bool{first}
		for len(g.queue) > 0 {
			waiting = append(waiting, <-g.queue)
		}
		fsyncs(g.file, 1, recordBytes*len(waiting))
		for _, w := range waiting {
			close(w)
		}
	}
}

func (g *group) keep() {
	done := make(chan bool)
	g.queue <- done
	<-done
}

// task is the bare loop between its records.
func (g *group) task(tools []byte) func(int) {
	return func(int) {
		g.keep()
		g.keep()
		if text, err := bareLoop(context.Background(), tools); err != nil || text != verdict {
			panic(text)
		}
		g.keep()
		g.keep()
	}
}

func (g *group) close() {
	close(g.queue)
	<-g.done
	made(0, g.file.Close())
}
