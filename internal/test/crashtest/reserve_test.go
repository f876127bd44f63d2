//go:build linux && (amd64 || arm64)

package crashtest

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rolecall/rolecall/identity"
	"github.com/rolecall/rolecall/internal/test/crashtest/faultfs"
	"github.com/rolecall/rolecall/internal/test/external"
	"github.com/rolecall/rolecall/internal/test/soakreport"
)

// The reserve of these tests, and the free space of a disk below it. What runs still fits.
const (
	diskReserve = 16 << 20
	lowSpace    = 12 << 20
)

// Below the disk reserve the program starts no task and records nothing. A program that
// works lets its agents rest and refuses messages. With room again the agents go on.
// Nothing is lost.
func TestDisk_ReserveRefusesTasksAndLetsAgentsRest(t *testing.T) {
	external.Skip(t, "file systems of its own")
	requireMount(t, "disk")
	fx := newFixture(t)
	fx.setReserve(t)
	fx.flags = []string{"--verbose"} // the log says when agents rest
	f := mountDisk(t, fx, faultfs.Options{StrictNames: true, ReportSpace: true})

	f.SetCapacity(lowSpace)
	if status := fx.runOnDisk(t, f, 0); status != 1 || !strings.Contains(fx.stderr(), "storage_low") {
		t.Errorf("it exited with %d, want 1 and storage_low:\n%s", status, fx.stderr())
	}
	if r := fx.readStored(t); len(r.tasks)+len(r.events) > 0 {
		t.Errorf("%d tasks and %d events are recorded", len(r.tasks), len(r.events))
	}

	f.SetCapacity(faultfs.UnlimitedCapacity)
	rests, goesOn := false, false
	fx.sawStderr = func(text string) {
		switch {
		case !rests && strings.Contains(text, "new work is refused; agents wait until there is room"):
			rests = true
			fx.wantRefused(t)
			f.SetCapacity(faultfs.UnlimitedCapacity)
		case strings.Contains(text, "there is room again"):
			goesOn = true
		}
	}
	status := fx.run(t, f.PoweredOff(), func(events int) {
		if events == 20 {
			f.SetCapacity(f.UsedBytes() + lowSpace)
		}
	})
	if status != 0 || !rests || !goesOn {
		t.Errorf("it exited with %d; agents rested: %t, and went on: %t\n%s", status, rests, goesOn, fx.stderr())
	}
	r := fx.readStored(t)
	faults := slices.Concat(verify(t, fx.data, fx.observed), r.faults(fx.observed), r.unfinished(), fx.readEffects(t).faults(r))
	for _, fault := range prefixFaults("at the end", faults) {
		t.Error(fault)
	}
	soakreport.RecordResult(t, soakreport.Result{
		Part: "disk", Claim: "below the disk reserve agents rest", Goal: "tasks refused, no loss, task completes correctly",
		Observed: fmt.Sprintf("%d events", len(r.events)), Passed: !t.Failed(),
	})
}

// setReserve sets the disk reserve in the configuration of the fixture.
func (fx *fixture) setReserve(t *testing.T) {
	t.Helper()
	name := fx.path("organization.yaml")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	limits := fmt.Sprintf("model: agents\nlimits: {diskReserve: %d}\n", diskReserve)
	if err := os.WriteFile(name, []byte(strings.Replace(string(text), "model: agents\n", limits, 1)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// wantRefused checks that the running process refuses a message and is not ready.
func (fx *fixture) wantRefused(t *testing.T) {
	t.Helper()
	socket := filepath.Join(fx.data, "rolecall.sock")
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", socket)
	}}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: processTimeout}
	for _, path := range []string{"POST /api/v1/agents/" + string(fx.observed.anyAgent()) + "/messages", "GET /readyz"} {
		method, route, _ := strings.Cut(path, " ")
		q, err := http.NewRequestWithContext(t.Context(), method, "http://rolecall"+route, strings.NewReader(`{"text":"hello"}`))
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(q)
		if err != nil {
			t.Errorf("%s: %v", path, err)
			continue
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != http.StatusServiceUnavailable || !strings.Contains(string(body), "storage_low") {
			t.Errorf("%s: status %d, %s, %v; want 503 and storage_low", path, answer.StatusCode, body, err)
		}
	}
}

// anyAgent returns an agent that an event is about.
func (s *observed) anyAgent() identity.AgentID {
	for _, e := range s.events {
		if e.Agent != "" {
			return e.Agent
		}
	}
	return ""
}
