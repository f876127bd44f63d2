//go:build llm

package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// smallOrganization has one role that reads files and one that prints texts.
const smallOrganization = `kind: organization
name: small
model: local
---
{kind: role, name: reader, description: Reads files and answers questions about them., toolGroups: [workspace], prompt: You read the file you are told to read and answer with its content.}
---
{kind: role, name: printer, description: Prints texts for the user., toolGroups: [console], prompt: You print the text you are told to print.}
---
kind: model
name: local
type: openai
model: local
baseURL: ${LOCAL_BASE_URL}
seed: %d
contextWindow: 8192
maxTokens: 128
maxConcurrency: 1
timeout: 10m
`

// seeds is the number of tasks, each with a seed of its own.
const seeds = 10

// rightAsWorker is how many tasks of a worker must be right with the model of make test-llm.
const rightAsWorker = 9

// A small model calls the right tool with the right argument as a worker. As root it
// rarely hires the right role, which is only measured. The log ends with a row of the table
// in docs/models.md. ROLECALL_LLM_MODEL names another model, which is only measured.
func TestSmallModel_TenSeeds(t *testing.T) {
	base := startLlama(t)
	worker, workerTime := countRight(t, base, readsRightFile, "--role", "reader")
	root, rootTime := countRight(t, base, hiresReader)
	if worker < rightAsWorker && os.Getenv(modelEnv) == "" {
		t.Errorf("%d of %d workers read the right file, want %d", worker, seeds, rightAsWorker)
	}
	path, err := filepath.EvalSymlinks(modelPath())
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("\n| %s | %d MB | %d | %.0f s | %d | %.0f s |", filepath.Base(path), info.Size()/1e6, worker, workerTime.Seconds(), root, rootTime.Seconds())
}

// countRight runs a task with each seed. It returns how many are right, and the time of a
// task.
func countRight(t *testing.T, base string, right func([]event) bool, args ...string) (count int, each time.Duration) {
	t.Helper()
	begin := time.Now()
	for seed := range seeds {
		fx := fixture{t.TempDir()}
		writeFile(t, fx.path("example", "organization.yaml"), fmt.Sprintf(smallOrganization, seed+1))
		writeFile(t, fx.path("work", "data", "orders.txt"), "lamp 3\nchair 2\n")
		writeFile(t, fx.path("work", "data", "visits.txt"), "monday 12\n")
		o := fx.run(t, []string{"LOCAL_BASE_URL=" + base + "/v1"}, append(args, "--json", "--timeout", "1m", "Read the file data/orders.txt and say what was ordered.")...)
		events := o.events(t)
		if right(events) {
			count++
		}
		t.Logf("seed %d: right %t\n%s", seed+1, right(events), o.summary(events))
	}
	return count, time.Since(begin) / seeds
}

// readsRightFile reports whether the agent read the file of the task and no other.
func readsRightFile(events []event) bool {
	read := false
	for _, e := range events {
		if !allowed("read_file")(e) {
			continue
		}
		var in struct{ Path string }
		if json.Unmarshal(e.Args, &in) != nil || in.Path != "data/orders.txt" {
			return false
		}
		read = true
	}
	return read
}

// hiresReader reports whether agents of the role reader were spawned and no others.
func hiresReader(events []event) bool {
	hired := false
	for _, e := range events {
		if e.Type == "agent_spawned" && e.Role != "root" {
			if e.Role != "reader" {
				return false
			}
			hired = true
		}
	}
	return hired
}
