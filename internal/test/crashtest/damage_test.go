//go:build linux

package crashtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	bolt "go.etcd.io/bbolt"

	"github.com/rolecall/rolecall/internal/test/short"
	"github.com/rolecall/rolecall/internal/test/soakreport"
)

var flipsFlag = flag.Int("flips", 0, "number of bits of the data file that are flipped, one at a time; 0 is 150, or 5 with -short")

// inspectTimeout is when an inspection of a damaged file counts as hanging.
const inspectTimeout = 20 * time.Second

// Any bit of the data file may be flipped, and the file may be truncated anywhere.
// Then one of three things happens: opening refuses the file, reading reports the
// damaged parts, or the damage has no visible effect. Nothing is lost or changed
// silently, and no agent or role gains a permission. A long run:
//
//	go test -C internal/test/crashtest -run DamagedFile -flips 2000 -timeout 60m -v
func TestDamagedFile_IsDetectedAndAddsNoPermission(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("repeat with: go test -C internal/test/crashtest -run DamagedFile -flips %d -seed %d", cmp.Or(*flipsFlag, short.Count(5, 150)), seed)
	random := rand.New(rand.NewPCG(seed, 1))
	file := sampleDB(t)
	l := &inspector{t: t, program: buildWithoutRace(t), file: file}
	defer l.stop()
	size := len(readFile(t, file))
	for what, list := range map[string][]damage{"bit flip": randomFlips(random, cmp.Or(*flipsFlag, short.Count(5, 150)), size), "truncation": randomCuts(random, 1+cmp.Or(*flipsFlag, short.Count(5, 150))/40, size)} {
		t.Run(what, func(t *testing.T) { l.checkDamage(t, what, list) })
	}
}

// randomFlips chooses bits: two of three anywhere, one in the header of a page, where
// damage breaks the most.
func randomFlips(random *rand.Rand, n, size int) []damage {
	list := make([]damage, n)
	for i := range list {
		list[i] = damage{At: random.IntN(size), Bit: random.IntN(8)}
		if i%3 == 0 {
			list[i].At = list[i].At/pageSize*pageSize + random.IntN(64)
		}
	}
	return list
}

// pageSize is bbolt's page size, which is the system's.
const pageSize = 4096

// randomCuts chooses lengths to truncate the file to.
func randomCuts(random *rand.Rand, n, size int) []damage {
	list := make([]damage, n)
	for i := range list {
		list[i] = damage{Cut: true, At: random.IntN(size)}
	}
	return list
}

// The outcomes of an inspection. Only the first three are correct.
const (
	outcomeRefused  = "refused"
	outcomeDetected = "detected on reading"
	outcomeHarmless = "harmless"
	outcomeHung     = "hung"
	outcomeDied     = "died"
	outcomeSilent   = "undetected or unclear"
)

var outcomes = []string{outcomeRefused, outcomeDetected, outcomeHarmless, outcomeHung, outcomeDied, outcomeSilent}

// checkDamage inspects the file with each damage and reports the outcomes.
func (l *inspector) checkDamage(t *testing.T, what string, list []damage) {
	truth, err := l.inspect(noDamage)
	if err != nil || len(truth.Contents) != 3 || truth.CommitError != "" {
		t.Fatalf("the undamaged file: %v, %+v", err, truth)
	}
	if faults := truth.Contents[0].differences(truth.Contents[2]); len(faults) > 0 || truth.Contents[0].size() < 1000 {
		t.Fatalf("the undamaged file has %d facts, or commits changed them: %v", truth.Contents[0].size(), faults)
	}
	count, pages := map[string]int{}, readPageTypes(t, l.file)
	for _, d := range list {
		end, faults := l.classify(d, truth.Contents[0])
		if count[end]++; len(faults) > 0 {
			t.Errorf("%v, in %s: %s:\n  %s", d, pages.describe(d.At), end, strings.Join(faults, "\n  "))
		}
	}
	var seen []string
	for _, end := range outcomes {
		seen = append(seen, fmt.Sprintf("%d %s", count[end], end))
	}
	bad := count[outcomeHung] + count[outcomeDied] + count[outcomeSilent]
	soakreport.RecordResult(t, soakreport.Result{
		Part: "damage", Claim: fmt.Sprintf("a %s in the data file is detected or harmless, and adds no permission", what),
		Goal: fmt.Sprintf("0 of %d undetected", len(list)), Observed: strings.Join(seen, ", "), Passed: bad == 0,
	})
}

