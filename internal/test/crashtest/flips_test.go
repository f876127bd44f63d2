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

var flipsFlag = flag.Int("flips", 0, "how many bits of the data file are turned, one at a time; 0 is 150, or 10 with -short")

// tooLong is when a look at a damaged file counts as hanging.
const tooLong = 20 * time.Second

// Whatever bit of the data file is turned, and wherever it is cut off, it is
// refused, or what is damaged is told from what is not, or nothing is to be
// seen of it. Nothing is lost or changed in silence, and nobody may more. At
// length:
//
//	go test ./internal/test/crashtest -run DamagedFile -flips 2000 -timeout 60m -v
func TestADamagedFileIsNoticedAndGivesNobodyMore(t *testing.T) {
	seed := *seedFlag
	if seed == 0 {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("again: go test ./internal/test/crashtest -run DamagedFile -flips %d -seed %d", cmp.Or(*flipsFlag, short.N(10, 150)), seed)
	random := rand.New(rand.NewPCG(seed, 1))
	file := specimen(t)
	l := &looker{t: t, program: withoutRaceDetector(t), file: file}
	defer l.stop()
	size := len(readFile(t, file))
	for what, list := range map[string][]damage{"turned bit": flips(random, cmp.Or(*flipsFlag, short.N(10, 150)), size), "cut": cuts(random, 1+cmp.Or(*flipsFlag, short.N(10, 150))/40, size)} {
		t.Run(what, func(t *testing.T) { l.judge(t, what, list) })
	}
}

// flips chooses bits: two of three anywhere, one at the head of a page, where
// there is most to be broken.
func flips(random *rand.Rand, n, size int) []damage {
	list := make([]damage, n)
	for i := range list {
		list[i] = damage{At: random.IntN(size), Bit: random.IntN(8)}
		if i%3 == 0 {
			list[i].At = list[i].At/pageSize*pageSize + random.IntN(64)
		}
	}
	return list
}

const pageSize = 4096

func cuts(random *rand.Rand, n, size int) []damage {
	list := make([]damage, n)
	for i := range list {
		list[i] = damage{Cut: true, At: random.IntN(size)}
	}
	return list
}

// The ways a look can end. The first three are as they should be.
const (
	refused  = "refused"
	detected = "detected on reading"
	harmless = "harmless"
	hung     = "hung"
	died     = "died"
	silent   = "silent or unclear"
)

var ends = []string{refused, detected, harmless, hung, died, silent}

// judge looks at each damage and says what became of them.
func (l *looker) judge(t *testing.T, what string, list []damage) {
	truth, err := l.look(unharmed)
	if err != nil || len(truth.Sights) != 3 || truth.Stopped != "" {
		t.Fatalf("the unharmed file: %v, %+v", err, truth)
	}
	if faults := truth.Sights[0].differences(truth.Sights[2]); len(faults) > 0 || truth.Sights[0].size() < 1000 {
		t.Fatalf("the unharmed file has %d facts and is not what it was: %v", truth.Sights[0].size(), faults)
	}
	count, pages := map[string]int{}, pagesOf(t, l.file)
	for _, d := range list {
		end, faults := l.end(d, truth.Sights[0])
		if count[end]++; len(faults) > 0 {
			t.Errorf("%v, in %s: %s:\n  %s", d, pages.at(d.At), end, strings.Join(faults, "\n  "))
		}
	}
	var seen []string
	for _, end := range ends {
		seen = append(seen, fmt.Sprintf("%d %s", count[end], end))
	}
	bad := count[hung] + count[died] + count[silent]
	soakreport.Report(t, soakreport.Result{
		Part: "damage", Claim: fmt.Sprintf("a %s in the data file is noticed or harmless, and gives nobody more", what),
		Goal: fmt.Sprintf("0 of %d in silence", len(list)), Observed: strings.Join(seen, ", "), Passed: bad == 0,
	})
}

// end says how the look at a damaged file ended, and what was wrong with that.
func (l *looker) end(d damage, truth sight) (end string, faults []string) {
	saw, err := l.look(d)
	if err != nil {
		return err.Error(), []string{l.said()}
	}
	noticed := harmless
	for _, s := range saw.Sights {
		faults = append(faults, truth.differences(s)...)
		if len(s.Faults) > 0 {
			noticed = detected
		}
	}
	switch {
	case saw.Refused != "" && !saw.Clear:
		faults = append(faults, "opening says "+saw.Refused)
	case saw.Refused != "" && len(saw.Sights) == 0:
		noticed = refused
	case saw.Refused != "" || saw.Stopped != "":
		noticed = detected
	}
	if len(faults) > 0 {
		return silent, faults
	}
	return noticed, nil
}

func (s sight) size() (n int) {
	for _, facts := range s.Facts {
		n += len(facts)
	}
	return n
}

// differences says what a sight says that is not so, and what it leaves out
// without a word.
func (s sight) differences(got sight) []string {
	faults := slices.Clone(got.Unclear)
	for area, facts := range got.Facts {
		for name, fact := range facts {
			if want, ok := s.Facts[area][name]; !ok {
				faults = append(faults, fmt.Sprintf("%s %q was never there", area, name))
			} else if fact != want {
				faults = append(faults, fmt.Sprintf("%s %q is another", area, name))
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
			faults = append(faults, fmt.Sprintf("%s: %d of %d are gone in silence", area, lost, len(facts)))
		}
	}
	slices.Sort(faults)
	if more := len(faults) - 6; more > 0 {
		faults = append(faults[:6], fmt.Sprintf("and %d more", more))
	}
	return faults
}

// withoutRaceDetector gives this test's program, which looks at damaged files:
// under the race detector it would be ended over the pointers that bolt makes
// of them.
func withoutRaceDetector(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "look")
	if out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-race=false", "-o", path, ".").CombinedOutput(); err != nil {
		t.Fatalf("go test -c: %v\n%s", err, out)
	}
	return path
}

