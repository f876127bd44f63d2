//go:build unix

package app

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/config"
)

// BenchmarkReconfigure_OneTool reads and applies a configuration of 5,000 tools in which one
// tool has changed.
func BenchmarkReconfigure_OneTool(b *testing.B) {
	dir, data := b.TempDir(), b.TempDir()
	var files [2]string
	for odd := range files {
		files[odd] = filepath.Join(dir, fmt.Sprint(odd, ".yaml"))
		if err := os.WriteFile(files[odd], []byte(manyTools(dir, 5000, odd)), 0o600); err != nil {
			b.Fatal(err)
		}
	}
	a, err := Open(Options{Data: data, Launcher: launcher})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { a.Close() })
	cfg, err := config.LoadFiles(files[:1], nil)
	if err == nil {
		err = a.ApplyConfig(b.Context(), cfg, nil)
	}
	if err != nil {
		b.Fatal(err)
	}
	before, n := processorTime(), 0
	for b.Loop() {
		n++
		a.options.Files = files[n%2 : n%2+1]
		cfg, err := a.loadConfig()
		if err == nil {
			_, err = a.reconfigure(b.Context(), cfg)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64((processorTime()-before).Microseconds())/1000/float64(n), "cpu-ms/op")
}

// manyTools returns a configuration of n tools. If odd is 1, one of them has another
// description.
func manyTools(dir string, n, odd int) string {
	var text strings.Builder
	fmt.Fprintf(&text, "{kind: source, name: db, type: sqlite, database: %s/bench.db}\n---\n{kind: role, name: reader, toolGroups: [default]}\n", dir)
	for i := range n {
		more := "."
		if i == 77 && odd > 0 {
			more = ", exactly."
		}
		fmt.Fprintf(&text, `---
kind: tool
name: tool_%d
type: sqlite-sql
source: db
description: Find the flights of airline number %d, by code and number%s
statement: SELECT * FROM flights WHERE airline = ?1 AND id > ?2
parameters:
  - {name: airline, type: string, description: The two letters of airline %d.}
  - {name: after, type: integer, description: Flights after this id., default: 0}
`, i, i, more, i)
	}
	return text.String()
}

// processorTime returns the CPU time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u) // fails only for an invalid argument
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
