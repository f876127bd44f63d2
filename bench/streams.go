package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"text/tabwriter"
	"time"

	"github.com/rolecall/rolecall/internal/test/soakreport"
)

const (
	streamsOpen       = 5000                  // streams that follow events
	streamsTried      = 10_000                // streams that are tried at once, too many
	streamsAllowed    = 5500                  // connections of one address
	streamsPerCaller  = 32                    // streams of one caller: the limit of the gateway
	streamCalls       = 20                    // calls of each caller while its streams follow
	streamWarmCallers = 16                    // callers that call before, so that the tool has its connections
	streamMemory      = 300 << 20             // goal for the resident memory with streamsOpen streams
	streamAnswer      = 5 * time.Second       // goal for an answer to another client
	streamTimeout     = time.Minute           // for events, and for the end of streams
	otherAddress      = "127.0.0.2"           // a client beside the streams
	streamPoll        = 20 * time.Millisecond // between two looks at the server
)

// runStreams shows the memory of a serving process with 5,000 streams of server-sent events,
// each authenticated, and what it does with 10,000.
func runStreams(w *tabwriter.Writer) {
	withDiskDir(func(dir string) {
		s := startStreamServer(dir)
		fmt.Fprintln(w, "streams of events\topen\tresident\tat most\topen files\tCPU so far")
		runShared(streamWarmCallers, streamWarmCallers, s.callEach(streamsTried/streamsPerCaller-streamWarmCallers))
		s.addRow(w, "ready", 0)
		files := s.openFiles()
		lines := s.holdMany(w)
		lines = append(lines, s.tryTooMany(w)...)
		w.Flush()
		s.waitFor("files are closed", func() bool { return s.openFiles() <= files+5 })
		s.addRow(w, "all have gone", 0)
		w.Flush()
		left := s.quit()
		reportResults(append(lines, soakreport.Result{
			Part: "streams", Claim: "goroutines of streams that are left when all have gone", Goal: "0", Observed: strconv.Itoa(left), Passed: left == 0,
		})...)
	})
}

// streamServer is a rolecall serve whose callers follow their own calls.
type streamServer struct {
	*runningServer
	stderr bytes.Buffer
}

// startStreamServer starts the program with as many callers as streamsTried streams need.
func startStreamServer(dir string) *streamServer {
	program, tools := must(buildRolecall(dir)), writeTools(dir, 1, 0)
	var b strings.Builder
	fmt.Fprintf(&b, "kind: organization\nname: streams\nlimits: {connections: %d, connectionsPerAddress: %d}\n", streamsAllowed+500, streamsAllowed)
	b.WriteString("---\nkind: role\nname: reader\ntoolGroups: [all_tools]\n---\nkind: gateway\nname: api\ntokens:\n")
	for i := range streamsTried/streamsPerCaller + 1 {
		fmt.Fprintf(&b, "  - {name: %s, role: reader, sha256: %x}\n", streamCaller(i), sha256.Sum256([]byte(streamCaller(i))))
	}
	file := filepath.Join(dir, "streams.yaml")
	must(0, os.WriteFile(file, []byte(b.String()), 0o600))
	s := &streamServer{}
	server := toolServer{name: "rolecall", argv: func(file, data, address string) []string {
		return []string{program, "serve", "--json", "-f", tools, "-f", file, "--data", data, "--addr", address}
	}, stderr: &s.stderr}
	s.runningServer = must(server.start(dir, must(filepath.Abs(file))))
	return s
}

// streamCaller returns the name of a caller, which is its token, too.
func streamCaller(i int) string { return fmt.Sprintf("caller-%d", i) }