// looker has a process look at damaged files, one after the other. When the
// process hangs or dies the next look has a new one.
type looker struct {
	t             *testing.T
	program, file string

	cmd    *exec.Cmd // nil when there is none
	to     io.WriteCloser
	looks  chan look // closed when the process ends
	stderr *bytes.Buffer
}

func (l *looker) start() {
	l.cmd = exec.Command(l.program)
	l.cmd.Env = append(os.Environ(), lookAt+"="+l.copied())
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
	looks := make(chan look)
	l.looks = looks
	go func() {
		defer close(looks)
		for in := json.NewDecoder(from); ; {
			var saw look
			if in.Decode(&saw) != nil {
				return
			}
			looks <- saw
		}
	}()
}

// copied gives the process a file of its own, in memory where there is such a
// place: nothing here is about the disk.
func (l *looker) copied() string {
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

// look has the process look at a damaged file. The error is hung or died.
func (l *looker) look(d damage) (look, error) {
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
		case saw, ok := <-l.looks:
			if ok {
				return saw, nil
			}
		case <-time.After(tooLong):
			l.stop()
			return look{}, errors.New(hung)
		}
	}
	l.stop()
	return look{}, errors.New(died)
}

// stop ends the process.
func (l *looker) stop() {
	if l.cmd == nil {
		return
	}
	_ = l.cmd.Process.Kill() // it may have ended
	for range l.looks {
	}
	_ = l.cmd.Wait()
	l.cmd = nil
}

// said gives the beginning of what the last process said at its end.
func (l *looker) said() string {
	return l.stderr.String()[:min(l.stderr.Len(), 800)]
}

// pages says what stands where in a file, for whoever reads a failure.
type pages map[int]string

func pagesOf(t *testing.T, file string) pages {
	t.Helper()
	db, err := bolt.Open(file, 0o600, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	tx, err := db.Begin(true) // only there bolt knows its free pages
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback() // nothing was written
	list := pages{}
	for id := 0; ; {
		p, err := tx.Page(id)
		if err != nil {
			t.Fatal(err)
		}
		if p == nil {
			return list
		}
		for range 1 + p.OverflowCount {
			list[id] = p.Type
			id++
		}
	}
}

func (p pages) at(offset int) string {
	return fmt.Sprintf("%s page %d at %d", p[offset/pageSize], offset/pageSize, offset%pageSize)
}

// What the comparison is for it finds.
func TestALossInSilenceIsFound(t *testing.T) {
	truth := func() sight {
		return sight{Facts: map[string]map[string]string{"role": {"a": "1", "b": "2"}, "may": {"agent x look": ""}}, Faults: map[string]map[string]bool{}}
	}
	for name, c := range map[string]struct {
		change func(s *sight)
		want   string
	}{
		"nothing":                            {func(*sight) {}, ""},
		"a role is gone":                     {func(s *sight) { delete(s.Facts["role"], "a") }, "role: 1 of 2 are gone in silence"},
		"a role is gone and another refused": {func(s *sight) { delete(s.Facts["role"], "a"); s.Faults["role"] = map[string]bool{"b": true} }, "role: 1 of 2 are gone in silence"},
		"a role is refused":                  {func(s *sight) { delete(s.Facts["role"], "a"); s.Faults["role"] = map[string]bool{"a": true} }, ""},
		"the list breaks off":                {func(s *sight) { delete(s.Facts["role"], "a"); s.Faults["role"] = map[string]bool{"": true} }, ""},
		"all roles are gone":                 {func(s *sight) { delete(s.Facts, "role") }, "role: 2 of 2 are gone in silence"},
		"a role is another":                  {func(s *sight) { s.Facts["role"]["a"] = "3"; s.Faults["role"] = map[string]bool{"": true} }, `role "a" is another`},
		"somebody may more":                  {func(s *sight) { s.Facts["may"]["agent x strike"] = ""; s.Faults["may"] = map[string]bool{"": true} }, `may "agent x strike" was never there`},
		"an error that says no damage":       {func(s *sight) { s.Unclear = []string{"oops"} }, "oops"},
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
