//go:build pulsar

package pulsar_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rolecall/rolecall/internal/procgroup"
	"github.com/rolecall/rolecall/internal/test/buffer"
	"github.com/rolecall/rolecall/internal/test/dbtest"
)

// start starts a program, which ends with the test.
func start(t *testing.T, cmd *exec.Cmd) *buffer.SyncBuffer {
	t.Helper()
	log := &buffer.SyncBuffer{}
	cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = log, log, procgroup.Attributes()
	group := procgroup.New(cmd)
	if err := group.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		group.Signal(9)
		<-group.Ended()
		if t.Failed() {
			t.Logf("%s:\n%s", cmd, log)
		}
	})
	return log
}

// writeExample writes the configuration of examples/joke-service with Pulsar as its broker.
func writeExample(t *testing.T, b dbtest.Broker) (path string) {
	t.Helper()
	text, err := os.ReadFile("../../../examples/joke-service/organization.yaml")
	if err != nil {
		t.Fatal(err)
	}
	example := strings.Replace(string(text), "type: nats\nlisten: 127.0.0.1:4222\n", "type: pulsar\nurl: "+address(b)+"\npassword: ${PULSAR_TOKEN}\n", 1)
	if example == string(text) {
		t.Fatal("the example has another broker")
	}
	example = strings.Replace(example, "config-params:", "timeout: 3s\nconfig-params:", 1) // Pulsar drops what is sent before the service subscribes
	path = filepath.Join(t.TempDir(), "organization.yaml")
	if err := os.WriteFile(path, []byte(example), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// The program calls the joke service of TrustGraph, which is that of the Python index. Unlike on
// RabbitMQ, it needs nothing beside it.
func TestProgram_CallsServiceOfTrustGraph(t *testing.T) {
	b := startBroker(t)
	program := filepath.Join(t.TempDir(), "rolecall-pulsar")
	if out, err := exec.Command("go", "build", "-o", program, "./cmd/rolecall-pulsar").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	interop, err := filepath.Abs("../../../internal/test/interop")
	if err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"2.7", "2.11"} {
		t.Run(version, func(t *testing.T) {
			service := exec.Command(filepath.Join(interop, ".venv-"+version, "bin", "python"), "service.py", "--without-topics",
				"--pubsub-backend", "pulsar", "--pulsar-host", address(b), "--pulsar-api-key", b.Password, "--no-metrics", "--topic", "joke")
			service.Dir = interop
			start(t, service)
			var out []byte
			config, data := writeExample(t, b), t.TempDir()
			for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); {
				call := exec.Command(program, "tool", "call", "-f", config, "--data", data, "--role", "entertainer", "tell-joke", `{"topic": "llamas"}`)
				call.Env = append(os.Environ(), "PULSAR_TOKEN="+b.Password)
				if out, err = call.CombinedOutput(); err == nil {
					break
				}
			}
			if err != nil || !strings.Contains(string(out), "Here's a pun for you:") || !strings.Contains(strings.ToLower(string(out)), "llama") {
				t.Errorf("got %s, %v; want a pun about llamas", out, err)
			}
		})
	}
}
