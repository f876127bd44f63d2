//go:build linux

package toolservice_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/rolecall/rolecall/internal/procgroup"
	"github.com/rolecall/rolecall/internal/test/external"
	"github.com/rolecall/rolecall/modules/toolservice/service"
	"github.com/rolecall/rolecall/tool"
)

// Variables of the processes of the partition test: the test in a network of its own, and the number
// of the host that a process is.
const (
	ownNetwork = "TOOLSERVICE_TEST_OWN_NETWORK"
	hostNumber = "TOOLSERVICE_TEST_HOST"
)

// Three hosts with a network namespace each are connected with cables, and a NATS server of a
// cluster runs on each. The runtime and one service are on host 0, and another service is on
// host 1. The cables are cut: the servers receive no error, but silence.
func TestFault_ClusterIsPartitionedByTheNetwork(t *testing.T) {
	if os.Getenv(ownNetwork) != "" {
		testPartition(t)
		return
	}
	external.Skip(t, "processes in network namespaces")
	for _, program := range []string{"ip", "nsenter"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Fatalf("%v: run make deps", err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "/proc/self/exe", "-test.run=^TestFault_ClusterIsPartitionedByTheNetwork$", "-test.v")
	cmd.Env = append(os.Environ(), ownNetwork+"=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNET,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	switch {
	case cmd.ProcessState == nil: // it did not start
		t.Skipf("no network namespace on this system: %v", err)
	case err != nil:
		t.Fatalf("on host 0: %v\n%s", err, out)
	}
	t.Logf("on host 0:\n%s", out)
}

// hosts is the number of hosts.
const hosts = 3

// hostAddress returns the address of host i on the cable to host j.
func hostAddress(i, j int) string {
	return fmt.Sprintf("10.%d.%d.%d", min(i, j), max(i, j), i+1)
}

// startHostServer starts the server of host i. Its clients connect on loopback.
func startHostServer(i int) (*server.Server, error) {
	o := &server.Options{
		ServerName: "host-" + strconv.Itoa(i), Host: "127.0.0.1", Port: 4222, NoSigs: true, NoLog: true, NoSystemAccount: true,
		Cluster:      server.ClusterOpts{Name: "test", Host: "0.0.0.0", Port: 6222, PoolSize: -1},
		PingInterval: 100 * time.Millisecond, MaxPingsOut: 2,
	}
	o.Cluster.PingInterval, o.Cluster.MaxPingsOut = o.PingInterval, o.MaxPingsOut
	for j := range hosts {
		if j != i {
			o.Routes = append(o.Routes, server.RoutesFromStr("nats://"+net.JoinHostPort(hostAddress(j, i), "6222"))...)
		}
	}
	s, err := server.NewServer(o)
	if err == nil {
		s.Start()
		if !s.ReadyForConnections(patience) {
			err = fmt.Errorf("the server of host %d does not start", i)
		}
	}
	return s, err
}

// runHost is a process on host 1 or 2. It begins when its stdin ends, which is when its cables are there.
func runHost(i int) error {
	if _, err := io.ReadAll(os.Stdin); err != nil {
		return err
	}
	s, err := startHostServer(i)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if i == 1 {
		return service.Run(context.Background(), service.Options{URL: s.ClientURL(), ID: "frail"}, answerOrWait)
	}
	s.WaitForShutdown()
	return nil
}

// host is the process on host 1 or 2.
type host struct {
	pid   int
	begin io.Closer
	lines *bufio.Scanner
}

// startHost starts a process in a network namespace of its own.
func startHost(t *testing.T, i int) host {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env, cmd.Stderr, cmd.SysProcAttr = append(os.Environ(), hostNumber+"="+strconv.Itoa(i)), os.Stderr, procgroup.Attributes()
	cmd.SysProcAttr.Cloneflags = syscall.CLONE_NEWNET
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	group := procgroup.New(cmd)
	if err := group.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { group.Signal(syscall.SIGKILL); <-group.Ended() })
	return host{cmd.Process.Pid, in, bufio.NewScanner(out)}
}

// run runs the server of the host.
func (h host) run(t *testing.T) {
	t.Helper()
	_ = h.begin.Close()
	if !h.lines.Scan() || h.lines.Text() != "ready" {
		t.Fatalf("a host said %q: %v", h.lines.Text(), h.lines.Err())
	}
}

// ip changes the network of a process.
func ip(t *testing.T, pid int, args ...string) {
	t.Helper()
	args = append([]string{"-t", strconv.Itoa(pid), "-n", "ip"}, args...)
	if out, err := exec.Command("nsenter", args...).CombinedOutput(); err != nil {
		t.Fatalf("nsenter %s: %v\n%s", strings.Join(args, " "), err, out)
	}
}

// connectHosts connects each pair of hosts with a cable.
func connectHosts(t *testing.T, pids [hosts]int) {
	t.Helper()
	for j := range hosts {
		ip(t, pids[j], "link", "set", "lo", "up")
		for i := range j {
			one, other := "to-"+strconv.Itoa(j), "to-"+strconv.Itoa(i)
			ip(t, os.Getpid(), "link", "add", one, "netns", strconv.Itoa(pids[i]), "type", "veth", "peer", "name", other, "netns", strconv.Itoa(pids[j]))
			ip(t, pids[i], "address", "add", hostAddress(i, j)+"/24", "dev", one)
			ip(t, pids[j], "address", "add", hostAddress(j, i)+"/24", "dev", other)
			ip(t, pids[i], "link", "set", one, "up")
		}
	}
	setCables(t, pids, "up")
}

// setCables cuts all cables, or mends them, at the end of the host with the larger number.
func setCables(t *testing.T, pids [hosts]int, state string) {
	t.Helper()
	for j := range hosts {
		for i := range j {
			ip(t, pids[j], "link", "set", "to-"+strconv.Itoa(i), state)
		}
	}
}

func testPartition(t *testing.T) {
	pids := [hosts]int{os.Getpid()}
	var others []host
	for i := 1; i < hosts; i++ {
		h := startHost(t, i)
		others, pids[i] = append(others, h), h.pid
	}
	connectHosts(t, pids)
	s, err := startHostServer(0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stopNATS(s) })
	for _, h := range others {
		h.run(t)
	}
	whole := func() bool { return s.NumRoutes() >= hosts-1 }
	waitFor(t, "the cluster", whole)
	d := connectNATS(t, s.ClientURL())
	n, joke := startNeighbour(t, s.ClientURL(), d), toolOf(t, d, "frail", tool.Mutating, 150*time.Millisecond)
	awaitAnswer(t, joke)
	for range 2 {
		setCables(t, pids, "down")
		wantOutcome(t, "a call into the silence", ask(t, joke, "cats"), "tool_interrupted")
		n.wantUndisturbed(t)
		waitFor(t, "the notice that no service receives requests", func() bool {
			return strings.HasPrefix(ask(t, joke, "cats"), "tool_unavailable: tell-joke did not run: no service")
		})
		n.wantUndisturbed(t)
		setCables(t, pids, "up")
		awaitAnswer(t, joke)
		waitFor(t, "the whole cluster", whole)
	}
}