// holdMany opens streamsOpen streams, has each of them receive events, and closes them.
func (s *streamServer) holdMany(w *tabwriter.Writer) []soakreport.Result {
	open := s.openMany(streamsOpen)
	if n := open.opened.Load(); n != streamsOpen {
		panic(fmt.Sprintf("bench: %d of %d streams were opened, %d rejected, %d closed", n, streamsOpen, open.rejected.Load(), open.closed.Load()))
	}
	s.addRow(w, "open, nothing happens", streamsOpen)
	idle := s.memory()
	status, text := s.tryStream(streamCaller(0), otherAddress)
	begin := time.Now()
	runShared(streamsOpen/streamsPerCaller, 1, s.callEach(0))
	want := int64(streamsOpen / streamsPerCaller * streamsPerCaller * streamCalls * 2) // a call and its result
	s.waitFor("every stream has its events", func() bool { return open.events.Load() >= want })
	s.addRow(w, fmt.Sprintf("%d events received in %v", open.events.Load(), time.Since(begin).Round(time.Millisecond)), streamsOpen)
	peak := s.peakMemory()
	open.close()
	return []soakreport.Result{{
		Part: "streams", Claim: fmt.Sprintf("%d streams while nothing happens: resident", streamsOpen), Goal: "≤ " + mebibytes(streamMemory),
		Observed: mebibytes(idle), Passed: idle <= streamMemory, Aspirational: true,
	}, {
		Part: "streams", Claim: fmt.Sprintf("%d streams with events: peak resident", streamsOpen), Goal: "≤ " + mebibytes(streamMemory),
		Observed: mebibytes(peak), Passed: peak <= streamMemory, Aspirational: true,
	}, {
		Part: "streams", Claim: fmt.Sprintf("stream %d of one caller", streamsPerCaller+1), Goal: "429 rate_limited",
		Observed: fmt.Sprintf("%d %s", status, text), Passed: status == http.StatusTooManyRequests && strings.Contains(text, "rate_limited"),
	}}
}

// callEach returns a function that has the next caller, from first on, call a tool streamCalls
// times.
func (s *streamServer) callEach(first int) func(int) {
	var next atomic.Int64
	return func(int) {
		caller := streamCaller(first + int(next.Add(1)) - 1)
		header := http.Header{"Content-Type": {"application/json"}, "Authorization": {"Bearer " + caller}}
		client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(otherAddress)}}).DialContext}}
		defer client.CloseIdleConnections()
		for range streamCalls {
			must(s.send(client, "POST", "/api/tool/one/invoke", "{}", header))
		}
	}
}

// tryTooMany tries streamsTried streams, which is more than one address may have, and asks
// from another address meanwhile.
func (s *streamServer) tryTooMany(w *tabwriter.Writer) []soakreport.Result {
	s.waitFor("the streams have gone", func() bool { return s.openFiles() < 1000 })
	var slowest atomic.Int64
	stop, asked := make(chan bool), make(chan bool)
	go func() {
		defer close(asked)
		for {
			select {
			case <-stop:
				return
			default:
			}
			begin := time.Now()
			if status, text := s.ask("/api/v1/tools", streamCaller(0), otherAddress); status != http.StatusOK {
				panic(fmt.Sprintf("bench: another client got %d %s", status, text))
			}
			slowest.Store(max(slowest.Load(), int64(time.Since(begin))))
			time.Sleep(streamPoll)
		}
	}()
	open := s.openMany(streamsTried)
	close(stop)
	<-asked
	opened, refused := open.opened.Load(), open.closed.Load()+open.rejected.Load()
	s.addRow(w, fmt.Sprintf("%d tried, %d refused", streamsTried, refused), int(opened))
	open.close()
	return []soakreport.Result{{
		Part: "streams", Claim: fmt.Sprintf("of %d streams of one address, opened", streamsTried), Goal: fmt.Sprintf("≤ %d", streamsAllowed),
		Observed: fmt.Sprintf("%d, %d refused", opened, refused), Passed: opened <= streamsAllowed && opened+refused == streamsTried,
	}, {
		Part: "streams", Claim: "meanwhile, another client is answered", Goal: "≤ " + streamAnswer.String(),
		Observed: time.Duration(slowest.Load()).Round(time.Millisecond).String(), Passed: slowest.Load() > 0 && time.Duration(slowest.Load()) <= streamAnswer,
	}}
}

// openStreams are streams that were tried.
type openStreams struct {
	opened   atomic.Int64
	rejected atomic.Int64 // answered with an error
	closed   atomic.Int64 // without an answer
	events   atomic.Int64 // received
	mu       sync.Mutex   // guards conns
	conns    []net.Conn
}

