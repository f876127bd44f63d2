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

	"github.com/rolecall/rolecall/internal/test/soakreport"
)

// The numbers of measurements. Rounds are interleaved, medians are shown.
const (
	toolboxStarts = 5
	toolboxRounds = 5
	toolboxCalls  = 4000 // per round
)

// runToolbox compares declared tools with MCP Toolbox: the start, a reload, and calls
// of SELECT 1 on SQLite over both protocols. The servers are processes of their own.
// rolecall runs with everything enabled: roles, the gate, and both records on disk.
func runToolbox(w *tabwriter.Writer) {
	withDiskDir(func(dir string) {
		servers, err := newToolServers(dir)
		if err != nil {
			fmt.Fprintln(os.Stderr, "bench: toolbox: MCP Toolbox is missing:", err)
		}
		toolboxStart(w, dir, servers)
		toolboxReload(w, dir, servers)
		toolboxInvoke(w, dir, servers)
	})
}

// writeTools writes a configuration of n tools and returns its path. The tool with the
// number changed has another description.
func writeTools(dir string, n, changed int) string {
	var b strings.Builder
	fmt.Fprintf(&b, "kind: source\nname: db\ntype: sqlite\ndatabase: %s\n", must(filepath.Abs(filepath.Join(dir, "bench.db"))))
	b.WriteString("---\nkind: tool\nname: one\ntype: sqlite-sql\nsource: db\ndescription: One.\nstatement: SELECT 1 AS one\nannotations: {readOnlyHint: true}\n")
	names := []string{"one"}
	for i := 1; i < n; i++ {
		suffix := ""
		if i == changed {
			suffix = " This was changed."
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
`, i, i, suffix, i)
	}
	fmt.Fprintf(&b, "---\nkind: toolset\nname: all_tools\ntools: [%s]\n", strings.Join(names, ", "))
	path := filepath.Join(dir, fmt.Sprintf("tools-%d.yaml", n))
	must(0, os.WriteFile(path, []byte(b.String()), 0o600))
	return must(filepath.Abs(path))
}

// median sorts the list and returns its median.
func median[T int64 | time.Duration | float64](list []T) T {
	slices.Sort(list)
	return list[len(list)/2]
}

// startFigures are the figures of some starts of one program.
type startFigures struct {
	ready, used         []time.Duration
	held, later, ofFile []int64 // memory when ready and 3 s later; the part of the latter that is pages of the program's file
}

// toolboxStart shows how long each program takes to answer, and its memory.
func toolboxStart(w *tabwriter.Writer, dir string, servers []toolServer) {
	fmt.Fprintln(w, "start\ttools\tready after\tCPU time\tin memory\tafter 3 s\tof it pages of the program's file")
	for _, n := range []int{10, 1000, 5000} {
		figures := startInterleaved(dir, writeTools(dir, n, 0), servers)
		for i, s := range servers {
			f := figures[i]
			fmt.Fprintf(w, "%s\t%d\t%v\t%v\t%.0f MiB\t%.0f MiB\t%.0f MiB\n", s.name, n, median(f.ready).Round(time.Millisecond), median(f.used), mib(median(f.held)), mib(median(f.later)), mib(median(f.ofFile)))
		}
		if n == 5000 {
			w.Flush()
			used, later := median(figures[0].used), median(figures[0].later)
			reportResults(soakreport.Result{Part: "toolbox", Claim: "5,000 declared tools ready: CPU, memory", Goal: "≤ 500ms, ≤ 60 MiB", Aspirational: true,
				Observed: fmt.Sprintf("%v, %.0f MiB", used, mib(later)), Passed: used <= 500*time.Millisecond && later <= 60<<20})
		}
	}
	w.Flush()
}

// startInterleaved starts the programs in turn and returns the figures of each.
func startInterleaved(dir, file string, servers []toolServer) []startFigures {
	figures := make([]startFigures, len(servers))
	for range toolboxStarts {
		for i, s := range servers {
			f, r := &figures[i], must(s.start(dir, file))
			f.ready, f.used, f.held = append(f.ready, r.ready), append(f.used, r.cpu()), append(f.held, r.memory())
			time.Sleep(3 * time.Second)
			f.later, f.ofFile = append(f.later, r.memory()), append(f.ofFile, r.filePages())
			must(0, r.stop())
		}
	}
	return figures
}

func mib(n int64) float64 { return float64(n) / (1 << 20) }

// toolboxReload shows how long a change of one tool in 5,000 takes to become active.
// rolecall reloads on SIGHUP; MCP Toolbox watches its file.
func toolboxReload(w *tabwriter.Writer, dir string, servers []toolServer) {
	fmt.Fprintln(w, "\nreload of one tool in 5,000\tactive after\tCPU time")
	var first time.Duration
	for at, s := range servers {
		r := must(s.start(dir, writeTools(dir, 5000, 0)))
		time.Sleep(3 * time.Second)
		var took, used []time.Duration
		for round := range toolboxRounds {
			changed := 10 + round
			writeTools(dir, 5000, changed)
			before, start := r.cpu(), time.Now()
			if s.basePath != "" {
				must(0, r.cmd.Process.Signal(syscall.SIGHUP))
			}
			for !strings.Contains(must(r.send(http.DefaultClient, "GET", fmt.Sprintf("/api/tool/tool_%d", changed), "", nil)), "was changed") {
				time.Sleep(5 * time.Millisecond)
			}
			took = append(took, time.Since(start))
			time.Sleep(time.Second) // for work in the background
			used = append(used, r.cpu()-before)
		}
		must(0, r.stop())
		fmt.Fprintf(w, "%s\t%v\t%v\n", s.name, median(took).Round(time.Millisecond), median(used))
		if at == 0 {
			first = median(took)
		}
	}
	w.Flush()
	reportResults(soakreport.Result{Part: "toolbox", Claim: "one changed tool in 5,000 is active", Goal: "≤ 100ms", Aspirational: true, Observed: first.Round(time.Millisecond).String(), Passed: first <= 100*time.Millisecond})
}

// protocolCall is a way to call the tool.
type protocolCall struct {
	name, urlPath, body string
	header              http.Header
}

func protocolCalls() []protocolCall {
	plain := http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/plain, */*"}}
	mcp := plain.Clone()
	mcp.Set("Mcp-Protocol-Version", mcpVersion)
	mcp.Set("Mcp-Method", "tools/call")
	mcp.Set("Mcp-Name", "one")
	return []protocolCall{
		{"HTTP invoke", "/api/tool/one/invoke", `{}`, plain},
		{"MCP tools/call " + mcpVersion, "/mcp", `{"jsonrpc":"2.0","id":"1","method":"tools/call","params":{` + mcpMeta + `,"name":"one","arguments":{}}}`, mcp},
	}
}

// toolboxInvoke shows the server's CPU time per call and the calls a second.
func toolboxInvoke(w *tabwriter.Writer, dir string, servers []toolServer) {
	fmt.Fprintln(w, "\nSELECT 1 on SQLite\tconnections\tserver\tcalls a second\tCPU per call\tratio")
	file := writeTools(dir, 10, 0)
	var running []*runningServer
	for _, s := range servers {
		r := must(s.start(dir, file))
		defer func() { must(0, r.stop()) }()
		running = append(running, r)
	}
	var lines []soakreport.Result
	for _, wire := range protocolCalls() {
		for _, conns := range []int{1, 32} {
			lines = append(lines, compareCalls(w, running, wire, conns))
		}
	}
	w.Flush()
	reportResults(lines...)
}

// compareCalls measures the servers in interleaved rounds.
func compareCalls(w *tabwriter.Writer, running []*runningServer, way protocolCall, conns int) soakreport.Result {
	rate, used := make([][]float64, len(running)), make([][]float64, len(running))
	for round := range toolboxRounds + 1 {
		for i, r := range running {
			a, u := r.calls(way, conns)
			if round > 0 { // the first round warms up
				rate[i], used[i] = append(rate[i], a), append(used[i], u)
			}
		}
	}
	line := soakreport.Result{Part: "toolbox", Claim: fmt.Sprintf("CPU of a call compared with MCP Toolbox: %s, %d connections", way.name, conns), Goal: "≤ 0.50 ×", Aspirational: true, Skipped: "MCP Toolbox is missing"}
	for i, r := range running {
		ratio := median(used[i]) / median(used[len(running)-1])
		fmt.Fprintf(w, "%s\t%d\t%s\t%.0f\t%.0f µs\t%.2f\n", way.name, conns, r.name, median(rate[i]), median(used[i]), ratio)
		if i == 0 && len(running) > 1 {
			line.Skipped, line.Observed, line.Passed = "", fmt.Sprintf("%.2f ×", ratio), ratio <= 0.5
		}
	}
	return line
}

// calls calls the tool and returns the calls a second and the server's CPU
// microseconds per call.
func (r *runningServer) calls(way protocolCall, conns int) (rate, used float64) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
	defer client.CloseIdleConnections()
	before, start := r.cpu(), time.Now()
	runShared(toolboxCalls, conns, func(int) {
		text := must(r.send(client, "POST", way.urlPath, way.body, way.header))
		if !strings.Contains(text, "one") || strings.Contains(text, "rror") {
			panic("bench: " + r.name + " answered " + text)
		}
	})
	n := float64(toolboxCalls / conns * conns)
	return n / time.Since(start).Seconds(), float64((r.cpu() - before).Microseconds()) / n
}
