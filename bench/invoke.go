package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rolecall/rolecall/internal/test/soakreport"
)

const (
	invokeCalls = 2000            // of each candidate in a round
	invokeGoal  = 1.5             // the CPU of a call, compared with the floor
	wrkTime     = 2 * time.Second // of each candidate in a round
	wrkRounds   = 7
)

// invokeServer is a running server, a process of its own: the client's CPU time does not count.
type invokeServer struct {
	invokeAddress
	cmd  *exec.Cmd
	stop io.Closer // standard input of the process
}

// startInvokeServer starts this program again as a server.
func startInvokeServer(kind string) (*invokeServer, error) {
	s := &invokeServer{cmd: exec.Command("/proc/self/exe")}
	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), serverEnv+"="+kind), os.Stderr
	if *profilePath != "" {
		s.cmd.Env = append(s.cmd.Env, serverProfileEnv+"="+*profilePath+".gateway")
	}
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // so that it never outlives this process
	in, err := s.cmd.StdinPipe()
	out, err2 := s.cmd.StdoutPipe()
	if err = errors.Join(err, err2); err != nil {
		return nil, err
	}
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	s.stop = in
	return s, json.NewDecoder(bufio.NewReader(out)).Decode(&s.invokeAddress)
}

// cpu returns the CPU time that the process has used, in user and system mode.
func (s *invokeServer) cpu() time.Duration {
	var t unix.Timespec
	must(0, unix.ClockGettime(int32(^s.cmd.Process.Pid<<3|2), &t)) // CPUCLOCK_SCHED of a process: clock_getcpuclockid(3)
	return time.Duration(t.Nano())
}

func (s *invokeServer) close() error { return errors.Join(s.stop.Close(), s.cmd.Wait()) }

// invokeCandidate is a call that is measured.
type invokeCandidate struct {
	name string
	*invokeServer
	tool, token string
}

// newInvokeCandidates starts the servers. The first candidate is the floor.
func newInvokeCandidates() (list []invokeCandidate, stop func(), err error) {
	bare, err := startInvokeServer(invokeBare)
	if err != nil {
		return nil, nil, err
	}
	full, err := startInvokeServer(invokeGateway)
	if err != nil {
		return nil, nil, errors.Join(err, bare.close())
	}
	list = []invokeCandidate{
		{"bare net/http: reads, parses, answers", bare, readingTool, ""},
		{"rolecall, token, a tool that reads", full, readingTool, full.Static},
		{"rolecall, token of an issuer, remembered", full, readingTool, full.Issued},
		{"rolecall, token, a tool that changes", full, changingTool, full.Static},
	}
	return list, func() { must(0, errors.Join(bare.close(), full.close())) }, nil
}

// call sends one call and panics unless the answer is the one of the floor.
func (c invokeCandidate) call(client *http.Client) {
	r := must(http.NewRequest(http.MethodPost, c.url(), strings.NewReader(toolArgs)))
	r.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	got := must(client.Do(r))
	defer got.Body.Close()
	if text := must(io.ReadAll(got.Body)); got.StatusCode != http.StatusOK || string(text) != invokeAnswer {
		panic(fmt.Sprintf("bench: %s answered %d %s", c.name, got.StatusCode, text))
	}
}

func (c invokeCandidate) url() string { return c.URL + "/api/tool/" + c.tool + "/invoke" }

// runInvoke compares the CPU time of a server for an authenticated, gated, validated and
// recorded call with that of a bare net/http server.
func runInvoke(w *tabwriter.Writer) {
	compareInvoke(w, *roundCount, []int{1, 16}, func(c invokeCandidate, conns int) int {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: conns}}
		defer client.CloseIdleConnections()
		runShared(invokeCalls, conns, func(int) { c.call(client) })
		return invokeCalls / conns * conns
	})
}

// runWrk is runInvoke with wrk as the client, which is a package of Debian.
func runWrk(w *tabwriter.Writer) {
	if _, err := exec.LookPath("wrk"); err != nil {
		fmt.Fprintln(os.Stderr, "bench: wrk:", err, "(apt-get install wrk)")
		return
	}
	dir := must(os.MkdirTemp("", "wrk-"))
	defer os.RemoveAll(dir)
	compareInvoke(w, wrkRounds, []int{16}, func(c invokeCandidate, conns int) int { return c.wrk(dir, conns) })
}

// wrk drives a candidate for wrkTime and returns the number of answers.
func (c invokeCandidate) wrk(dir string, conns int) (answers int) {
	script := filepath.Join(dir, "call.lua")
	must(0, os.WriteFile(script, fmt.Appendf(nil, "wrk.method = 'POST'\nwrk.body = '%s'\nwrk.headers['Content-Type'] = 'application/json'\nwrk.headers['Authorization'] = 'Bearer %s'\n", toolArgs, c.token), 0o600))
	out := string(must(exec.Command("wrk", "-t1", "-c"+strconv.Itoa(conns), "-d"+wrkTime.String(), "-s", script, c.url()).CombinedOutput()))
	before, _, ok := strings.Cut(out, " requests in ")
	if !ok || strings.Contains(out, "Non-2xx") || strings.Contains(out, "Socket errors") {
		panic("bench: wrk: " + c.name + ": " + out)
	}
	fields := strings.Fields(before)
	return must(strconv.Atoi(fields[len(fields)-1]))
}

// compareInvoke measures the candidates in interleaved rounds. drive sends calls over a number
// of connections and returns how many were answered.
func compareInvoke(w *tabwriter.Writer, rounds int, connections []int, drive func(c invokeCandidate, conns int) int) {
	list, stop, err := newInvokeCandidates()
	must(0, err)
	defer stop()
	for _, c := range list { // the answers are those of the floor
		c.call(http.DefaultClient)
	}
	fmt.Fprintln(w, "invoke a tool over HTTP, CPU time of the server\tconnections\tmin µs\tmedian µs\tratio to floor, median")
	var lines []soakreport.Result
	for _, conns := range connections {
		used := make([][]float64, len(list))
		for round := range rounds + 1 {
			for i, c := range list {
				before := c.cpu()
				answers := drive(c, conns)
				if round > 0 { // the first round warms up
					used[i] = append(used[i], float64((c.cpu()-before).Nanoseconds())/1000/float64(answers))
				}
			}
		}
		lines = append(lines, showInvoke(w, list, used, conns)...)
	}
	w.Flush()
	reportResults(lines...)
}

// showInvoke shows the times of all candidates, and returns the results of all but the floor.
func showInvoke(w *tabwriter.Writer, list []invokeCandidate, used [][]float64, conns int) (lines []soakreport.Result) {
	floor := median(used[0])
	for i, c := range list {
		ratio := median(used[i]) / floor
		fmt.Fprintf(w, "%s\t%d\t%.1f\t%.1f\t%.2f\n", c.name, conns, used[i][0], median(used[i]), ratio)
		if i > 0 {
			lines = append(lines, soakreport.Result{
				Part: "invoke", Claim: fmt.Sprintf("%s, %d connections, compared with bare net/http", c.name, conns),
				Goal: fmt.Sprintf("≤ %.2f ×", invokeGoal), Observed: fmt.Sprintf("%.2f ×", ratio), Passed: ratio <= invokeGoal, Aspirational: true,
			})
		}
	}
	return lines
}