// openMany tries to open n streams and returns when each was answered or refused. Each
// caller has as many as it may.
func (s *streamServer) openMany(n int) *openStreams {
	open := &openStreams{}
	var next atomic.Int64
	runShared(n, 50, func(int) {
		i := int(next.Add(1)) - 1
		conn, in, answer, err := s.openStream(streamCaller(i/streamsPerCaller), "127.0.0.1")
		switch {
		case err != nil:
			open.closed.Add(1)
		case answer.StatusCode != http.StatusOK:
			open.rejected.Add(1)
			conn.Close()
		default:
			open.opened.Add(1)
			open.mu.Lock()
			open.conns = append(open.conns, conn)
			open.mu.Unlock()
			go open.read(in)
		}
	})
	return open
}

// openStream requests a stream of the caller's events from an address of this machine.
func (s *streamServer) openStream(caller, from string) (net.Conn, *bufio.Reader, *http.Response, error) {
	address := strings.TrimPrefix(s.url, "http://")
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("tcp", address)
	if err != nil {
		return nil, nil, nil, err
	}
	_, err = fmt.Fprintf(conn, "GET /api/v1/events?follow=1 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", address, caller)
	in := bufio.NewReaderSize(conn, 512)
	var answer *http.Response
	if err == nil {
		answer, err = http.ReadResponse(in, nil)
	}
	if err != nil {
		conn.Close()
	}
	return conn, in, answer, err
}

// tryStream opens a stream, and returns the status and the body of a rejection.
func (s *streamServer) tryStream(caller, from string) (int, string) {
	conn, _, answer, err := s.openStream(caller, from)
	must(0, err)
	defer conn.Close()
	if answer.StatusCode == http.StatusOK {
		return answer.StatusCode, ""
	}
	return answer.StatusCode, strings.TrimSpace(string(must(io.ReadAll(answer.Body))))
}

// ask sends a request on a connection of its own.
func (s *streamServer) ask(path, caller, from string) (int, string) {
	client := &http.Client{Transport: &http.Transport{DialContext: (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}).DialContext}}
	defer client.CloseIdleConnections()
	text, err := s.send(client, "GET", path, "", http.Header{"Authorization": {"Bearer " + caller}})
	if err != nil {
		return 0, err.Error()
	}
	return http.StatusOK, text
}

// read counts the events of a stream until it ends.
func (o *openStreams) read(in *bufio.Reader) {
	for {
		line, err := in.ReadSlice('\n')
		if bytes.HasPrefix(line, []byte("data: ")) {
			o.events.Add(1)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// close closes all streams.
func (o *openStreams) close() {
	for _, conn := range o.conns {
		conn.Close()
	}
}

// addRow adds a row.
func (s *streamServer) addRow(w *tabwriter.Writer, step string, open int) {
	fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%d\t%v\n", step, open, mebibytes(s.memory()), mebibytes(s.peakMemory()), s.openFiles(), s.cpu())
}

// waitFor waits until a condition holds.
func (s *streamServer) waitFor(what string, holds func() bool) {
	for begin := time.Now(); !holds(); time.Sleep(streamPoll) {
		if time.Since(begin) > streamTimeout {
			panic(fmt.Sprintf("bench: streams: not within %v: %s; the server has %d open files", streamTimeout, what, s.openFiles()))
		}
	}
}

// openFiles returns how many files the server has open.
func (s *streamServer) openFiles() int {
	return len(must(os.ReadDir(fmt.Sprintf("/proc/%d/fd", s.cmd.Process.Pid))))
}

// peakMemory returns the highest resident memory of the server, in bytes.
func (s *streamServer) peakMemory() int64 {
	_, rest, _ := strings.Cut(string(must(os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)))), "VmHWM:")
	return must(strconv.ParseInt(strings.Fields(rest)[0], 10, 64)) << 10
}

// quit ends the server by SIGQUIT, which prints its goroutines, and returns how many of them
// serve a stream.
func (s *streamServer) quit() int {
	must(0, s.cmd.Process.Signal(syscall.SIGQUIT))
	if exit := new(exec.ExitError); !errors.As(cmp.Or(s.cmd.Wait(), io.EOF), &exit) {
		panic("bench: streams: the server did not print its goroutines")
	}
	return strings.Count(s.stderr.String(), "streamEvents(")
}
