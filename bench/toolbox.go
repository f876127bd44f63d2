package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	verdicts "github.com/rolecall/rolecall/internal/test/soakreport"
)

// How often what is measured: rounds are interleaved, medians are shown.
const (
	toolboxStarts = 5
	toolboxRounds = 5
	toolboxCalls  = 4000 // of a round
)

// toolboxes holds declared tools beside MCP Toolbox: the start, a reload, and
// calls of SELECT 1 on SQLite over both wires. The servers are processes of
// their own; rolecall has everything on: roles, the gate, and both records on
// disk.
func toolboxes(w *tabwriter.Writer) {
	onDisk(func(dir string) {
		servers, err := toolServers(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench: toolbox: there is no peer:", err)
		}
		toolboxStart(w, dir, servers)
		toolboxReload(w, dir, servers)
		toolboxInvoke(w, dir, servers)
	})
}

// toolFile writes a configuration of n tools, the one numbered odd with another
// description, and gives its path.
func toolFile(dir string, n, odd int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kind: source\nname: db\ntype: sqlite\ndatabase: %s\n", made(filepath.Abs(filepath.Join(dir, "bench.db"))))
	b.WriteString("---\nkind: tool\nname: one\ntype: sqlite-sql\nsource: db\ndescription: One.\nstatement: SELECT 1 AS one\nannotations: {readOnlyHint: true}\n")
	names := []string{"one"}
	for i := 1; i < n; i++ {
		also := ""
		if i == odd {
			also = " It is another now."
		}
		names = append(names, fmt.Sprintf("tool_%d", i))
		fmt.Fprintf(&b, `---
kind: tool
name: tool_%d
type: sqlite-sql
source: db
description: Find the flights of airline number %d, by code and number.%s
statement: SELECT * FROM flights WHERE airline = ?1 AND id > ?2
parameters:
  - {name: airline, type: string, description: The two letters of airline %d.}
  - {name: after, type: integer, description: Flights after this id., default: 0}
`, i, i, also, i)
	}
	fmt.Fprintf(&b, "---\nkind: toolset\nname: all_tools\ntools: [%s]\n", strings.Join(names, ", "))
	path := filepath.Join(dir, fmt.Sprintf("tools-%d.yaml", n))
	made(0, os.WriteFile(path, []byte(b.String()), 0o600))
	return made(filepath.Abs(path))
}