// classify inspects a damaged file and returns the outcome and what is wrong with it.
func (l *inspector) classify(d damage, truth contents) (outcome string, faults []string) {
	got, err := l.inspect(d)
	if err != nil {
		return err.Error(), []string{l.stderrHead()}
	}
	outcome = outcomeHarmless
	for _, s := range got.Contents {
		faults = append(faults, truth.differences(s)...)
		if len(s.Faults) > 0 {
			outcome = outcomeDetected
		}
	}
	switch {
	case got.OpenError != "" && !got.OpenReportsDamage:
		faults = append(faults, "opening reports "+got.OpenError)
	case got.OpenError != "" && len(got.Contents) == 0:
		outcome = outcomeRefused
	case got.OpenError != "" || got.CommitError != "":
		outcome = outcomeDetected
	}
	if len(faults) > 0 {
		return outcomeSilent, faults
	}
	return outcome, nil
}

// size returns the number of facts.
func (s contents) size() (n int) {
	for _, facts := range s.Facts {
		n += len(facts)
	}
	return n
}

// differences returns what got contains that s does not, and what it omits without
// reporting damage.
func (s contents) differences(got contents) []string {
	faults := slices.Clone(got.Unclear)
	for area, facts := range got.Facts {
		for name, fact := range facts {
			if want, ok := s.Facts[area][name]; !ok {
				faults = append(faults, fmt.Sprintf("%s %q did not exist", area, name))
			} else if fact != want {
				faults = append(faults, fmt.Sprintf("%s %q has changed", area, name))
			}
		}
	}
	for area, facts := range s.Facts {
		lost := 0
		for name := range facts {
			if _, ok := got.Facts[area][name]; !ok && !got.Faults[area][name] && !got.Faults[area][""] {
				lost++
			}
		}
		if lost > 0 {
			faults = append(faults, fmt.Sprintf("%s: %d of %d are missing silently", area, lost, len(facts)))
		}
	}
	slices.Sort(faults)
	if more := len(faults) - 6; more > 0 {
		faults = append(faults[:6], fmt.Sprintf("and %d more", more))
	}
	return faults
}

// buildWithoutRace builds this test's program, which inspects damaged files, without
// the race detector. The detector would abort it for the pointers that bolt reads from
// them.
func buildWithoutRace(t *testing.T) string {
	t.Helper()
	if !short.RaceDetector {
		path, err := os.Executable()
		if err != nil {
			t.Fatal(err)
		}
		return path
	}
	path := filepath.Join(t.TempDir(), "look")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-race=false", "-vet=off", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return path
}

// inspector runs a process that inspects damaged files, one after the other. When the
// process hangs or dies, the next inspection starts a new one.
type inspector struct {
	t             *testing.T
	program, file string

	cmd     *exec.Cmd // nil when no process runs
	to      io.WriteCloser
	results chan inspection // closed when the process ends
	stderr  *bytes.Buffer
}

// start starts the process and decodes its results.
func (l *inspector) start() {
	l.cmd = exec.Command(l.program)
	l.cmd.Env = append(os.Environ(), inspectEnv+"="+l.copyFile())
	l.stderr = new(bytes.Buffer)
	l.cmd.Stderr = l.stderr
	var err error
	if l.to, err = l.cmd.StdinPipe(); err != nil {
		l.t.Fatal(err)
	}
	from, err := l.cmd.StdoutPipe()
	if err != nil {
		l.t.Fatal(err)
	}
	if err := l.cmd.Start(); err != nil {
		l.t.Fatal(err)
	}
	results := make(chan inspection)
	l.results = results
	go func() {
		defer close(results)
		for in := json.NewDecoder(from); ; {
			var got inspection
			if in.Decode(&got) != nil {
				return
			}
			results <- got
		}
	}()
}