// middle sorts, and gives the one in the middle.
func middle[T int64 | time.Duration | float64](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

// toolboxStart shows what it takes until a program answers.
func toolboxStart(w *tabwriter.Writer, dir string, servers []toolServer) {
	fmt.Fprintln(w, "start\ttools\tready after\tCPU time\tin memory\tafter 3 s")
	for _, n := range []int{10, 1000, 5000} {
		file := toolFile(dir, n, 0)
		ready, used := make([][]time.Duration, len(servers)), make([][]time.Duration, len(servers))
		held, later := make([][]int64, len(servers)), make([][]int64, len(servers))
		for range toolboxStarts {
			for i, s := range servers {
				r := made(s.start(dir, file))
				ready[i], used[i], held[i] = append(ready[i], r.ready), append(used[i], r.cpu()), append(held[i], r.memory())
				time.Sleep(3 * time.Second)
				later[i] = append(later[i], r.memory())
				made(0, r.stop())
			}
		}
		for i, s := range servers {
			fmt.Fprintf(w, "%s\t%d\t%v\t%v\t%.0f MiB\t%.0f MiB\n", s.name, n, middle(ready[i]).Round(time.Millisecond), middle(used[i]), mib(middle(held[i])), mib(middle(later[i])))
		}
		if n == 5000 {
			w.Flush()
			say(verdicts.Result{Part: "toolbox", Claim: "5,000 declared tools ready: CPU, memory", Goal: "≤ 500ms, ≤ 60 MiB", Aspirational: true,
				Observed: fmt.Sprintf("%v, %.0f MiB", middle(used[0]), mib(middle(later[0]))), Passed: middle(used[0]) <= 500*time.Millisecond && middle(later[0]) <= 60<<20})
		}
	}
	w.Flush()
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// toolboxReload shows how long a change of one tool in 5,000 takes to be in
// force: rolecall is told to look at its files, its peer notices by itself.
func toolboxReload(w *tabwriter.Writer, dir string, servers []toolServer) {
	fmt.Fprintln(w, "\nreload of one tool in 5,000\tin force after\tCPU time")
	var first time.Duration
	for at, s := range servers {
		r := made(s.start(dir, toolFile(dir, 5000, 0)))
		time.Sleep(3 * time.Second)
		var took, used []time.Duration
		for round := range toolboxRounds {
			odd := 10 + round
			toolFile(dir, 5000, odd)
			before, began := r.cpu(), time.Now()
			if s.base != "" {
				made(0, r.cmd.Process.Signal(syscall.SIGHUP))
			}
			for !strings.Contains(made(r.send(http.DefaultClient, "GET", fmt.Sprintf("/api/tool/tool_%d", odd), "", nil)), "another now") {
				time.Sleep(5 * time.Millisecond)
			}
			took = append(took, time.Since(began))
			time.Sleep(time.Second) // what goes on behind it
			used = append(used, r.cpu()-before)
		}
		made(0, r.stop())
		fmt.Fprintf(w, "%s\t%v\t%v\n", s.name, middle(took).Round(time.Millisecond), middle(used))
		if at == 0 {
			first = middle(took)
		}
	}
	w.Flush()
	say(verdicts.Result{Part: "toolbox", Claim: "one changed tool in 5,000 is in force", Goal: "≤ 100ms", Aspirational: true, Observed: first.Round(time.Millisecond).String(), Passed: first <= 100*time.Millisecond})
}

// wire is a way to call the tool.
type wire struct {
	name, path, body string
	header           http.Header
}

func toolboxWires() []wire {
	plain := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/plain, */*"}}
	mcp := plain.Clone()
	mcp.Set("Mcp-Protocol-Version", mcpVersion)
	mcp.Set("Mcp-Method", "tools/call")
	mcp.Set("Mcp-Name", "one")
	return []wire{
		{"HTTP invoke", "/api/tool/one/invoke", `{}`, plain},
		{"MCP tools/call " + mcpVersion, "/mcp", `{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{` + mcpMeta + `,"name":"one","arguments":{}}}`, mcp},
	}
}

// toolboxInvoke shows what a call costs the server, and how many it answers.
func toolboxInvoke(w *tabwriter.Writer, dir string, servers []toolServer) {
	fmt.Fprintln(w, "\nSELECT 1 on SQLite\tconnections\tserver\tcalls a second\tCPU of a call\tratio")
	file := toolFile(dir, 10, 0)
	var running []*servedTools
	for _, s := range servers {
		r := made(s.start(dir, file))
		defer func() { made(0, r.stop()) }()
		running = append(running, r)
	}
	var lines []verdicts.Result
	for _, wire := range toolboxWires() {
		for _, conns := range []int{1, 32} {
			lines = append(lines, compareCalls(w, running, wire, conns))
		}
	}
	w.Flush()
	say(lines...)
}

// compareCalls measures the servers round by round.
func compareCalls(w *tabwriter.Writer, running []*servedTools, way wire, conns int) verdicts.Result {
	rate, used := make([][]float64, len(running)), make([][]float64, len(running))
	for round := range toolboxRounds + 1 {
		for i, r := range running {
			a, u := r.calls(way, conns)
			if round > 0 { // the first warms up
				rate[i], used[i] = append(rate[i], a), append(used[i], u)
			}
		}
	}
	line := verdicts.Result{Part: "toolbox", Claim: fmt.Sprintf("CPU of a call beside MCP Toolbox: %s, %d connections", way.name, conns), Goal: "≤ 0.50 ×", Aspirational: true, Skipped: "there is no peer"}
	for i, r := range running {
		ratio := middle(used[i]) / middle(used[len(running)-1])
		fmt.Fprintf(w, "%s\t%d\t%s\t%.0f\t%.0f µs\t%.2f\n", way.name, conns, r.name, middle(rate[i]), middle(used[i]), ratio)
		if i == 0 && len(running) > 1 {
			line.Skipped, line.Observed, line.Passed = "", fmt.Sprintf("%.2f ×", ratio), ratio <= 0.5
		}
	}
	return line
}

// calls calls the tool and gives calls a second, and microseconds of the
// server's CPU each.
func (r *servedTools) calls(way wire, conns int) (rate, used float64) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
	defer client.CloseIdleConnections()
	before, began := r.cpu(), time.Now()
	shared(toolboxCalls, conns, func(int) {
		text := made(r.send(client, "POST", way.path, way.body, way.header))
		if !strings.Contains(text, "one") || strings.Contains(text, "rror") {
			panic("bench: " + r.name + " answered " + text)
		}
	})
	n := float64(toolboxCalls / conns * conns)
	return n / time.Since(began).Seconds(), float64((r.cpu() - before).Microseconds()) / n
}