// copyFile returns a copy of the file for the process, in memory if possible: the disk
// does not matter here.
func (l *inspector) copyFile() string {
	dir, err := os.MkdirTemp("/dev/shm", "rolecall")
	if err != nil {
		dir = l.t.TempDir()
	}
	l.t.Cleanup(func() { os.RemoveAll(dir) })
	path := filepath.Join(dir, filepath.Base(l.file))
	if err := os.WriteFile(path, readFile(l.t, l.file), 0o600); err != nil {
		l.t.Fatal(err)
	}
	return path
}

// inspect has the process inspect a damaged file. The error text is outcomeHung or
// outcomeDied.
func (l *inspector) inspect(d damage) (inspection, error) {
	if l.cmd == nil {
		l.start()
	}
	line, err := json.Marshal(d)
	if err != nil {
		l.t.Fatal(err)
	}
	_, err = l.to.Write(append(line, '\n'))
	if err == nil {
		select {
		case got, ok := <-l.results:
			if ok {
				return got, nil
			}
		case <-time.After(inspectTimeout):
			l.stop()
			return inspection{}, errors.New(outcomeHung)
		}
	}
	l.stop()
	return inspection{}, errors.New(outcomeDied)
}

// stop kills the process and waits for it.
func (l *inspector) stop() {
	if l.cmd == nil {
		return
	}
	_ = l.cmd.Process.Kill() // the process may have ended already
	for range l.results {
	}
	_ = l.cmd.Wait()
	l.cmd = nil
}

// stderrHead returns the beginning of the last process's stderr.
func (l *inspector) stderrHead() string {
	return l.stderr.String()[:min(l.stderr.Len(), 800)]
}

// pageTypes maps page numbers to page types, for failure reports.
type pageTypes map[int]string

func readPageTypes(t *testing.T, file string) pageTypes {
	t.Helper()
	db, err := bolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin(true) // bolt knows its free pages only in a write transaction
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() // nothing was written
	list := pageTypes{}
	for id := 0; ; {
		p, err := tx.Page(id)
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			return list
		}
		if p.Type == "free" { // its header may be the content of an earlier page
			p.OverflowCount = 0
		}
		for range 1 + p.OverflowCount {
			list[id] = p.Type
			id++
		}
	}
}

func (p pageTypes) describe(offset int) string {
	return fmt.Sprintf("%s page %d at %d", p[offset/pageSize], offset/pageSize, offset%pageSize)
}

// The comparison finds what it is for.
func TestDifferences_FindsSilentLoss(t *testing.T) {
	truth := func() contents {
		return contents{Facts: map[string]map[string]string{"role": {"a": "1", "b": "2"}, "may": {"agent x look": ""}}, Faults: map[string]map[string]bool{}}
	}
	for name, c := range map[string]struct {
		change func(s *contents)
		want   string
	}{
		"nothing":                               {func(*contents) {}, ""},
		"a role is missing":                     {func(s *contents) { delete(s.Facts["role"], "a") }, "role: 1 of 2 are missing silently"},
		"a role is missing and another refused": {func(s *contents) { delete(s.Facts["role"], "a"); s.Faults["role"] = map[string]bool{"b": true} }, "role: 1 of 2 are missing silently"},
		"a role is refused":                     {func(s *contents) { delete(s.Facts["role"], "a"); s.Faults["role"] = map[string]bool{"a": true} }, ""},
		"the list is incomplete":                {func(s *contents) { delete(s.Facts["role"], "a"); s.Faults["role"] = map[string]bool{"": true} }, ""},
		"all roles are missing":                 {func(s *contents) { delete(s.Facts, "role") }, "role: 2 of 2 are missing silently"},
		"a role has changed":                    {func(s *contents) { s.Facts["role"]["a"] = "3"; s.Faults["role"] = map[string]bool{"": true} }, `role "a" has changed`},
		"a permission is added":                 {func(s *contents) { s.Facts["may"]["agent x strike"] = ""; s.Faults["may"] = map[string]bool{"": true} }, `may "agent x strike" did not exist`},
		"an error that does not report damage":  {func(s *contents) { s.Unclear = []string{"oops"} }, "oops"},
	} {
		t.Run(name, func(t *testing.T) {
			s := truth()
			s.Facts["role"], s.Facts["may"] = maps.Clone(s.Facts["role"]), maps.Clone(s.Facts["may"])
			c.change(&s)
			if got := strings.Join(truth().differences(s), "; "); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
